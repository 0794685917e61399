// Many open watches; counts the events that reach them.
package main

import (
	"bytes"
	"fmt"
	"time"
)

type watchMode struct {
	events int // newlines seen: one for each event
	ends   int
	status int
}

func (m *watchMode) data(_ *connection, _ uint32, payload []byte) {
	m.events += bytes.Count(payload, newline)
}

func (m *watchMode) ended(_ *connection, _ uint32, status int) {
	m.ends++
	m.status = status
}

var newline = []byte("\n")

const (
	// Watches opened before the first of them is answered: a herd, but not all at once.
	openingAtOnce = 256
	// A gateway with its memory at the limit is slow, not dead.
	openTimeout = 120 * time.Second
)

// watch opens connections x streams watches, prints a line when each has its first event, and again each time when every
// watch has one more.
func watch(o *options) error {
	t, err := o.target()
	if err != nil {
		return err
	}
	l, err := newLoop()
	if err != nil {
		return err
	}
	m := &watchMode{}
	total := o.connections * o.streams
	asked := 0
	deadline := now() + int64(openTimeout)
	for i := range o.connections {
		c, err := t.connect(i, m)
		if err != nil {
			return fmt.Errorf("connection %d: %w", i, err)
		}
		if c.maxOpen < o.streams {
			return fmt.Errorf("the peer allows only %d streams", c.maxOpen)
		}
		if err := l.add(c); err != nil {
			return err
		}
		for range o.streams {
			if err := c.request(now()); err != nil {
				return err
			}
			asked++
		}
		if err := c.write(); err != nil {
			return err
		}
		for m.events < asked-openingAtOnce || i == o.connections-1 && m.events < total {
			if err := m.step(l, deadline, total); err != nil {
				return err
			}
		}
	}
	exitAtEOF()
	print(map[string]any{"open": m.events, "micros": now() / 1000})
	for wanted := 2 * total; ; wanted += total {
		for m.events < wanted {
			if err := m.step(l, 1<<62, total); err != nil {
				return err
			}
		}
		print(map[string]any{"received": total, "micros": now() / 1000})
	}
}

func (m *watchMode) step(l *loop, deadline int64, total int) error {
	if err := l.wait(now() + int64(time.Second)); err != nil {
		return err
	}
	if m.ends > 0 {
		return fmt.Errorf("%d watches ended, the last: %s", m.ends, statusText(m.status))
	}
	if now() > deadline {
		return fmt.Errorf("%d of %d watches opened", m.events, total)
	}
	return nil
}
