// The upstream of watches and large lists: as little work for each request as it takes, so that it is never what is
// measured. A path with watch=1 is a watch, one with bytes=N a list of N bytes, everything else one small object.
package main

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http2/hpack"
)

const (
	smallBytes = 1024
	eventBytes = 1024
	// Written at once: a few TLS records.
	batchBytes  = 128 << 10
	windowPiece = 4 << 10
	reviewPath  = "/tokenreviews"
	benchGroups = `"one","two","three"`
	// A token begins with two parts that name its user: PREFIX.NUMBER.
	review = `{"status":{"authenticated":true,"user":{"username":"%s","uid":"1","groups":[%s]}}}`
)

var (
	small   = bytes.Repeat([]byte("x"), smallBytes)
	filler  = bytes.Repeat([]byte("y"), maxFrameSize)
	event   = append([]byte(`{"type":"ADDED","object":"`+strings.Repeat("z", eventBytes-29)+`"}`), '\n')
	opening = []byte("{\"type\":\"BOOKMARK\"}\n")
	// :status 200 from the static table; content-type, index 31, as a literal without indexing.
	okHeaders = append([]byte{0x88, 0x0f, 0x10, byte(len("application/json"))}, "application/json"...)
)

// request is what has come of one. Only reviews have a body that is looked at.
type request struct {
	method, path string
	body         []byte
	taken        int // of its window, not given back
}

// response is what a stream has still to send.
type response struct {
	stream uint32
	body   []byte
	filler int // bytes of a large list after body
	watch  bool
	gone   bool
	window int
}

type serverConnection struct {
	mutex   sync.Mutex
	wake    *sync.Cond
	tls     *tls.Conn
	decoder *hpack.Decoder
	method  string
	path    string
	block   []byte
	// Streams whose request has not ended.
	requests map[uint32]*request
	streams  map[uint32]*response
	queue    []*response // has something to send
	out      []byte
	window   int
	initial  int
	taken    int // of the connection's window, not given back
	read     int
	closed   bool
}

var (
	serversMutex sync.Mutex
	servers      = map[*serverConnection]bool{}
)

func upstream(o *options) error {
	kubernetes = o.kubernetes
	pair, err := tls.LoadX509KeyPair(o.cert, o.key)
	if err != nil {
		return err
	}
	config := &tls.Config{
		Certificates: []tls.Certificate{pair}, NextProtos: []string{"h2", protocolHTTP1}, DynamicRecordSizingDisabled: true,
	}
	if o.http1 {
		config.NextProtos = []string{protocolHTTP1}
	}
	http.HandleFunc("/broadcast", func(w http.ResponseWriter, _ *http.Request) {
		start := now()
		fmt.Fprintf(w, `{"watches":%d,"micros":%d,"writtenMicros":%d}`, broadcast(), start/1000, now()/1000)
	})
	go func() { fail(http.ListenAndServe(fmt.Sprintf("127.0.0.1:%d", o.admin), nil)) }()
	exitAtEOF()
	for i := o.ports - 1; i > 0; i-- {
		go func() { fail(listen(o.port+i, config)) }()
	}
	return listen(o.port, config)
}

func listen(port int, config *tls.Config) error {
	listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return err
	}
	for {
		c, err := listener.Accept()
		if err != nil {
			return err
		}
		go serve(tls.Server(c, config))
	}
}

// broadcast sends one event to every open watch and says how many there are.
func broadcast() int {
	serversMutex.Lock()
	all := make([]*serverConnection, 0, len(servers))
	for s := range servers {
		all = append(all, s)
	}
	serversMutex.Unlock()
	count := 0
	for _, s := range all {
		s.mutex.Lock()
		for _, r := range s.streams {
			if r.watch {
				s.send(r, event)
				count++
			}
		}
		s.pump(1 << 30)
		s.mutex.Unlock()
	}
	return count
}

