// Connections without requests, which stay open.
package main

import (
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
	if err := l.open(t, o.connections, noMode{}); err != nil {
		return err
	}
	exitAtEOF()
	print(map[string]int{"open": o.connections})
	for {
		if err := l.wait(now() + int64(time.Second)); err != nil {
			return err
		}
	}
}
