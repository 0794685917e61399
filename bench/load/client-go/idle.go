// Connections without requests, which stay open.
package main

import (
	"fmt"
	"time"
)

func idle(o *options) error {
	t, err := o.target()
	if err != nil {
		return err
	}
	l, err := newLoop()
	if err != nil {
		return err
	}
	for i := range o.connections {
		c, err := t.connect(i, noMode{})
		if err != nil {
			return fmt.Errorf("connection %d: %w", i, err)
		}
		if err := l.add(c); err != nil {
			return err
		}
	}
	exitAtEOF()
	print(map[string]int{"open": o.connections})
	for {
		if err := l.wait(now() + int64(time.Second)); err != nil {
			return err
		}
	}
}
