// New connections, one after the other in each worker: TCP, TLS with a client certificate, SETTINGS both ways.
package main

import (
	"sync"
	"sync/atomic"
	"time"
)

type noMode struct{}

func (noMode) data(*connection, uint32, []byte) {}
func (noMode) ended(*connection, uint32, int)   {}

func handshakes(o *options) error {
	t, err := o.target()
	if err != nil {
		return err
	}
	print(map[string]bool{"ready": true})
	waitForLine()
	var count atomic.Int64
	var group sync.WaitGroup
	start := now()
	end := start + int64(o.seconds*float64(time.Second))
	for range o.workers {
		group.Go(func() {
			for now() < end {
				// The peer's SETTINGS show that it has verified the certificate: in TLS 1.3 the client is done before.
				c, err := t.connect(0, noMode{})
				if err != nil {
					fail(err)
				}
				c.socket.Close()
				count.Add(1)
			}
		})
	}
	group.Wait()
	print(map[string]any{"handshakes": count.Load(), "seconds": float64(now()-start) / 1e9})
	return nil
}
