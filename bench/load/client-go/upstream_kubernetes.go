// What the upstream of attacks (-kubernetes) answers beside small objects, lists and watches: reviews of access, pods that can be read, counted
// and deleted, what a hostile pod answers through the proxy, and upgrades.
package main

import (
	"bytes"
	"fmt"
	"strings"

	"golang.org/x/net/http2/hpack"
)

var kubernetes bool

const (
	podPath = "/api/v1/namespaces/default/pods"
	podJSON = `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web-%d","namespace":"default","uid":"uid-%d",` +
		`"resourceVersion":"100","labels":{"app":"web"}},"status":{"phase":"Running","conditions":[` +
		`{"type":"PodScheduled","status":"True"},{"type":"Ready","status":"True","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`
	podCount   = 5
	bookmark   = `{"type":"BOOKMARK","object":{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"100"}}}` + "\n"
	statusJSON = `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"%s","reason":"%s","code":%d}`
	// Fields of a hostile answer.
	hostileFields = 4_500
)

// answerKubernetes says whether it has answered, or will never.
func (s *serverConnection) answerKubernetes(stream uint32, r *request) bool {
	path, query, _ := strings.Cut(r.path, "?")
	anonymous := bytes.Contains(r.body, []byte("system:anonymous"))
	switch {
	case strings.Contains(query, "bytes="):
		return false
	case strings.HasSuffix(path, "/tokenreviews"):
		if bytes.Contains(r.body, []byte(`"invalid`)) {
			s.reply(stream, "200", []byte(`{"kind":"TokenReview","apiVersion":"authentication.k8s.io/v1","status":{}}`))
			return true
		}
		return false
	case strings.HasSuffix(path, "accessreviews"):
		s.reply(stream, "201", fmt.Appendf(nil, `{"status":{"allowed":%t,"reason":"because"}}`, !anonymous))
	case strings.Contains(query, "hostile=fields"):
		s.headers(stream, "200", hostileFields)
		s.body(stream, small)
	case strings.Contains(query, "hostile=interim"):
		for range 1_000 {
			s.headers(stream, "103", 1)
		}
		s.reply(stream, "200", small)
	case strings.Contains(query, "hostile=never"):
	case strings.Contains(query, "watch="):
		s.headers(stream, "200", 0)
		w := &response{stream: stream, window: s.initial, watch: true}
		s.streams[stream] = w
		s.send(w, []byte(bookmark))
	case path == "/api/v1/pods" || path == podPath:
		if r.method == "GET" {
			s.reply(stream, "200", podList())
		} else {
			s.reply(stream, "200", fmt.Appendf(nil, statusJSON, "Success", "", 200))
		}
	case strings.HasPrefix(path, podPath+"/web-"):
		s.pod(stream, r.method, strings.TrimPrefix(path, podPath+"/web-"))
	case strings.HasPrefix(path, podPath+"/"):
		s.reply(stream, "404", fmt.Appendf(nil, statusJSON, "Failure", "NotFound", 404))
	default:
		return false
	}
	return true
}

func (s *serverConnection) pod(stream uint32, method, rest string) {
	number := 0
	_, _ = fmt.Sscanf(rest, "%d", &number)
	if method == "POST" {
		s.reply(stream, "201", fmt.Appendf(nil, statusJSON, "Success", "", 201))
		return
	}
	s.reply(stream, "200", fmt.Appendf(nil, podJSON, number, number))
}

func podList() []byte {
	items := make([]string, podCount)
	for i := range items {
		items[i] = fmt.Sprintf(podJSON, i, i)
	}
	return fmt.Appendf(nil, `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"100"},"items":[%s]}`, strings.Join(items, ","))
}

func (s *serverConnection) reply(stream uint32, status string, body []byte) {
	s.headers(stream, status, 0)
	s.body(stream, body)
}

func (s *serverConnection) body(stream uint32, body []byte) {
	r := &response{stream: stream, window: s.initial}
	s.streams[stream] = r
	s.send(r, body)
}

// headers appends HEADERS, and CONTINUATION where they are long: fields of which no table remembers anything.
func (s *serverConnection) headers(stream uint32, status string, fields int) {
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	_ = encoder.WriteField(hpack.HeaderField{Name: ":status", Value: status, Sensitive: true})
	_ = encoder.WriteField(hpack.HeaderField{Name: "content-type", Value: "application/json", Sensitive: true})
	for i := range fields {
		_ = encoder.WriteField(hpack.HeaderField{Name: fmt.Sprintf("x-field-%d", i), Value: "value", Sensitive: true})
	}
	rest, kind := block.Bytes(), byte(frameHeaders)
	for {
		n := min(len(rest), maxFrameSize)
		flags := byte(0)
		if n == len(rest) {
			flags = flagEndHeaders
		}
		s.out = append(appendFrameHeader(s.out, n, kind, flags, stream), rest[:n]...)
		rest, kind = rest[n:], frameContinuation
		if len(rest) == 0 {
			return
		}
	}
}
