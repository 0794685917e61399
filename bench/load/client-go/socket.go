// A TCP socket without the Go scheduler: blocking for the handshake, then driven by the loop. Go's own poller wakes a
// goroutine up to a millisecond late, which would drown what is measured here.
package main

import (
	"crypto/tls"
	"net"
	"syscall"
	"time"
)

// again makes crypto/tls keep what it has read of a record and try again later.
type again struct{}

func (again) Error() string   { return "no more data for now" }
func (again) Timeout() bool   { return true }
func (again) Temporary() bool { return true }

type socket struct {
	fd          int
	nonblocking bool
	drained     bool   // the last read took all there was
	unsent      []byte // crypto/tls forgives no short write, so this takes what the kernel did not
}

func (s *socket) Read(p []byte) (int, error) {
	if s.drained {
		return 0, again{}
	}
	for {
		n, err := syscall.Read(s.fd, p)
		if err == syscall.EINTR {
			continue
		}
		if err == syscall.EAGAIN {
			s.drained = true
			return 0, again{}
		}
		if err != nil {
			return 0, err
		}
		if n == 0 {
			return 0, net.ErrClosed
		}
		s.drained = s.nonblocking && n < len(p)
		return n, nil
	}
}

func (s *socket) Write(p []byte) (int, error) {
	if len(s.unsent) > 0 {
		s.unsent = append(s.unsent, p...)
		return len(p), nil
	}
	for sent := 0; sent < len(p); {
		n, err := syscall.Write(s.fd, p[sent:])
		if err == syscall.EINTR {
			continue
		}
		if err == syscall.EAGAIN {
			s.unsent = append(s.unsent, p[sent:]...)
			break
		}
		if err != nil {
			return sent, err
		}
		sent += n
	}
	return len(p), nil
}

// flush sends what the kernel did not take before.
func (s *socket) flush() error {
	rest := s.unsent
	s.unsent = nil
	_, err := s.Write(rest)
	return err
}

func (s *socket) Close() error                     { return syscall.Close(s.fd) }
func (s *socket) LocalAddr() net.Addr              { return nil }
func (s *socket) RemoteAddr() net.Addr             { return nil }
func (s *socket) SetDeadline(time.Time) error      { return nil }
func (s *socket) SetReadDeadline(time.Time) error  { return nil }
func (s *socket) SetWriteDeadline(time.Time) error { return nil }

// dial opens a TLS connection to 127.0.0.1 and completes the handshake, blocking.
func dial(port int, config *tls.Config) (*socket, *tls.Conn, error) {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	s := &socket{fd: fd}
	if err := syscall.Connect(fd, &syscall.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		s.Close()
		return nil, nil, err
	}
	if err := syscall.SetsockoptInt(fd, syscall.IPPROTO_TCP, syscall.TCP_NODELAY, 1); err != nil {
		s.Close()
		return nil, nil, err
	}
	t := tls.Client(s, config)
	if err := t.Handshake(); err != nil {
		s.Close()
		return nil, nil, err
	}
	return s, t, nil
}
