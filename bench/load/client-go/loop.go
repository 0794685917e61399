// One thread that waits for all connections at once, with a clock of nanoseconds.
package main

import (
	"fmt"
	"syscall"
	"time"
	"unsafe"
)

const (
	sysEpollPwait2  = 441 // amd64 and arm64
	clockMonotonic  = 1
	prSetTimerSlack = 29
)

type loop struct {
	epoll       int
	connections []*connection
	events      [256]syscall.EpollEvent
}

func newLoop() (*loop, error) {
	fd, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
	if err != nil {
		return nil, err
	}
	// Otherwise the kernel may wake the thread 50 us late.
	if _, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, prSetTimerSlack, 1, 0); errno != 0 {
		return nil, errno
	}
	return &loop{epoll: fd}, nil
}

// open opens so many connections of the mode, one after the other.
func (l *loop) open(t *target, connections int, m mode) error {
	for i := range connections {
		c, err := t.connect(i, m)
		if err != nil {
			return fmt.Errorf("connection %d: %w", i, err)
		}
		if err := l.add(c); err != nil {
			return err
		}
	}
	return nil
}

func (l *loop) add(c *connection) error {
	l.connections = append(l.connections, c)
	// Edge-triggered: both directions at once and no further calls.
	event := syscall.EpollEvent{Events: syscall.EPOLLIN | syscall.EPOLLOUT | edgeTriggered, Fd: int32(len(l.connections) - 1)}
	return syscall.EpollCtl(l.epoll, syscall.EPOLL_CTL_ADD, c.socket.fd, &event)
}

const edgeTriggered = 1 << 31

// wait handles what arrives until the time `until` (monotonic ns) or until something has arrived.
func (l *loop) wait(until int64) error {
	timeout := max(until-now(), 0)
	spec := syscall.NsecToTimespec(timeout)
	n, _, errno := syscall.RawSyscall6(sysEpollPwait2, uintptr(l.epoll), uintptr(unsafe.Pointer(&l.events[0])),
		uintptr(len(l.events)), uintptr(unsafe.Pointer(&spec)), 0, 0)
	if errno == syscall.EINTR {
		return nil
	}
	if errno != 0 {
		return errno
	}
	for i := range l.events[:n] {
		c := l.connections[l.events[i].Fd]
		if len(c.socket.unsent) > 0 {
			if err := c.socket.flush(); err != nil {
				return err
			}
		}
		if err := c.receive(); err != nil {
			return err
		}
		if c.dirty {
			if err := c.write(); err != nil {
				return err
			}
		}
		if m, ok := c.mode.(sendMode); ok {
			if err := m.send(c); err != nil {
				return err
			}
		}
	}
	return nil
}

// now is CLOCK_MONOTONIC in ns: the same clock in every process of the machine.
func now() int64 { return clockOffset + int64(time.Since(clockStart)) }

var clockStart, clockOffset = readClock()

func readClock() (time.Time, int64) {
	var spec syscall.Timespec
	_, _, _ = syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clockMonotonic, uintptr(unsafe.Pointer(&spec)), 0)
	return time.Now(), spec.Nano()
}
