// readers are two clients of a cluster that are not bare reflectors: a controller of controller-runtime, and a dashboard, whose backend is a proxy of its
// own in front of the cluster. Neither writes anything. Commands are lines on stdin, each is answered by one line of JSON on stdout; the end of
// stdin ends the process.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client/config"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// seen is what a reader has of a resource.
type seen struct {
	Reader   string `json:"reader"`
	Resource string `json:"resource"`
	// Store has the uid and the version of each object, by `namespace/name`.
	Store    map[string]string `json:"store"`
	Problems []string          `json:"problems"`
	// Versions are those of its lists, in order.
	Versions []string `json:"versions"`
	// Fallen are objects whose new version is a lower number than the one before.
	Fallen []fallen `json:"fallen"`
	// Counts is how often what happened.
	Counts map[string]int `json:"counts"`
}

type reader interface {
	// run begins; it goes on until the context ends.
	run(ctx context.Context)
	seen() []seen
}

func main() {
	klog.InitFlags(nil)
	flag.Parse()
	log.SetLogger(klog.Background())
	readers, err := newReaders()
	if err != nil {
		fail(err)
	}
	print(map[string]bool{"ready": true})
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		switch line := lines.Text(); {
		case line == "start":
			for _, one := range readers {
				go one.run(context.Background())
			}
		case strings.HasPrefix(line, "report "):
			if err := report(readers, strings.TrimPrefix(line, "report ")); err != nil {
				fail(err)
			}
		default:
			fail(fmt.Errorf("no command %q", line))
		}
		print(map[string]bool{"done": true})
	}
}

func newReaders() ([]reader, error) {
	controller, err := newController()
	if err != nil {
		return nil, err
	}
	dashboard, err := newDashboard()
	if err != nil {
		return nil, err
	}
	return []reader{controller, dashboard}, nil
}

// readConfig reads the file that the flag kubeconfig names: controller-runtime has that flag already.
func readConfig() (*rest.Config, error) {
	read, err := config.GetConfig()
	if err == nil {
		read.QPS = -1
	}
	return read, err
}

// report writes all that was seen to a file: it may be long.
func report(readers []reader, path string) error {
	all := []seen{}
	for _, one := range readers {
		all = append(all, one.seen()...)
	}
	text, err := json.Marshal(all)
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
