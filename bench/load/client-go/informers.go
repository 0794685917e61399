// Informers: the state first, then each change. Bytes are counted and thrown away; of one change all must get the same line.
package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"time"

	"golang.org/x/net/http2/hpack"
)

const (
	// `{"type":"`: the letter behind it says what a line of a watch is.
	kindAt = 9
	// An informer that lists asks as client-go does.
	listQuery  = "?limit=500&resourceVersion=0"
	watchQuery = "?allowWatchBookmarks=true&timeoutSeconds=7200&watch=true"
	stateQuery = watchQuery + "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
	// A list is longer than this, and has its version within it, compressed or not.
	headBytes = 512
)

var versionField = []byte(`"resourceVersion":"`)

type informersMode struct {
	path     string
	lists    bool
	encoders []informerRequests
	total    int
	begun    int
	events   int
	bytes    int64
	// Number of the change whose lines are compared; 0 for none.
	verified int
	line     []byte
	others   int
	failure  error
}

type informerRequests struct {
	fields  []hpack.HeaderField
	buffer  bytes.Buffer
	encoder *hpack.Encoder
	open    map[uint32]*informer
}

type informer struct {
	lists  bool
	begun  bool
	at     int  // bytes of this line so far
	kind   byte // of this line
	events int
	unread int
	kept   []byte // the head of a list, or a line that is compared
}

func (m *informersMode) ask(c *connection, query string, one *informer) error {
	r := &m.encoders[c.index]
	r.buffer.Reset()
	for _, field := range r.fields {
		if field.Name == ":path" {
			field.Value = m.path + query
			// Otherwise each version would be in the peer's table.
			field.Sensitive = true
		}
		_ = r.encoder.WriteField(field)
	}
	stream := c.nextID
	i := slot(stream)
	if c.started[i] != 0 {
		return fmt.Errorf("stream %d is open for too long", stream)
	}
	c.started[i] = now()
	c.nextID += 2
	c.open++
	c.dirty = true
	c.out = appendFrameHeader(c.out, r.buffer.Len(), frameHeaders, flagEndHeaders|flagEndStream, stream)
	c.out = append(c.out, r.buffer.Bytes()...)
	r.open[stream] = one
	return nil
}

func (m *informersMode) data(c *connection, stream uint32, payload []byte) {
	m.bytes += int64(len(payload))
	one := m.encoders[c.index].open[stream]
	one.unread += len(payload)
	if one.unread >= windowStep {
		c.out = appendWindowUpdate(c.out, stream, one.unread)
		c.dirty = true
		one.unread = 0
	}
	if one.lists {
		if rest := headBytes - len(one.kept); rest > 0 {
			one.kept = append(one.kept, payload[:min(rest, len(payload))]...)
		}
		return
	}
	for len(payload) > 0 {
		end := bytes.IndexByte(payload, '\n')
		part := payload
		if end >= 0 {
			part = payload[:end]
		}
		if one.at <= kindAt && one.at+len(part) > kindAt {
			one.kind = part[kindAt-one.at]
		}
		one.at += len(part)
		if m.verified > 0 && one.events == m.verified-1 && one.begun {
			one.kept = append(one.kept, part...)
		}
		if end < 0 {
			return
		}
		m.lineEnds(one)
		payload = payload[end+1:]
	}
}

func (m *informersMode) lineEnds(one *informer) {
	line := one.kept
	one.kept = one.kept[:0]
	one.at = 0
	switch {
	case one.kind == 'E':
		m.failure = fmt.Errorf("a watch brought an error")
	case one.kind == 'B':
		// The first one marks the end of the state; later ones come once a minute.
		if !one.begun {
			one.begun = true
			m.begun++
		}
	case one.begun:
		one.events++
		m.events++
		if one.events == m.verified {
			m.compare(line)
		}
	}
}

func (m *informersMode) compare(line []byte) {
	if m.line == nil {
		m.line = bytes.Clone(line)
	} else if !bytes.Equal(m.line, line) {
		m.others++
	}
}

func (m *informersMode) ended(c *connection, stream uint32, status int) {
	one := m.encoders[c.index].open[stream]
	delete(m.encoders[c.index].open, stream)
	if status != 200 || !one.lists {
		m.failure = fmt.Errorf("a list or a watch ended: %s", statusText(status))
		return
	}
	head := plainHead(one.kept)
	at := bytes.Index(head, versionField)
	if at < 0 {
		m.failure = fmt.Errorf("a list has no version in its first %d bytes", headBytes)
		return
	}
	version, _, _ := bytes.Cut(head[at+len(versionField):], []byte{'"'})
	m.begun++
	m.failure = m.ask(c, watchQuery+"&resourceVersion="+string(version), &informer{begun: true})
}

// plainHead is what the beginning of a list is, which may be compressed: as much as can be read of it.
func plainHead(kept []byte) []byte {
	unpacked, err := gzip.NewReader(bytes.NewReader(kept))
	if err != nil {
		return kept
	}
	plain := make([]byte, headBytes)
	n, _ := io.ReadFull(unpacked, plain)
	return plain[:n]
}

// informers opens the connections, and prints a line. After a line of stdin connections x streams informers begin, so many at once as the flag says; a line says
// when all have their state, and one each time when all have one more change.
func informers(o *options) error {
	t, err := o.target()
	if err != nil {
		return err
	}
	l, err := newLoop()
	if err != nil {
		return err
	}
	m := &informersMode{path: o.path, lists: o.lists > 0, total: o.connections * o.streams, verified: o.verified}
	m.encoders = make([]informerRequests, o.connections)
	if err := l.open(t, o.connections, m); err != nil {
		return err
	}
	for i, c := range l.connections {
		if c.maxOpen < o.streams {
			return fmt.Errorf("the peer allows only %d streams", c.maxOpen)
		}
		r := &m.encoders[i]
		r.fields = t.fieldsOf(i)
		r.encoder = hpack.NewEncoder(&r.buffer)
		r.encoder.SetMaxDynamicTableSizeLimit(c.tableSize)
		r.open = make(map[uint32]*informer, o.streams)
	}
	print(map[string]bool{"ready": true})
	waitForLine()
	exitAtEOF()
	start := now()
	query := stateQuery
	if m.lists {
		query = listQuery
	}
	for asked := 0; m.begun < m.total; {
		for ; asked < m.total && asked-m.begun < o.atOnce; asked++ {
			c := l.connections[asked%o.connections]
			if err := m.ask(c, query, &informer{lists: m.lists}); err != nil {
				return err
			}
			if err := c.write(); err != nil {
				return err
			}
		}
		if err := m.step(l); err != nil {
			return err
		}
	}
	print(map[string]any{"seconds": float64(now()-start) / 1e9, "bytes": m.bytes, "micros": now() / 1000})
	for changes := 1; ; changes++ {
		for m.events < changes*m.total {
			if err := m.step(l); err != nil {
				return err
			}
		}
		print(map[string]any{"micros": now() / 1000, "bytes": m.bytes, "line": string(m.line), "others": m.others})
	}
}

func (m *informersMode) step(l *loop) error {
	if err := l.wait(now() + int64(time.Second)); err != nil {
		return fmt.Errorf("%d of %d have begun, %d changes: %w", m.begun, m.total, m.events, err)
	}
	return m.failure
}
