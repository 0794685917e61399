// Uploads of large bodies, one at a time on each connection, as fast as the peer's windows and the socket allow.
package main

import (
	"bytes"
	"fmt"
	"strconv"
	"time"

	"golang.org/x/net/http2/hpack"
)

// What is encrypted before the socket is asked again.
const uploadBatch = 4

type uploadMode struct {
	bodies  []body
	done    int
	failure error
}

type body struct {
	left   int // not sent
	window int // of its stream
}

func (m *uploadMode) data(*connection, uint32, []byte) {}

func (m *uploadMode) ended(c *connection, _ uint32, status int) {
	if left := m.bodies[c.index].left; status != 200 || left > 0 {
		m.failure = fmt.Errorf("an upload ended with %d bytes unsent: %s", left, statusText(status))
	}
	m.done++
}

func (m *uploadMode) window(c *connection, _ uint32, n int) { m.bodies[c.index].window += n }

func (m *uploadMode) send(c *connection) error {
	b := &m.bodies[c.index]
	for b.left > 0 && len(c.socket.unsent) == 0 {
		for range uploadBatch {
			n := min(b.left, b.window, c.window, maxFrameSize)
			if n <= 0 {
				break
			}
			b.left -= n
			b.window -= n
			c.window -= n
			flags := byte(0)
			if b.left == 0 {
				flags = flagEndStream
			}
			c.out = append(appendFrameHeader(c.out, n, frameData, flags, c.nextID-2), uploaded[:n]...)
		}
		if len(c.out) == 0 {
			return nil
		}
		if err := c.write(); err != nil {
			return err
		}
	}
	return nil
}

var uploaded = bytes.Repeat([]byte("u"), maxFrameSize)

// upload sends one body of -upload bytes on each connection and prints the time until all are answered.
func upload(o *options) error {
	t, err := o.target()
	if err != nil {
		return err
	}
	t.streamed = true
	t.fields = append(t.fields, hpack.HeaderField{Name: "content-length", Value: strconv.Itoa(o.upload)})
	l, err := newLoop()
	if err != nil {
		return err
	}
	m := &uploadMode{bodies: make([]body, o.connections)}
	if err := l.open(t, o.connections, m); err != nil {
		return err
	}
	for {
		print(map[string]bool{"ready": true})
		waitForLine()
		start := now()
		m.done = 0
		for i, c := range l.connections {
			m.bodies[i] = body{left: o.upload, window: c.initial}
			if err := c.request(now()); err != nil {
				return err
			}
			if err := m.send(c); err != nil {
				return err
			}
		}
		for m.done < len(l.connections) {
			if err := l.wait(now() + int64(time.Second)); err != nil {
				return err
			}
			if m.failure != nil {
				return m.failure
			}
		}
		print(map[string]any{"bytes": o.upload * len(l.connections), "seconds": float64(now()-start) / 1e9})
	}
}