func serve(t *tls.Conn) {
	defer t.Close()
	if err := t.Handshake(); err != nil {
		return
	}
	if t.ConnectionState().NegotiatedProtocol != "h2" {
		serveHTTP1(t)
		return
	}
	s := &serverConnection{
		tls: t, window: defaultWindow, initial: defaultWindow,
		requests: map[uint32]*request{}, streams: map[uint32]*response{},
	}
	s.wake = sync.NewCond(&s.mutex)
	s.decoder = hpack.NewDecoder(defaultTableSize, func(f hpack.HeaderField) {
		switch f.Name {
		case ":path":
			s.path = f.Value
		case ":method":
			s.method = f.Value
		}
	})
	serversMutex.Lock()
	servers[s] = true
	serversMutex.Unlock()
	defer func() {
		serversMutex.Lock()
		delete(servers, s)
		serversMutex.Unlock()
	}()
	go s.writeLarge()
	s.out = appendSettings(s.out, setting{settingMaxStreams, defaultMaxStreams}, setting{settingInitialWindowSize, 1 << 20})
	s.out = appendWindowUpdate(s.out, 0, 1<<30-defaultWindow)
	s.readAll()
	s.mutex.Lock()
	s.closed = true
	s.wake.Signal()
	s.mutex.Unlock()
}

func (s *serverConnection) readAll() {
	in := make([]byte, 32<<10)
	length, prefaceLeft := 0, len(preface)
	for {
		n, err := s.tls.Read(in[length:])
		if err != nil {
			return
		}
		data := in[:length+n]
		skip := min(prefaceLeft, len(data))
		prefaceLeft -= skip
		s.mutex.Lock()
		rest, err := eachFrame(data[skip:], s.frame)
		if err == nil {
			err = s.pump(batchBytes)
		}
		if len(s.queue) > 0 {
			s.wake.Signal()
		}
		s.mutex.Unlock()
		if err != nil {
			return
		}
		length = copy(in, rest)
	}
}

// writeLarge goes on where one batch was not enough, so that the reader can take window updates meanwhile.
func (s *serverConnection) writeLarge() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for !s.closed {
		before := s.window
		if s.pump(batchBytes) != nil {
			return
		}
		if len(s.queue) == 0 || s.window == before {
			s.wake.Wait()
			continue
		}
		s.mutex.Unlock()
		s.mutex.Lock()
	}
}

func (s *serverConnection) frame(kind, flags byte, stream uint32, payload []byte) error {
	switch kind {
	case frameHeaders, frameContinuation:
		if kind == frameHeaders {
			payload = headerBlock(flags, payload)
		}
		s.block = append(s.block, payload...)
		if flags&flagEndHeaders != 0 {
			if _, err := s.decoder.Write(s.block); err != nil {
				return err
			}
			s.block = s.block[:0]
			// Trailers belong to what is there.
			if s.requests[stream] == nil {
				s.requests[stream] = &request{method: s.method, path: s.path}
			}
		}
		if kind == frameHeaders && flags&flagEndStream != 0 {
			s.answer(stream)
		}
	case frameData:
		s.giveBack(stream, len(payload), flags)
		if r := s.requests[stream]; r != nil && strings.HasSuffix(r.path, "reviews") {
			r.body = append(r.body, payload...)
		}
		if flags&flagEndStream != 0 {
			s.answer(stream)
		}
	case frameRSTStream:
		s.forget(stream)
	case frameSettings:
		if flags&flagAck == 0 {
			eachSetting(payload, s.setting)
			s.out = appendFrameHeader(s.out, 0, frameSettings, flagAck, 0)
		}
	case framePing:
		if flags&flagAck == 0 {
			s.out = append(appendFrameHeader(s.out, len(payload), framePing, flagAck, 0), payload...)
		}
	case frameWindowUpdate:
		n := int(payload[0]&0x7f)<<24 | int(payload[1])<<16 | int(payload[2])<<8 | int(payload[3])
		if stream == 0 {
			s.window += n
		} else if r := s.streams[stream]; r != nil {
			r.window += n
		}
	}
	return nil
}

// giveBack returns windows in pieces of 4 KiB, as Go's servers do.
func (s *serverConnection) giveBack(stream uint32, length int, flags byte) {
	s.taken += length
	if s.taken >= windowPiece {
		s.out = appendWindowUpdate(s.out, 0, s.taken)
		s.taken = 0
	}
	if r := s.requests[stream]; r != nil && flags&flagEndStream == 0 {
		r.taken += length
		if r.taken >= windowPiece {
			s.out = appendWindowUpdate(s.out, stream, r.taken)
			r.taken = 0
		}
	}
}

