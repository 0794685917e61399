// storm is a crowd of clients that watch as the controllers of a cluster do, with client-go's own reflectors, each on a connection of its
// own; and an API server with lists and watches for them. One mode a process. Commands are lines on stdin, each is answered by one line of
// JSON on stdout; the end of stdin ends the process.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"k8s.io/klog/v2"
)

type options struct {
	// clients
	servers, host, caCert, caKey, tokens, log, resource string
	clients, first, certificates, perAddress            int
	resume, rsa                                         bool
	// upstream
	address, cert, key, peer       string
	items, version, inflight, took int
	reviewTook                     int
}

func main() {
	if len(os.Args) < 2 {
		fail(fmt.Errorf("usage: storm clients|upstream [flags]"))
	}
	var o options
	f := flag.NewFlagSet(os.Args[1], flag.ExitOnError)
	f.StringVar(&o.servers, "servers", "", "clients: host:port of the gateways, separated by commas; the clients are spread over them")
	f.StringVar(&o.host, "host", "localhost", "clients: SNI and :authority")
	f.StringVar(&o.caCert, "ca-cert", "", "clients: PEM file of the CA that signs their certificates")
	f.StringVar(&o.caKey, "ca-key", "", "clients: PEM file of its key")
	f.IntVar(&o.certificates, "certificates", 16, "clients: how many different ones, each a user of its own; the clients share them")
	f.BoolVar(&o.rsa, "rsa", false, "clients: certificates with RSA keys of 2,048 bits instead of P-256: signing with one costs the client as much as the server")
	f.StringVar(&o.tokens, "tokens", "", "clients: prefix of bearer tokens instead of certificates, a user of its own for each client")
	f.IntVar(&o.clients, "clients", 100, "clients: how many")
	f.IntVar(&o.first, "first", 0, "clients: number of the first one, for several processes")
	f.IntVar(&o.perAddress, "per-address", 50, "clients: how many share a loopback address")
	f.BoolVar(&o.resume, "resume", false, "clients: offer TLS sessions for resumption, which client-go does not")
	f.StringVar(&o.log, "log", "", "clients: file for one line of each client's every event")
	f.StringVar(&o.resource, "resource", "configmaps", "clients: what of the core group they list and watch, in the namespace storm")
	f.StringVar(&o.address, "address", "127.0.0.1:0", "upstream: where it listens")
	f.StringVar(&o.cert, "cert", "", "upstream: PEM file of its certificate")
	f.StringVar(&o.key, "key", "", "upstream: PEM file of its key")
	f.IntVar(&o.items, "items", 5, "upstream: objects in a list")
	f.IntVar(&o.version, "version", 1000, "upstream: resourceVersion that it starts with; watches from an older one have expired, as after the restart of an apiserver")
	f.IntVar(&o.inflight, "inflight", 0, "upstream: lists at once; more are answered with 429 and Retry-After 1, as by priority and fairness; 0: any number")
	f.IntVar(&o.took, "list-ms", 0, "upstream: milliseconds that a list takes")
	f.IntVar(&o.reviewTook, "review-ms", 0, "upstream: milliseconds that a TokenReview takes")
	_ = f.Parse(os.Args[2:])
	// Thousands of clients would each say that they back off.
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	modes := map[string]func(*options) (commands, error){"clients": newCrowd, "upstream": newUpstream}
	create := modes[os.Args[1]]
	if create == nil {
		fail(fmt.Errorf("no mode %q", os.Args[1]))
	}
	run, err := create(&o)
	if err != nil {
		fail(err)
	}
	print(map[string]bool{"ready": true})
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if len(words) == 0 {
			continue
		}
		answer, err := run(words[0], words[1:])
		if err != nil {
			fail(err)
		}
		print(answer)
	}
}

// commands answers one command; an error ends the process.
type commands func(name string, args []string) (any, error)

func print(value any) {
	text, err := json.Marshal(value)
	if err != nil {
		fail(err)
	}
	fmt.Println(string(text))
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
