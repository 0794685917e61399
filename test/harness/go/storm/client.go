// One client: client-go's reflector over a connection of its own, and what becomes of each of its requests.
package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

const namespace = "storm"

// counts are those since the last mark.
type counts struct {
	dials, handshakes, resumed, lists, watches int
	answers                                    map[string]int
	// When it was lost first, and when it was back last; zero: never.
	lost, back time.Time
}

type client struct {
	crowd     *crowd
	index     int
	reflector *cache.Reflector

	mutex    sync.Mutex
	counts   counts
	watching int
	// Open connections.
	connections map[net.Conn]bool
	// Closed when it is back; nil: nothing waits.
	arrived chan struct{}
}

func newClient(crowd *crowd, index int) (*client, error) {
	c := &client{crowd: crowd, index: index, connections: map[net.Conn]bool{}}
	o := crowd.options
	c.counts.answers = map[string]int{}
	config := &tls.Config{
		ServerName: o.host, InsecureSkipVerify: true, MinVersion: tls.VersionTLS12,
		VerifyConnection: func(state tls.ConnectionState) error {
			c.mutex.Lock()
			defer c.mutex.Unlock()
			c.counts.handshakes++
			if state.DidResume {
				c.counts.resumed++
			}
			return nil
		},
	}
	header := ""
	if o.tokens != "" {
		header = fmt.Sprintf("Bearer %s.%06d.%s", o.tokens, index, strings.Repeat("x", 900))
	} else {
		config.Certificates = []tls.Certificate{crowd.certificates[index%len(crowd.certificates)]}
	}
	if o.resume {
		config.ClientSessionCache = tls.NewLRUClientSessionCache(1)
	}
	// As client-go's transport/cache.go makes them, with the time limits that it sets.
	base := utilnet.SetTransportDefaults(&http.Transport{
		TLSHandshakeTimeout: 10 * time.Second,
		TLSClientConfig:     config,
		MaxIdleConnsPerHost: 25,
		DialContext:         c.dial(),
		DisableCompression:  true,
	})
	transport := &recorder{client: c, base: base, authorization: header}
	settings := &rest.Config{Host: "https://" + o.host, QPS: -1, UserAgent: "storm"}
	dynamicClient, err := dynamic.NewForConfigAndClient(settings, &http.Client{Transport: transport})
	if err != nil {
		return nil, err
	}
	resource := dynamicClient.Resource(schema.GroupVersionResource{Version: "v1", Resource: o.resource}).Namespace(namespace)
	source := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return resource.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return resource.Watch(ctx, options)
		},
	}
	store := cache.NewStore(cache.MetaNamespaceKeyFunc)
	options := cache.ReflectorOptions{Name: fmt.Sprintf("storm-%d", index)}
	c.reflector = cache.NewReflectorWithOptions(source, &unstructured.Unstructured{}, store, options)
	return c, nil
}

// dial connects from the loopback address of the client's group, to the client's own server; where no server listens to the next, as a load
// balancer would.
func (c *client) dial() func(context.Context, string, string) (net.Conn, error) {
	group := c.index / c.crowd.options.perAddress
	dialer := &net.Dialer{
		Timeout: 30 * time.Second, KeepAlive: 30 * time.Second,
		LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 1, byte(group/250), byte(1+group%250))},
	}
	return func(ctx context.Context, _, _ string) (net.Conn, error) {
		c.mutex.Lock()
		c.counts.dials++
		c.mutex.Unlock()
		var conn net.Conn
		var err error
		for i := range c.crowd.servers {
			if conn, err = dialer.DialContext(ctx, "tcp", c.crowd.servers[(c.index+i)%len(c.crowd.servers)]); err == nil {
				break
			}
		}
		if err != nil {
			return nil, err
		}
		counted := &connection{Conn: conn, client: c}
		c.mutex.Lock()
		c.connections[counted] = true
		c.mutex.Unlock()
		return counted, nil
	}
}

