// A client's connection: requests whose header block is encoded before, and the frames that come back; or HTTP/1.1 (http1.go).
package main

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/net/http2/hpack"
)

const (
	// As client-go's transport announces them.
	streamWindow     = 4 << 20
	connectionWindow = 1 << 30
)

// mode is what a measurement does with the streams of its connections. data is called for every DATA frame.
type mode interface {
	data(c *connection, stream uint32, payload []byte)
	ended(c *connection, stream uint32, status int)
}

// headerMode is one that reads more of an answer's header than the status. Called for every HEADERS frame, in order.
type headerMode interface {
	headers(c *connection, stream uint32, block []byte)
}

// sendMode is one that sends more than requests. send is called whenever the socket may take more, window for every WINDOW_UPDATE of a
// stream, and for the last stream when the peer changes the windows of all.
type sendMode interface {
	send(c *connection) error
	window(c *connection, stream uint32, bytes int)
}

type connection struct {
	index     int
	socket    *socket
	tls       *tls.Conn
	mode      mode
	in        []byte
	inLen     int
	out       []byte
	first     []byte // header block of the first request; it fills the peer's table
	later     []byte // and of all others: indexes only
	body      []byte // of every request
	nextID    uint32
	open      int
	maxOpen   int
	tableSize uint32 // what the peer keeps of header fields, at most our default
	consumed  int    // bytes of DATA not yet given back to the connection's window
	status    [statusRing]int16
	started   [statusRing]int64 // monotonic ns; 0 for a free slot
	settled   bool
	dirty     bool
	streamed  bool   // bodies are sent by the mode
	window    int    // what the peer takes on all streams
	initial   int    // and on a new one
	http1     *http1 // nil: HTTP/2
}

// Stream ids go up by two; a slot is free long before its turn comes again.
const statusRing = 1 << 12

func slot(stream uint32) uint32 { return stream >> 1 & (statusRing - 1) }

type target struct {
	port   int
	config *tls.Config
	fields []hpack.HeaderField
	window uint32 // of each stream
	// Prefix and length of the bearer tokens, a different one for each connection; no prefix: none.
	tokens     string
	tokenBytes int
	body       []byte // of every request; shared
	streamed   bool   // bodies are sent by the mode
}

// fieldsOf are the fields of the requests of one connection.
func (t *target) fieldsOf(index int) []hpack.HeaderField {
	number := fmt.Sprintf("%06d", index)
	fields := slices.Clone(t.fields)
	for i, field := range fields {
		if field.Name == ":path" {
			fields[i].Value = strings.ReplaceAll(field.Value, "%s", number)
		}
	}
	if t.tokens == "" {
		return fields
	}
	token := fmt.Sprintf("%s.%s.", t.tokens, number)
	token += strings.Repeat("x", max(0, t.tokenBytes-len(token)))
	return append(fields, hpack.HeaderField{Name: "authorization", Value: "Bearer " + token})
}

// connect opens a connection and waits for the peer's SETTINGS. The socket is non-blocking afterwards.
func (t *target) connect(index int, m mode) (*connection, error) {
	s, tlsConn, err := dial(t.port, t.config)
	if err != nil {
		return nil, err
	}
	if wanted := t.config.NextProtos[0]; tlsConn.ConnectionState().NegotiatedProtocol != wanted {
		return nil, fmt.Errorf("the peer does not speak %s", wanted)
	}
	c := &connection{
		index: index, socket: s, tls: tlsConn, mode: m, body: t.body, nextID: 1, maxOpen: defaultMaxStreams,
		streamed: t.streamed, window: defaultWindow, initial: defaultWindow,
	}
	c.in = make([]byte, 64<<10)
	if t.config.NextProtos[0] == protocolHTTP1 {
		c.http1 = &http1{request: requestText(t.fieldsOf(index), t.body)}
		c.maxOpen = 1
		return c, c.unblock()
	}
	tableSize := uint32(defaultTableSize)
	c.out = append(c.out, preface...)
	c.out = appendSettings(c.out, setting{settingEnablePush, 0}, setting{settingInitialWindowSize, t.window})
	c.out = appendWindowUpdate(c.out, 0, connectionWindow-defaultWindow)
	if err := c.write(); err != nil {
		return nil, err
	}
	for !c.settled {
		if err := c.read(&tableSize); err != nil {
			return nil, err
		}
	}
	c.tableSize = min(tableSize, defaultTableSize)
	c.encode(t.fieldsOf(index), c.tableSize)
	if err := c.unblock(); err != nil {
		return nil, err
	}
	return c, c.write()
}

func (c *connection) unblock() error {
	c.socket.nonblocking = true
	return syscall.SetNonblock(c.socket.fd, true)
}

// encode makes the two header blocks. A peer that keeps no table gets literals each time.
func (c *connection) encode(fields []hpack.HeaderField, tableSize uint32) {
	var buffer bytes.Buffer
	encoder := hpack.NewEncoder(&buffer)
	encoder.SetMaxDynamicTableSizeLimit(tableSize)
	for _, block := range []*[]byte{&c.first, &c.later} {
		buffer.Reset()
		for _, field := range fields {
			_ = encoder.WriteField(field)
		}
		*block = bytes.Clone(buffer.Bytes())
	}
}

