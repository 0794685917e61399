// informers runs client-go's reflectors and writes down each change that their watches bring, so that a test can compare them with what has happened
// in etcd. With KUBE_WATCHLIST_INCONSISTENCY_DETECTOR=true client-go itself lists again after each initial state, and panics if it was another one.
// Commands are lines on stdin, each is answered by one line of JSON on stdout; the end of stdin ends the process.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"

	"k8s.io/klog/v2"
)

type options struct {
	kubeconfig, resources, encoding string
	count                           int
}

func main() {
	var o options
	flag.StringVar(&o.kubeconfig, "kubeconfig", "", "where, and as whom")
	flag.StringVar(&o.resources, "resources", "v1/pods", "what each of them watches: version/resource or group/version/resource, separated by commas")
	flag.StringVar(&o.encoding, "encoding", "json", "json, protobuf, or metadata")
	flag.IntVar(&o.count, "count", 1, "informers of each resource, each on a connection of its own")
	klog.InitFlags(nil)
	flag.Parse()
	all, err := newInformers(&o)
	if err != nil {
		fail(err)
	}
	print(map[string]bool{"ready": true})
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		switch line := lines.Text(); {
		case line == "start":
			for _, one := range all {
				go one.reflector.RunWithContext(context.Background())
			}
			print(statsOf(all))
		case line == "stats":
			print(statsOf(all))
		case strings.HasPrefix(line, "report "):
			if err := report(all, strings.TrimPrefix(line, "report ")); err != nil {
				fail(err)
			}
			print(statsOf(all))
		default:
			fail(fmt.Errorf("no command %q", line))
		}
	}
}

func newInformers(o *options) ([]*informer, error) {
	var all []*informer
	for _, resource := range strings.Split(o.resources, ",") {
		for range o.count {
			one, err := newInformer(o, resource)
			if err != nil {
				return nil, err
			}
			all = append(all, one)
		}
	}
	return all, nil
}

type stats struct {
	Informers int `json:"informers"`
	// Synced is how many have had their state at least once, and have a watch open.
	Synced int `json:"synced"`
	// Oldest is, for each resource, the lowest of the versions up to which they know everything.
	Oldest map[string]string `json:"oldest"`
	// Events is how many all have had since their start, initial states aside.
	Events   int      `json:"events"`
	Lists    int      `json:"lists"`
	Watches  int      `json:"watches"`
	Expired  int      `json:"expired"`
	Problems []string `json:"problems"`
}

func statsOf(all []*informer) stats {
	s := stats{Informers: len(all), Oldest: map[string]string{}, Problems: []string{}}
	for _, one := range all {
		one.mutex.Lock()
		if one.synced && one.watching > 0 {
			s.Synced++
		}
		for _, stretch := range one.stretches {
			s.Events += len(stretch.Events)
		}
		if oldest, known := s.Oldest[one.resource]; !known || isLater(oldest, one.position) {
			s.Oldest[one.resource] = one.position
		}
		s.Lists += one.lists
		s.Watches += one.watches
		s.Expired += one.expired
		s.Problems = append(s.Problems, one.problems...)
		one.mutex.Unlock()
	}
	return s
}

// report writes all that was seen to a file: it may be long.
func report(all []*informer, path string) error {
	seen := make([]seen, 0, len(all))
	for _, one := range all {
		seen = append(seen, one.seen())
	}
	text, err := json.Marshal(seen)
	if err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o600)
}

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
