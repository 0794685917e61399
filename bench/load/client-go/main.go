// h2 is the load client of the benchmarks and the upstream of those that need one. One mode a process; results are JSON
// lines on stdout, and a line on stdin starts what has been prepared.
package main

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"strings"

	"golang.org/x/net/http2/hpack"
)

type options struct {
	port, ports, admin, connections, streams, lists, warmUp, rate, workers, status int
	requests, tokenBytes, body, upload, verified, atOnce                           int
	seconds, tolerated                                                             float64
	kubernetes, http1, gzip                                                        bool
	pace                                                                           int
	host, method, path, cert, key, token, tokens                                   string
}

var stdin = bufio.NewReader(os.Stdin)

func main() {
	if len(os.Args) < 2 {
		fail(fmt.Errorf("usage: h2 load|fleet|watch|informers|idle|list|upload|exec|handshakes|upstream [flags]"))
	}
	var o options
	f := flag.NewFlagSet(os.Args[1], flag.ExitOnError)
	f.IntVar(&o.port, "port", 0, "port on 127.0.0.1")
	f.IntVar(&o.admin, "admin", 0, "upstream: port for the commands")
	f.BoolVar(&o.kubernetes, "kubernetes", false, "upstream: answers about pods and access, upgrades, and what hostile pods answer")
	f.BoolVar(&o.http1, "http1", false, "HTTP/1.1 instead of HTTP/2; upstream: it offers nothing else")
	f.BoolVar(&o.gzip, "gzip", false, "answers may be compressed, as client-go asks for them")
	f.IntVar(&o.ports, "ports", 1, "upstream: how many, from -port on")
	f.IntVar(&o.connections, "connections", 4, "")
	f.IntVar(&o.streams, "streams", 16, "requests at once on a connection")
	f.IntVar(&o.lists, "lists", 1, "list: 1 on each connection, or 0 for one after the other until the end; informers: 1 to list before they watch")
	f.IntVar(&o.warmUp, "warm-up", 0, "load: requests before the measurement, for as many seconds at most")
	f.IntVar(&o.requests, "requests", 0, "load: how many to send at most; 0: as many as the seconds allow")
	f.IntVar(&o.rate, "rate", 0, "load: requests a second, each at its time whether or not earlier ones are answered")
	f.IntVar(&o.workers, "workers", 8, "handshakes: at once")
	f.IntVar(&o.status, "status", 200, "load: the expected status; 0: any")
	f.IntVar(&o.pace, "pace", 0, "list: bytes a second that each connection reads; 0: as fast as they come")
	f.Float64Var(&o.seconds, "seconds", 5, "load, fleet, exec, handshakes: how long")
	f.Float64Var(&o.tolerated, "tolerated", 0, "load: the part of the requests that may fail")
	f.IntVar(&o.atOnce, "at-once", 1000, "informers: how many have asked and have not got their state")
	f.IntVar(&o.verified, "verified", 0, "informers: the number of the change of which all must get the same line")
	f.StringVar(&o.host, "host", "localhost", "SNI and :authority")
	f.StringVar(&o.method, "method", "GET", "")
	f.StringVar(&o.path, "path", "/", "%s stands for the number of the connection, as tokens have it")
	f.IntVar(&o.body, "body", 0, "bytes that each request has after its header")
	f.IntVar(&o.upload, "upload", 0, "upload: bytes of each body; exec: bytes that each session sends")
	f.StringVar(&o.cert, "cert", "", "PEM file of the client's certificate, or the upstream's")
	f.StringVar(&o.key, "key", "", "PEM file of its key")
	f.StringVar(&o.token, "token", "", "bearer token")
	f.StringVar(&o.tokens, "tokens", "", "prefix of bearer tokens, a different one for each connection")
	f.IntVar(&o.tokenBytes, "token-bytes", 1024, "length of each of these")
	_ = f.Parse(os.Args[2:])

	debug.SetGCPercent(400)
	modes := map[string]func(*options) error{
		"load": load, "fleet": fleet, "watch": watch, "idle": idle, "list": list, "informers": informers, "upload": upload, "exec": exec,
		"handshakes": handshakes, "upstream": upstream,
	}
	run := modes[os.Args[1]]
	if run == nil {
		fail(fmt.Errorf("no mode %q", os.Args[1]))
	}
	if os.Args[1] != "upstream" && os.Args[1] != "handshakes" {
		runtime.LockOSThread()
	}
	if err := run(&o); err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// print writes one JSON line.
func print(value any) {
	text, err := json.Marshal(value)
	if err != nil {
		fail(err)
	}
	fmt.Println(string(text))
}

// waitForLine waits until the runner says go on; its death ends this process.
func waitForLine() {
	if _, err := stdin.ReadString('\n'); err == io.EOF {
		os.Exit(0)
	}
}

// exitAtEOF ends the process with its parent, whatever the loop does.
func exitAtEOF() {
	go func() {
		_, _ = io.Copy(io.Discard, stdin)
		os.Exit(0)
	}()
}

func (o *options) target() (*target, error) {
	config := &tls.Config{
		ServerName:         o.host,
		InsecureSkipVerify: true, // the certificate of a benchmark on loopback
		NextProtos:         []string{"h2"},
		// HAProxy's OpenSSL has no ML-KEM: the same key exchange with all proxies.
		CurvePreferences:            []tls.CurveID{tls.X25519, tls.CurveP256},
		DynamicRecordSizingDisabled: true,
	}
	if o.cert != "" {
		pair, err := tls.LoadX509KeyPair(o.cert, o.key)
		if err != nil {
			return nil, err
		}
		config.Certificates = []tls.Certificate{pair}
	}
	if o.http1 {
		config.NextProtos = []string{protocolHTTP1}
	}
	fields := []hpack.HeaderField{
		{Name: ":method", Value: o.method},
		{Name: ":scheme", Value: "https"},
		{Name: ":authority", Value: strings.ToLower(o.host)},
		{Name: ":path", Value: o.path},
		{Name: "user-agent", Value: "kubectl/v1.34.0 (linux/amd64) kubernetes/0000000"},
		{Name: "accept", Value: "application/json"},
	}
	if o.gzip {
		fields = append(fields, hpack.HeaderField{Name: "accept-encoding", Value: "gzip"})
	}
	if o.token != "" {
		fields = append(fields, hpack.HeaderField{Name: "authorization", Value: "Bearer " + o.token})
	}
	return &target{
		port: o.port, config: config, fields: fields, window: streamWindow, tokens: o.tokens, tokenBytes: o.tokenBytes,
		body: bytes.Repeat([]byte("x"), o.body),
	}, nil
}
