// Agents that all list the same, each on a connection of its own: again at once after an answer, and after a refusal when
// client-go would: at its Retry-After, or, without one, when the program that was refused tries again, about a second later.
package main

import (
	"math/rand/v2"
	"strconv"
	"time"

	"golang.org/x/net/http2/hpack"
)

// Without a Retry-After an agent comes back after this, half of it more or less.
const comesBackAfter = time.Second

type fleetResult struct {
	Requests int   `json:"requests"`
	Listed   int   `json:"listed"`
	Refused  int   `json:"refused"`
	Later    int   `json:"refusedWithRetryAfter"`
	Other    int   `json:"other"`
	Bytes    int64 `json:"bytes"`
}

type agent struct {
	decoder    *hpack.Decoder
	unread     int   // taken, not yet given back to the stream's window
	due        int64 // when it sends its next request; 0 while one is open
	status     string
	retryAfter int
}

type fleetMode struct {
	agents  []*agent
	counts  fleetResult
	failure error
}

func newAgent() *agent {
	a := &agent{}
	a.decoder = hpack.NewDecoder(defaultTableSize, func(f hpack.HeaderField) {
		switch f.Name {
		case ":status":
			a.status = f.Value
		case "retry-after":
			a.retryAfter, _ = strconv.Atoi(f.Value)
		}
	})
	return a
}

func (m *fleetMode) headers(c *connection, _ uint32, block []byte) {
	if _, err := m.agents[c.index].decoder.Write(block); err != nil {
		m.failure = err
	}
}

func (m *fleetMode) data(c *connection, stream uint32, payload []byte) {
	m.counts.Bytes += int64(len(payload))
	a := m.agents[c.index]
	a.unread += len(payload)
	if a.unread >= windowStep {
		c.out = appendWindowUpdate(c.out, stream, a.unread)
		c.dirty = true
		a.unread = 0
	}
}

func (m *fleetMode) ended(c *connection, _ uint32, _ int) {
	a := m.agents[c.index]
	wait := time.Duration(float64(comesBackAfter) * (0.5 + rand.Float64()))
	switch a.status {
	case "200":
		m.counts.Listed++
		wait = 0
	case "429":
		m.counts.Refused++
		if a.retryAfter > 0 {
			m.counts.Later++
			wait = time.Duration(a.retryAfter) * time.Second
		}
	default:
		m.counts.Other++
	}
	a.status, a.retryAfter, a.unread = "", 0, 0
	a.due = now() + int64(wait)
}

// fleet goes on for -seconds and then says what its agents were answered; what is in flight then is left.
func fleet(o *options) error {
	t, err := o.target()
	if err != nil {
		return err
	}
	l, err := newLoop()
	if err != nil {
		return err
	}
	m := &fleetMode{}
	for range o.connections {
		m.agents = append(m.agents, newAgent())
	}
	if err := l.open(t, o.connections, m); err != nil {
		return err
	}
	print(map[string]bool{"ready": true})
	waitForLine()
	start := now()
	end := start + int64(o.seconds*float64(time.Second))
	for _, a := range m.agents {
		a.due = start
	}
	for now() < end && m.failure == nil {
		next, err := m.send(l, end)
		if err != nil {
			return err
		}
		if err := l.wait(next); err != nil {
			return err
		}
	}
	if m.failure == nil {
		print(m.counts)
	}
	return m.failure
}

// send sends every request that is due. Returns when the next one is, `end` at the latest.
func (m *fleetMode) send(l *loop, end int64) (int64, error) {
	at, next := now(), end
	for i, a := range m.agents {
		if a.due == 0 {
			continue
		}
		if a.due > at {
			next = min(next, a.due)
			continue
		}
		a.due = 0
		m.counts.Requests++
		c := l.connections[i]
		if err := c.request(at); err != nil {
			return 0, err
		}
		if err := c.write(); err != nil {
			return 0, err
		}
	}
	return next, nil
}
