// The crowd: starts the clients, all at once or one after the other, and says how they are.
package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

type crowd struct {
	options      *options
	servers      []string
	certificates []tls.Certificate
	clients      []*client
	marked       time.Time

	logMutex sync.Mutex
	log      *bufio.Writer
}

func newCrowd(o *options) (commands, error) {
	c := &crowd{options: o, servers: strings.Split(o.servers, ","), marked: time.Now()}
	if o.tokens == "" {
		var err error
		if c.certificates, err = certificatesOf(o); err != nil {
			return nil, err
		}
	}
	if o.log != "" {
		file, err := os.Create(o.log)
		if err != nil {
			return nil, err
		}
		c.log = bufio.NewWriterSize(file, 1<<20)
	}
	for i := range o.clients {
		client, err := newClient(c, o.first+i)
		if err != nil {
			return nil, err
		}
		c.clients = append(c.clients, client)
	}
	return c.run, nil
}

// run: "start" lets all clients begin at once; "start N" never has more than N that are not watching yet, and answers when all are.
// "cut N" closes the connections of N at a time, which come back before the next ones. "mark" begins to count anew. "stats" is all since.
func (c *crowd) run(name string, args []string) (any, error) {
	atOnce := 0
	if len(args) > 0 {
		var err error
		if atOnce, err = strconv.Atoi(args[0]); err != nil {
			return nil, err
		}
	}
	switch name {
	case "start":
		c.mark()
		if atOnce == 0 {
			for _, client := range c.clients {
				go client.reflector.RunWithContext(context.Background())
			}
		} else {
			c.each(atOnce, func(client *client) { go client.reflector.RunWithContext(context.Background()) })
		}
	case "cut":
		c.mark()
		c.each(max(atOnce, 1), (*client).cut)
	case "mark":
		c.mark()
	case "stats":
	default:
		return nil, fmt.Errorf("no command %q", name)
	}
	return c.stats(), nil
}

// each does it to all clients, `atOnce` of them until each is watching.
func (c *crowd) each(atOnce int, do func(*client)) {
	var group sync.WaitGroup
	turns := make(chan struct{}, atOnce)
	for _, client := range c.clients {
		turns <- struct{}{}
		arrived := make(chan struct{})
		client.mutex.Lock()
		client.arrived = arrived
		client.mutex.Unlock()
		do(client)
		group.Go(func() {
			<-arrived
			<-turns
		})
	}
	group.Wait()
}

func (c *crowd) mark() {
	c.marked = time.Now()
	for _, client := range c.clients {
		client.mutex.Lock()
		client.counts = counts{answers: map[string]int{}}
		client.mutex.Unlock()
	}
}

type stats struct {
	Clients  int `json:"clients"`
	Watching int `json:"watching"`
	// Since the mark: clients that lost a watch, and those that opened one.
	Lost       int            `json:"lost"`
	Back       int            `json:"back"`
	Dials      int            `json:"dials"`
	Handshakes int            `json:"handshakes"`
	Resumed    int            `json:"resumed"`
	Lists      int            `json:"lists"`
	Watches    int            `json:"watches"`
	Answers    map[string]int `json:"answers"`
	// The most of one client.
	MostDials      int `json:"mostDials"`
	MostHandshakes int `json:"mostHandshakes"`
	MostLists      int `json:"mostLists"`
	MostWatches    int `json:"mostWatches"`
	// Milliseconds from the mark until they were back.
	BackP50  float64 `json:"backP50"`
	BackP99  float64 `json:"backP99"`
	BackLast float64 `json:"backLast"`
	// Number of the last one, and of some that are not watching.
	Slowest int   `json:"slowest"`
	Missing []int `json:"missing"`
}

func (c *crowd) stats() stats {
	s := stats{Clients: len(c.clients), Answers: map[string]int{}, Missing: []int{}}
	var back []float64
	for _, client := range c.clients {
		client.mutex.Lock()
		n := client.counts
		if client.watching > 0 {
			s.Watching++
		} else if len(s.Missing) < 10 {
			s.Missing = append(s.Missing, client.index)
		}
		if !n.lost.IsZero() {
			s.Lost++
		}
		if !n.back.IsZero() {
			ms := float64(n.back.Sub(c.marked).Microseconds()) / 1000
			if ms > s.BackLast {
				s.BackLast, s.Slowest = ms, client.index
			}
			back = append(back, ms)
		}
		s.Dials += n.dials
		s.Handshakes += n.handshakes
		s.Resumed += n.resumed
		s.Lists += n.lists
		s.Watches += n.watches
		s.MostDials = max(s.MostDials, n.dials)
		s.MostHandshakes = max(s.MostHandshakes, n.handshakes)
		s.MostLists = max(s.MostLists, n.lists)
		s.MostWatches = max(s.MostWatches, n.watches)
		for answer, count := range n.answers {
			s.Answers[answer] += count
		}
		client.mutex.Unlock()
	}
	s.Back = len(back)
	if len(back) > 0 {
		slices.Sort(back)
		s.BackP50 = back[len(back)/2]
		s.BackP99 = back[len(back)*99/100]
	}
	if c.log != nil {
		c.logMutex.Lock()
		_ = c.log.Flush()
		c.logMutex.Unlock()
	}
	return s
}

func (c *crowd) write(index int, what string) {
	if c.log == nil {
		return
	}
	c.logMutex.Lock()
	fmt.Fprintf(c.log, "%d %d %s\n", time.Now().UnixMilli(), index, what)
	c.logMutex.Unlock()
}
