// The API server of the storm: lists, watches, TokenReviews and probes over Go's own HTTP/2, as a kube-apiserver answers them.
package main

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

type upstream struct {
	options *options
	mutex   sync.Mutex
	counts  upstreamCounts
	list    []byte
}

// upstreamCounts are those since the start.
type upstreamCounts struct {
	Lists     int `json:"lists"`
	Refused   int `json:"refused"`
	Watches   int `json:"watches"`
	Expired   int `json:"expired"`
	Reviews   int `json:"reviews"`
	Others    int `json:"others"`
	Watching  int `json:"watching"`
	Listing   int `json:"listing"`
	Reviewing int `json:"reviewing"`
	// The most at a time.
	MostListing   int `json:"mostListing"`
	MostReviewing int `json:"mostReviewing"`
	// The most lists in one second.
	MostListsASecond int `json:"mostListsASecond"`
	second           int64
	inSecond         int
}

func newUpstream(o *options) (commands, error) {
	u := &upstream{options: o, list: listOf(o.items, o.version)}
	pair, err := tls.LoadX509KeyPair(o.cert, o.key)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", o.address)
	if err != nil {
		return nil, err
	}
	server := &http.Server{
		Handler:   u,
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: []string{"h2", "http/1.1"}},
		// As kube-apiserver: 100 streams a connection, windows of 256 KiB.
		HTTP2: &http.HTTP2Config{MaxConcurrentStreams: 100, MaxReceiveBufferPerStream: 256 << 10},
	}
	go func() { fail(server.ServeTLS(listener, "", "")) }()
	return u.run, nil
}

// run: "stats" is all since the start.
func (u *upstream) run(name string, _ []string) (any, error) {
	if name != "stats" {
		return nil, fmt.Errorf("no command %q", name)
	}
	u.mutex.Lock()
	defer u.mutex.Unlock()
	return u.counts, nil
}

func listOf(items, version int) []byte {
	var text strings.Builder
	fmt.Fprintf(&text, `{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"%d"},"items":[`, version)
	for i := range items {
		if i > 0 {
			text.WriteString(",")
		}
		fmt.Fprintf(&text, `{"metadata":{"name":"c%d","namespace":"storm","uid":"%d","resourceVersion":"%d"},"data":{"key":"value"}}`, i, i, version-i)
	}
	text.WriteString("]}\n")
	return []byte(text.String())
}

func (u *upstream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := r.URL.Path
	query := r.URL.Query()
	w.Header().Set("Audit-Id", "storm")
	w.Header().Set("Content-Type", "application/json")
	switch {
	case strings.HasSuffix(path, "/tokenreviews"):
		u.review(w, r)
	case strings.Contains(path, "reviews"):
		u.count(func(c *upstreamCounts) { c.Others++ })
		w.WriteHeader(http.StatusCreated)
		fmt.Fprint(w, `{"kind":"SelfSubjectAccessReview","apiVersion":"authorization.k8s.io/v1","status":{"allowed":true}}`)
	case !strings.HasPrefix(path, "/api/v1/namespaces/"+namespace+"/"):
		u.count(func(c *upstreamCounts) { c.Others++ })
		fmt.Fprint(w, "ok")
	case query.Get("watch") != "":
		u.watch(w, r, query.Get("resourceVersion"))
	default:
		u.answerList(w)
	}
}

func (u *upstream) count(change func(*upstreamCounts)) {
	u.mutex.Lock()
	change(&u.counts)
	u.mutex.Unlock()
}

func (u *upstream) answerList(w http.ResponseWriter) {
	refused := false
	u.count(func(c *upstreamCounts) {
		if u.options.inflight > 0 && c.Listing >= u.options.inflight {
			c.Refused++
			refused = true
			return
		}
		c.Lists++
		c.Listing++
		c.MostListing = max(c.MostListing, c.Listing)
		if now := time.Now().Unix(); now != c.second {
			c.second, c.inSecond = now, 0
		}
		c.inSecond++
		c.MostListsASecond = max(c.MostListsASecond, c.inSecond)
	})
	if refused {
		w.Header().Set("Retry-After", "1")
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		http.Error(w, "Too many requests, please try again later.", http.StatusTooManyRequests)
		return
	}
	time.Sleep(time.Duration(u.options.took) * time.Millisecond)
	_, _ = w.Write(u.list)
	u.count(func(c *upstreamCounts) { c.Listing-- })
}

func (u *upstream) watch(w http.ResponseWriter, r *http.Request, version string) {
	// What happened before this process is not in its watch cache.
	if from, _ := strconv.Atoi(version); from < u.options.version && from > 0 {
		u.count(func(c *upstreamCounts) { c.Expired++ })
		fmt.Fprintf(w, `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"too old resource version: %d (%d)","reason":"Expired","code":410}}`+"\n", from, u.options.version)
		return
	}
	u.count(func(c *upstreamCounts) { c.Watches++; c.Watching++ })
	defer u.count(func(c *upstreamCounts) { c.Watching-- })
	// The first event, so that client-go does not take the watch for one that ended at once (VeryShortWatchError): it would list again.
	fmt.Fprintf(w, `{"type":"BOOKMARK","object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"resourceVersion":"%d"}}}`+"\n", u.options.version)
	_ = http.NewResponseController(w).Flush()
	<-r.Context().Done()
}

// review believes every token; its first two parts are the user: PREFIX.NUMBER.
func (u *upstream) review(w http.ResponseWriter, r *http.Request) {
	var asked struct{ Spec struct{ Token string } }
	_ = json.NewDecoder(r.Body).Decode(&asked)
	u.count(func(c *upstreamCounts) {
		c.Reviews++
		c.Reviewing++
		c.MostReviewing = max(c.MostReviewing, c.Reviewing)
	})
	time.Sleep(time.Duration(u.options.reviewTook) * time.Millisecond)
	parts := strings.SplitN(asked.Spec.Token, ".", 3)
	w.WriteHeader(http.StatusCreated)
	fmt.Fprintf(w, `{"kind":"TokenReview","apiVersion":"authentication.k8s.io/v1","status":{"authenticated":true,"user":{"username":"%s","groups":["storm"]}}}`,
		strings.Join(parts[:min(2, len(parts))], "."))
	u.count(func(c *upstreamCounts) { c.Reviewing-- })
}
