// Downloads of large lists, as fast as they come or at a reader's pace.
package main

import (
	"fmt"
	"time"
)

type listMode struct {
	reads   []reader
	bytes   int64
	done    int
	failure error
	pace    int
	again   bool // start the next list when one ends
	turn    int
	next    int64
}

type reader struct {
	stream uint32
	unread int // taken, not yet given back to the stream's window
	due    int64
}

// The window goes back in parts: HAProxy's and Go's clients do the same.
const windowStep = streamWindow / 4

func (m *listMode) data(c *connection, stream uint32, payload []byte) {
	m.bytes += int64(len(payload))
	r := &m.reads[c.index]
	r.unread += len(payload)
	if m.pace == 0 && r.unread >= windowStep {
		m.give(c, r, r.unread)
	}
}

func (m *listMode) give(c *connection, r *reader, n int) {
	c.out = appendWindowUpdate(c.out, r.stream, n)
	c.dirty = true
	r.unread -= n
}

func (m *listMode) ended(c *connection, _ uint32, status int) {
	if status != 200 {
		m.failure = fmt.Errorf("a list ended: %s", statusText(status))
		return
	}
	m.done++
	if m.again {
		m.start(c)
	}
}

func (m *listMode) start(c *connection) {
	m.reads[c.index] = reader{stream: c.nextID, due: now()}
	if err := c.request(now()); err != nil {
		m.failure = err
	}
}

// list downloads one list on each connection and prints the time; with -pace it goes on until stdin ends.
func list(o *options) error {
	t, err := o.target()
	if err != nil {
		return err
	}
	if o.pace > 0 {
		t.window = pacedWindow
	}
	l, err := newLoop()
	if err != nil {
		return err
	}
	m := &listMode{reads: make([]reader, o.connections), pace: o.pace, again: o.lists == 0}
	if err := l.open(t, o.connections, m); err != nil {
		return err
	}
	for {
		print(map[string]bool{"ready": true})
		waitForLine()
		if m.again {
			exitAtEOF()
		}
		start := now()
		m.bytes, m.done = 0, 0
		for _, c := range l.connections {
			m.start(c)
			if err := c.write(); err != nil {
				return err
			}
		}
		for m.again || m.done < len(l.connections) {
			if err := m.step(l); err != nil {
				return err
			}
		}
		seconds := float64(now()-start) / 1e9
		print(map[string]any{"bytes": m.bytes, "seconds": seconds, "startMicros": start / 1000, "endMicros": now() / 1000})
	}
}

const (
	// Each connection reads once in this time, and each at a moment of its own.
	paceStep = 10 * time.Millisecond
	// A reader with a pace has small buffers; otherwise it would only be slow after the first megabytes.
	pacedWindow = 512 << 10
)

func (m *listMode) step(l *loop) error {
	if m.pace == 0 {
		if err := l.wait(now() + int64(time.Second)); err != nil {
			return err
		}
		return m.failure
	}
	for now() < m.next {
		if err := l.wait(m.next); err != nil {
			return err
		}
	}
	at := now()
	c := l.connections[m.turn%len(l.connections)]
	m.turn++
	m.next = max(m.next+int64(paceStep)/int64(len(l.connections)), at-int64(paceStep))
	r := &m.reads[c.index]
	credit := int(float64(at-r.due) / 1e9 * float64(m.pace))
	if n := min(credit, r.unread); n > 0 {
		m.give(c, r, n)
		if err := c.write(); err != nil {
			return err
		}
	}
	r.due = at
	return m.failure
}
