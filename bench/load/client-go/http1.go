// HTTP/1.1 on a client's connection: one request at a time, as text that is made before; its answer has a Content-Length, or is an upgrade,
// after which all that comes is data.
package main

import (
	"bytes"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"golang.org/x/net/http2/hpack"
)

const protocolHTTP1 = "http/1.1"

type http1 struct {
	request  []byte
	inBody   bool // the header has come
	left     int  // bytes of the body that have not
	upgraded bool
}

// requestText writes the fields of an HTTP/2 request as HTTP/1.1 has them.
func requestText(fields []hpack.HeaderField, body []byte) []byte {
	method, path, host, rest := "", "", "", strings.Builder{}
	for _, f := range fields {
		switch f.Name {
		case ":method":
			method = f.Value
		case ":path":
			path = f.Value
		case ":authority":
			host = f.Value
		case ":scheme":
		default:
			fmt.Fprintf(&rest, "%s: %s\r\n", http.CanonicalHeaderKey(f.Name), f.Value)
		}
	}
	if len(body) > 0 {
		fmt.Fprintf(&rest, "Content-Length: %d\r\n", len(body))
	}
	return append(fmt.Appendf(nil, "%s %s HTTP/1.1\r\nHost: %s\r\n%s\r\n", method, path, host, rest.String()), body...)
}

var headEnd = []byte("\r\n\r\n")

// answers takes what has come, and returns the beginning of a header that has not come whole.
func (c *connection) answers(data []byte) ([]byte, error) {
	h := c.http1
	for len(data) > 0 {
		if h.upgraded {
			c.mode.data(c, 0, data)
			return nil, nil
		}
		stream := c.nextID - 2
		if !h.inBody {
			end := bytes.Index(data, headEnd)
			if end < 0 {
				if len(data) == len(c.in) {
					return nil, fmt.Errorf("a header of more than %d bytes", len(data))
				}
				return data, nil
			}
			status, length, err := headOf(string(data[:end]))
			if err != nil {
				return nil, err
			}
			data = data[end+len(headEnd):]
			c.status[slot(stream)] = int16(status)
			h.inBody, h.left = true, length
			h.upgraded = status == http.StatusSwitchingProtocols
		}
		n := min(h.left, len(data))
		if n > 0 {
			c.mode.data(c, stream, data[:n])
		}
		data = data[n:]
		h.left -= n
		if h.left == 0 {
			h.inBody = false
			c.end(stream)
		}
	}
	return nil, nil
}

// headOf reads the status and the Content-Length.
func headOf(head string) (status, length int, err error) {
	lines := strings.Split(head, "\r\n")
	words := strings.SplitN(lines[0], " ", 3)
	if len(words) < 2 {
		return 0, 0, fmt.Errorf("no status: %q", lines[0])
	}
	if status, err = strconv.Atoi(words[1]); err != nil {
		return 0, 0, err
	}
	for _, line := range lines[1:] {
		if name, value, _ := strings.Cut(line, ":"); strings.EqualFold(name, "content-length") {
			length, err = strconv.Atoi(strings.TrimSpace(value))
			return status, length, err
		}
	}
	if status != http.StatusSwitchingProtocols {
		err = fmt.Errorf("an answer without Content-Length: %q", lines[0])
	}
	return status, 0, err
}