func (s *serverConnection) setting(id uint16, value uint32) {
	if id != settingInitialWindowSize {
		return
	}
	for _, r := range s.streams {
		r.window += int(value) - s.initial
	}
	s.initial = int(value)
}

func (s *serverConnection) forget(stream uint32) {
	delete(s.requests, stream)
	if r := s.streams[stream]; r != nil {
		r.gone = true
		delete(s.streams, stream)
	}
}

func (s *serverConnection) answer(stream uint32) {
	path, body := "", []byte(nil)
	asked := s.requests[stream]
	if asked != nil {
		path, body = asked.path, asked.body
	}
	delete(s.requests, stream)
	if kubernetes && asked != nil && s.answerKubernetes(stream, asked) {
		return
	}
	s.out = appendFrameHeader(s.out, len(okHeaders), frameHeaders, flagEndHeaders, stream)
	s.out = append(s.out, okHeaders...)
	r := &response{stream: stream, window: s.initial}
	s.streams[stream] = r
	if strings.Contains(path, "watch=1") {
		r.watch = true
		s.send(r, opening)
	} else if _, size, found := strings.Cut(path, "bytes="); found {
		r.filler, _ = strconv.Atoi(size)
		s.send(r, nil)
	} else if strings.HasSuffix(path, reviewPath) {
		s.send(r, reviewOf(body))
	} else {
		s.send(r, small)
	}
}

// reviewOf answers a TokenReview.
func reviewOf(body []byte) []byte {
	user, groups := userOf(body)
	return fmt.Appendf(nil, review, user, groups)
}

// userOf reads the user's name out of the token of a TokenReview. All tokens of a service account are of one user.
func userOf(body []byte) (name, groups string) {
	var asked struct{ Spec struct{ Token string } }
	_ = json.Unmarshal(body, &asked)
	if parts := strings.SplitN(asked.Spec.Token, ".", 3); len(parts) == 3 {
		switch {
		case strings.HasPrefix(parts[0], "system:serviceaccount:"):
			return parts[0], `"system:serviceaccounts","system:authenticated"`
		case strings.HasPrefix(parts[0], "system:node:"):
			return parts[0] + "." + parts[1], `"system:nodes","system:authenticated"`
		}
		return parts[0] + "." + parts[1], benchGroups
	}
	return "bench", benchGroups
}

func (s *serverConnection) send(r *response, body []byte) {
	if len(r.body) == 0 {
		r.body = body
		s.queue = append(s.queue, r)
	} else {
		r.body = append(bytes.Clone(r.body), body...)
	}
}

// pump writes what the windows allow, a frame of each stream in turn, up to about `limit` bytes.
func (s *serverConnection) pump(limit int) error {
	blocked := 0
	for len(s.queue) > 0 && blocked < len(s.queue) && limit > 0 {
		r := s.queue[0]
		s.queue = s.queue[1:]
		if r.gone {
			continue
		}
		n := min(r.window, s.window, maxFrameSize, max(len(r.body), r.filler))
		if n <= 0 && len(r.body)+r.filler > 0 {
			s.queue = append(s.queue, r)
			blocked++
			continue
		}
		blocked = 0
		limit -= n + frameHeaderLen
		s.data(r, n)
		if len(s.out) >= batchBytes {
			if err := s.flush(); err != nil {
				return err
			}
		}
	}
	return s.flush()
}

func (s *serverConnection) data(r *response, n int) {
	chunk := filler
	if len(r.body) > 0 {
		n = min(n, len(r.body))
		chunk, r.body = r.body, r.body[n:]
	} else {
		r.filler -= n
	}
	flags := byte(0)
	more := len(r.body)+r.filler > 0
	if !more && !r.watch {
		flags = flagEndStream
		delete(s.streams, r.stream)
	}
	s.out = append(appendFrameHeader(s.out, n, frameData, flags, r.stream), chunk[:n]...)
	r.window -= n
	s.window -= n
	if more {
		s.queue = append(s.queue, r)
	}
}

func (s *serverConnection) flush() error {
	if len(s.out) == 0 {
		return nil
	}
	// A proxy that has gone must not stop a broadcast.
	_ = s.tls.SetWriteDeadline(time.Now().Add(time.Minute))
	_, err := s.tls.Write(s.out)
	s.out = s.out[:0]
	return err
}
