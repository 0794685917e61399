// The upstream over HTTP/1.1, for gateways that speak nothing else to it: one small object, and reviews of tokens.
package main

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// serveHTTP1 answers one request after the other until the client goes.
func serveHTTP1(t *tls.Conn) {
	reader := bufio.NewReader(t)
	for {
		r, err := http.ReadRequest(reader)
		if err != nil {
			return
		}
		asked, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		if kubernetes && r.Header.Get("Upgrade") != "" {
			echo(t, reader, r.Header.Get("Upgrade"))
			return
		}
		body := small
		if strings.HasSuffix(r.URL.Path, reviewPath) {
			body = reviewOf(asked)
		}
		head := fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", len(body))
		if _, err := t.Write(append(head, body...)); err != nil {
			return
		}
	}
}

// echo sends back what comes on an upgraded connection.
func echo(t *tls.Conn, reader *bufio.Reader, protocol string) {
	head := fmt.Appendf(nil, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\n", protocol)
	if _, err := t.Write(head); err == nil {
		_, _ = io.Copy(t, reader)
	}
}
