// GETs of small objects for some seconds: as many as the peer can take (closed loop), or at a fixed rate, where a request's latency counts
// from the moment at which it was due, so that a slow peer cannot slow down its own measurement.
package main

import (
	"fmt"
	"math"
	"slices"
	"time"
)

type loadResult struct {
	Requests  int     `json:"requests"`
	Errors    int     `json:"errors"`
	Seconds   float64 `json:"seconds"`
	PerSecond float64 `json:"perSecond"`
	P50       float64 `json:"p50Micros"`
	P90       float64 `json:"p90Micros"`
	P99       float64 `json:"p99Micros"`
	Max       float64 `json:"maxMicros"`
	// Latency of the request that was answered first.
	First float64 `json:"firstMicros"`
	// CLOCK_MONOTONIC, to find the same moments in a CPU profile.
	StartMicros int64 `json:"startMicros"`
	EndMicros   int64 `json:"endMicros"`
}

type loadMode struct {
	status    int
	left      int   // closed loop: requests not yet sent
	until     int64 // closed loop: none is sent after it
	done      int
	errors    int
	badStatus int
	closed    bool
	latencies []int64
	failure   error
	tolerated float64
}

func (m *loadMode) data(*connection, uint32, []byte) {}

func (m *loadMode) ended(c *connection, stream uint32, status int) {
	at := now()
	m.done++
	if m.status != 0 && status != m.status {
		m.errors++
		m.badStatus = status
	}
	m.latencies = append(m.latencies, at-c.started[slot(stream)])
	if m.closed && m.left > 0 && at < m.until {
		m.left--
		if err := c.request(at); err != nil {
			m.failure = err
		}
	}
}

func load(o *options) error {
	t, err := o.target()
	if err != nil {
		return err
	}
	l, err := newLoop()
	if err != nil {
		return err
	}
	m := &loadMode{status: o.status, tolerated: o.tolerated}
	if err := l.open(t, o.connections, m); err != nil {
		return err
	}
	if o.warmUp > 0 {
		if err := m.closedLoop(l, o.warmUp, o.streams, o.seconds); err != nil {
			return err
		}
	}
	for {
		print(map[string]bool{"ready": true})
		waitForLine()
		m.done, m.errors, m.latencies = 0, 0, m.latencies[:0]
		start := now()
		if o.rate > 0 {
			err = m.openLoop(l, o.rate, time.Duration(o.seconds*float64(time.Second)))
		} else {
			requests := o.requests
			if requests == 0 {
				requests = math.MaxInt
			}
			err = m.closedLoop(l, requests, o.streams, o.seconds)
		}
		if err != nil {
			return err
		}
		m.report(start, now())
	}
}

func (m *loadMode) closedLoop(l *loop, requests, streams int, seconds float64) error {
	m.closed = true
	m.left = requests
	m.until = now() + int64(seconds*float64(time.Second))
	for _, c := range l.connections {
		for range min(streams, c.maxOpen, m.left) {
			m.left--
			if err := c.request(now()); err != nil {
				return err
			}
		}
		if err := c.write(); err != nil {
			return err
		}
	}
	for m.open(l) > 0 && m.failure == nil {
		done := m.done
		if err := l.wait(now() + int64(stuckAfter)); err != nil {
			return err
		}
		if m.done == done && now() > m.until+int64(stuckAfter) {
			return fmt.Errorf("%d requests are not answered", m.open(l))
		}
	}
	return m.failure
}

func (m *loadMode) open(l *loop) int {
	open := 0
	for _, c := range l.connections {
		open += c.open
	}
	return open
}

const stuckAfter = 20 * time.Second

// openLoop sends request n at start + n / rate, to each connection in turn.
func (m *loadMode) openLoop(l *loop, rate int, length time.Duration) error {
	m.closed = false
	total := int(int64(rate) * int64(length) / int64(time.Second))
	start := now() + int64(time.Millisecond)
	deadline := start + int64(length) + int64(stuckAfter)
	sent := 0
	for m.done < total {
		due := start + int64(sent)*int64(time.Second)/int64(rate)
		if sent == total {
			due = deadline
		}
		if at := now(); at < due {
			if err := l.wait(due); err != nil {
				return err
			}
			if at > deadline {
				return fmt.Errorf("%d of %d requests were not answered", total-m.done, total)
			}
			continue
		}
		c := l.connections[sent%len(l.connections)]
		if c.open >= c.maxOpen {
			// Full: the request waits, its clock runs.
			if err := l.wait(now() + int64(time.Millisecond)); err != nil {
				return err
			}
			continue
		}
		if err := c.request(due); err != nil {
			return err
		}
		if err := c.write(); err != nil {
			return err
		}
		sent++
	}
	return nil
}

func (m *loadMode) report(start, end int64) {
	if float64(m.errors) > m.tolerated*float64(m.done) {
		fail(fmt.Errorf("%d of %d requests failed, the last: %s", m.errors, m.done, statusText(m.badStatus)))
	}
	first := float64(m.latencies[0]) / 1000
	slices.Sort(m.latencies)
	at := func(part float64) float64 {
		return float64(m.latencies[min(int(float64(len(m.latencies))*part), len(m.latencies)-1)]) / 1000
	}
	seconds := float64(end-start) / 1e9
	print(loadResult{
		Requests: m.done, Errors: m.errors, Seconds: seconds, PerSecond: float64(m.done) / seconds,
		P50: at(0.5), P90: at(0.9), P99: at(0.99), Max: at(1), First: first, StartMicros: start / 1000, EndMicros: end / 1000,
	})
}