type connection struct {
	net.Conn
	client *client
}

func (c *connection) Close() error {
	c.client.mutex.Lock()
	delete(c.client.connections, c)
	c.client.mutex.Unlock()
	return c.Conn.Close()
}

// cut closes its connections under it.
func (c *client) cut() {
	c.mutex.Lock()
	all := make([]net.Conn, 0, len(c.connections))
	for conn := range c.connections {
		all = append(all, conn)
	}
	c.mutex.Unlock()
	for _, conn := range all {
		_ = conn.Close()
	}
}

// recorder sees each request of the client and each answer, before client-go tries again.
type recorder struct {
	client        *client
	base          http.RoundTripper
	authorization string
}

func (r *recorder) RoundTrip(request *http.Request) (*http.Response, error) {
	c := r.client
	kind := "list"
	if request.URL.Query().Get("watch") != "" {
		kind = "watch"
	}
	c.mutex.Lock()
	if kind == "list" {
		c.counts.lists++
	} else {
		c.counts.watches++
	}
	c.mutex.Unlock()
	if r.authorization != "" {
		request = request.Clone(request.Context())
		request.Header.Set("Authorization", r.authorization)
	}
	response, err := r.base.RoundTrip(request)
	if err != nil {
		c.answered(kind + " " + nameOf(err))
		return nil, err
	}
	answer := fmt.Sprintf("%s %d", kind, response.StatusCode)
	if after := response.Header.Get("Retry-After"); after != "" {
		answer += " Retry-After " + after
	}
	c.answered(answer)
	if kind == "watch" && response.StatusCode == http.StatusOK {
		c.opened()
		response.Body = &watchBody{ReadCloser: response.Body, client: c}
	}
	return response, nil
}

// CloseIdleConnections and WrappedRoundTripper: what client-go looks for in a transport.
func (r *recorder) WrappedRoundTripper() http.RoundTripper { return r.base }

type watchBody struct {
	io.ReadCloser
	client *client
	once   sync.Once
}

func (b *watchBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.once.Do(func() { b.client.ended(nameOf(err)) })
	}
	return n, err
}

func (b *watchBody) Close() error {
	b.once.Do(func() { b.client.ended("closed by the client") })
	return b.ReadCloser.Close()
}

func (c *client) answered(what string) {
	c.mutex.Lock()
	c.counts.answers[what]++
	c.mutex.Unlock()
	c.crowd.write(c.index, what)
}

func (c *client) opened() {
	c.mutex.Lock()
	c.watching++
	c.counts.back = time.Now()
	if c.arrived != nil {
		close(c.arrived)
		c.arrived = nil
	}
	c.mutex.Unlock()
	c.crowd.write(c.index, "back")
}

func (c *client) ended(why string) {
	c.mutex.Lock()
	c.watching--
	if c.counts.lost.IsZero() {
		c.counts.lost = time.Now()
	}
	c.counts.answers["watch ended: "+why]++
	c.mutex.Unlock()
	c.crowd.write(c.index, "lost: "+why)
}

// nameOf is one of a few: whose address and port it was is left out.
func nameOf(err error) string {
	var timeout net.Error
	text := err.Error()
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), strings.Contains(text, "unexpected EOF"):
		return "EOF"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case errors.Is(err, syscall.ECONNRESET):
		return "connection reset"
	case errors.Is(err, syscall.EPIPE):
		return "broken pipe"
	case errors.Is(err, net.ErrClosed):
		return "closed"
	case strings.Contains(text, "TLS handshake timeout"):
		return "TLS handshake timeout"
	case strings.Contains(text, "GOAWAY"):
		return "GOAWAY"
	case strings.Contains(text, "http2: client connection lost"):
		return "no answer to PING"
	case errors.Is(err, context.Canceled):
		return "canceled"
	case errors.As(err, &timeout) && timeout.Timeout():
		return "timeout"
	}
	return text
}