// request opens a stream; the bytes leave with the next write. since is when it should have been sent.
func (c *connection) request(since int64) error {
	if c.http1 != nil {
		c.out = append(c.out, c.http1.request...)
	} else {
		c.requestHTTP2()
	}
	i := slot(c.nextID)
	if c.started[i] != 0 {
		return errors.New("a stream is open for too long")
	}
	c.started[i] = since
	c.nextID += 2
	c.open++
	c.dirty = true
	return nil
}

func (c *connection) requestHTTP2() {
	block := c.later
	if c.nextID == 1 {
		block = c.first
	}
	flags := byte(flagEndHeaders)
	if len(c.body) == 0 && !c.streamed {
		flags |= flagEndStream
	}
	c.out = appendFrameHeader(c.out, len(block), frameHeaders, flags, c.nextID)
	c.out = append(c.out, block...)
	if len(c.body) > 0 {
		c.out = append(appendFrameHeader(c.out, len(c.body), frameData, flagEndStream, c.nextID), c.body...)
	}
}

func (c *connection) write() error {
	c.dirty = false
	if len(c.out) == 0 {
		return nil
	}
	_, err := c.tls.Write(c.out)
	c.out = c.out[:0]
	return err
}

// receive takes everything that has arrived.
func (c *connection) receive() error {
	c.socket.drained = false
	for {
		err := c.read(nil)
		if err == (again{}) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (c *connection) read(tableSize *uint32) error {
	n, err := c.tls.Read(c.in[c.inLen:])
	if err != nil {
		return err
	}
	if c.http1 != nil {
		rest, err := c.answers(c.in[:c.inLen+n])
		c.inLen = copy(c.in, rest)
		return err
	}
	rest, err := eachFrame(c.in[:c.inLen+n], func(kind, flags byte, stream uint32, payload []byte) error {
		return c.frame(kind, flags, stream, payload, tableSize)
	})
	c.inLen = copy(c.in, rest)
	return err
}

func (c *connection) frame(kind, flags byte, stream uint32, payload []byte, tableSize *uint32) error {
	switch kind {
	case frameData:
		c.consumed += len(payload)
		if c.consumed > connectionWindow/4 {
			c.out = appendWindowUpdate(c.out, 0, c.consumed)
			c.consumed = 0
			c.dirty = true
		}
		c.mode.data(c, stream, payload)
		if flags&flagEndStream != 0 {
			c.end(stream)
		}
	case frameHeaders:
		if m, ok := c.mode.(headerMode); ok {
			m.headers(c, stream, headerBlock(flags, payload))
		}
		// Trailers do not change the status.
		if i := slot(stream); c.status[i] == 0 {
			c.status[i] = int16(statusOf(headerBlock(flags, payload)))
		}
		if flags&flagEndStream != 0 {
			c.end(stream)
		}
	case frameRSTStream:
		c.status[slot(stream)] = -int16(payload[3]) - 1 // RFC 9113 section 7: all codes are small
		c.end(stream)
	case frameSettings:
		if flags&flagAck != 0 {
			break
		}
		eachSetting(payload, func(id uint16, value uint32) {
			if id == settingHeaderTableSize && tableSize != nil {
				*tableSize = value
			}
			if id == settingMaxStreams {
				c.maxOpen = int(min(value, 1<<20))
			}
			if id == settingInitialWindowSize {
				if m, ok := c.mode.(sendMode); ok && c.open > 0 {
					m.window(c, c.nextID-2, int(value)-c.initial)
				}
				c.initial = int(value)
			}
		})
		c.settled = true
		c.out = appendFrameHeader(c.out, 0, frameSettings, flagAck, 0)
		c.dirty = true
	case framePing:
		if flags&flagAck == 0 {
			c.out = appendFrameHeader(c.out, len(payload), framePing, flagAck, 0)
			c.out = append(c.out, payload...)
			c.dirty = true
		}
	case frameWindowUpdate:
		n := int(binary.BigEndian.Uint32(payload) & 0x7fffffff)
		if stream == 0 {
			c.window += n
		} else if m, ok := c.mode.(sendMode); ok {
			m.window(c, stream, n)
		}
	case frameGoAway:
		return fmt.Errorf("GOAWAY %x", payload)
	}
	return nil
}

func (c *connection) end(stream uint32) {
	c.open--
	c.mode.ended(c, stream, int(c.status[slot(stream)]))
	c.started[slot(stream)] = 0
	c.status[slot(stream)] = 0
}

// statusOf reads :status, which comes first, without the peer's table: servers take 200 from HPACK's static table.
func statusOf(block []byte) int {
	for len(block) > 0 && block[0]&0xe0 == 0x20 { // a change of the table's size
		size := block[0]&0x1f == 0x1f
		block = block[1:]
		for size && len(block) > 0 {
			size = block[0]&0x80 != 0
			block = block[1:]
		}
	}
	if len(block) == 0 {
		return -1
	}
	if i := int(block[0]) - 0x88; i >= 0 && i < len(staticStatus) {
		return staticStatus[i]
	}
	return 1 // something else
}

// RFC 7541 appendix A, entries 8 to 14.
var staticStatus = [...]int{200, 204, 206, 304, 400, 404, 500}

func statusText(status int) string {
	if status < 0 {
		return fmt.Sprintf("RST_STREAM with code %d", -status-1)
	}
	if status < 100 {
		return "a status that is not in HPACK's static table"
	}
	return fmt.Sprintf("status %d", status)
}
