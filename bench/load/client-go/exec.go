// Upgraded connections, as exec and port-forward use them, to a server that sends back what it gets: many with a little each second, or as
// much as goes through.
package main

import (
	"fmt"
	"time"

	"golang.org/x/net/http2/hpack"
)

const (
	// What a session sends each second, at a moment of its own.
	execPiece    = 1024
	execProtocol = "SPDY/3.1"
	// Upgrades that are asked for before the first of them is answered.
	upgradesAtOnce = 16
)

type execMode struct {
	upgraded int
	received int64
	left     []int // bytes that a session has still to send on its own, as fast as they go
	failure  error
}

func (m *execMode) data(_ *connection, _ uint32, payload []byte) { m.received += int64(len(payload)) }

func (m *execMode) ended(_ *connection, _ uint32, status int) {
	if status != 101 {
		m.failure = fmt.Errorf("an upgrade was answered with %s", statusText(status))
	}
	m.upgraded++
}

func (m *execMode) window(*connection, uint32, int) {}

func (m *execMode) send(c *connection) error {
	for m.left[c.index] > 0 && c.http1.upgraded && len(c.socket.unsent) == 0 {
		n := min(m.left[c.index], len(uploaded))
		m.left[c.index] -= n
		c.out = append(c.out, uploaded[:n]...)
		if err := c.write(); err != nil {
			return err
		}
	}
	return nil
}

// exec opens a session on each connection. Each then sends -upload bytes as fast as they go, until all have come back, or, without, a
// piece each second for -seconds.
func exec(o *options) error {
	o.http1 = true
	t, err := o.target()
	if err != nil {
		return err
	}
	t.fields = append(t.fields,
		hpack.HeaderField{Name: "connection", Value: "Upgrade"}, hpack.HeaderField{Name: "upgrade", Value: execProtocol})
	l, err := newLoop()
	if err != nil {
		return err
	}
	m := &execMode{left: make([]int, o.connections)}
	for i := range o.connections {
		c, err := t.connect(i, m)
		if err != nil {
			return fmt.Errorf("connection %d: %w", i, err)
		}
		if err := l.add(c); err != nil {
			return err
		}
		if err := c.request(now()); err != nil {
			return err
		}
		if err := c.write(); err != nil {
			return err
		}
		for (m.upgraded <= i-upgradesAtOnce || i == o.connections-1 && m.upgraded <= i) && m.failure == nil {
			if err := l.wait(now() + int64(time.Second)); err != nil {
				return err
			}
		}
		if m.failure != nil {
			return m.failure
		}
	}
	print(map[string]bool{"ready": true})
	waitForLine()
	start := now()
	sent, err := m.run(l, o, start)
	if err != nil {
		return err
	}
	deadline := now() + int64(stuckAfter)
	for m.received < sent {
		if err := l.wait(now() + int64(time.Second)); err != nil {
			return err
		}
		if o.upload == 0 && now() > deadline {
			return fmt.Errorf("%d of %d bytes came back", m.received, sent)
		}
	}
	print(map[string]any{"bytes": m.received, "seconds": float64(now()-start) / 1e9})
	return nil
}

// run returns how many bytes are to come back.
func (m *execMode) run(l *loop, o *options, start int64) (int64, error) {
	if o.upload > 0 {
		for i, c := range l.connections {
			m.left[i] = o.upload
			if err := m.send(c); err != nil {
				return 0, err
			}
		}
		return int64(o.upload) * int64(len(l.connections)), nil
	}
	step := int64(time.Second) / int64(len(l.connections))
	pieces := int(o.seconds * float64(len(l.connections)))
	for piece := range pieces {
		due := start + int64(piece)*step
		for now() < due {
			if err := l.wait(due); err != nil {
				return 0, err
			}
		}
		c := l.connections[piece%len(l.connections)]
		c.out = append(c.out, uploaded[:execPiece]...)
		if err := c.write(); err != nil {
			return 0, err
		}
	}
	return int64(pieces) * execPiece, nil
}
