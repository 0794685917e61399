// A dashboard as Headlamp and its like work: a backend that proxies /clusters/all/ to the cluster of a kubeconfig, and pages that list through it, go on with a
// watch from the list's version, show single objects, and list again what has expired.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/gorilla/websocket"
	"k8s.io/client-go/rest"
)

const (
	prefix = "/clusters/all"
	// A list is read in pages as long as this.
	pageSize = 50
	// How long a page waits before it asks again.
	pause = 2 * time.Second
	// Opened anew now and then, as by a reader who comes back to it.
	watchSeconds = 240
)

type dashboard struct {
	config *rest.Config
	// address of the backend
	address string
	pages   []*page
	shell   *notes
}

// page shows the objects of one resource.
type page struct {
	base, path string
	notes      *notes
}

type metadata struct {
	Name            string `json:"name"`
	Namespace       string `json:"namespace"`
	UID             string `json:"uid"`
	ResourceVersion string `json:"resourceVersion"`
	Continue        string `json:"continue"`
}

type object struct {
	Metadata metadata `json:"metadata"`
	// Code is that of a Status.
	Code int `json:"code"`
}

type list struct {
	Metadata metadata `json:"metadata"`
	Items    []object `json:"items"`
}

type event struct {
	Type   string `json:"type"`
	Object object `json:"object"`
}

func newDashboard() (*dashboard, error) {
	config, err := readConfig()
	if err != nil {
		return nil, err
	}
	target, err := url.Parse(config.Host)
	if err != nil {
		return nil, err
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, err
	}
	proxy := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:     transport,
		FlushInterval: -1,
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	go func() { fail(http.Serve(listener, http.StripPrefix(prefix, proxy))) }()
	d := &dashboard{config: config, address: listener.Addr().String(), shell: newNotes("dashboard", "cluster")}
	base := "http://" + d.address + prefix
	d.pages = []*page{
		{base: base, path: "/api/v1/pods", notes: newNotes("dashboard", "v1/pods")},
		{base: base, path: "/apis/apps/v1/deployments", notes: newNotes("dashboard", "apps/v1/deployments")},
	}
	return d, nil
}

func (d *dashboard) run(ctx context.Context) {
	for _, page := range d.pages {
		go page.show(ctx)
		go page.refresh(ctx)
	}
	base := "http://" + d.address + prefix
	for ctx.Err() == nil {
		for _, path := range []string{"/version", "/api", "/apis", "/api/v1", "/apis/apps/v1", "/openapi/v2"} {
			status, _, err := ask(ctx, base+path, nil)
			d.shell.count(outcome(path, status, err))
		}
		status, err := d.watchByWebSocket()
		d.shell.count(outcome("watch over WebSocket", status, err))
		time.Sleep(10 * pause)
	}
}

// watchByWebSocket is what Headlamp's multiplexer asks of the cluster itself, in the place of its page. Resolves with the answer to the handshake.
func (d *dashboard) watchByWebSocket() (int, error) {
	tls, err := rest.TLSConfigFor(d.config)
	if err != nil {
		return 0, err
	}
	dialer := websocket.Dialer{TLSClientConfig: tls, HandshakeTimeout: time.Minute}
	address := "wss" + strings.TrimPrefix(d.config.Host, "https") + "/api/v1/pods?watch=1"
	connection, response, err := dialer.Dial(address, http.Header{"Origin": {d.config.Host}})
	if response == nil {
		return 0, err
	}
	if connection != nil {
		_ = connection.Close()
	}
	return response.StatusCode, nil
}

func (d *dashboard) seen() []seen {
	all := []seen{d.shell.seen()}
	for _, page := range d.pages {
		all = append(all, page.notes.seen())
	}
	return all
}

// show lists once, and then follows what it shows.
func (p *page) show(ctx context.Context) {
	version := ""
	for ctx.Err() == nil {
		if version == "" {
			listed, ok := p.list(ctx, "")
			if !ok {
				time.Sleep(pause)
				continue
			}
			p.notes.replace(storeOf(listed.Items))
			version = listed.Metadata.ResourceVersion
		}
		next, err := p.follow(ctx, version)
		if err != nil {
			p.notes.count("broken watches")
			time.Sleep(pause)
		}
		version = next
	}
}

// follow applies what a watch brings. It resolves with the version behind which the next one begins, "" if that is a list.
func (p *page) follow(ctx context.Context, version string) (string, error) {
	query := url.Values{
		"watch": {"1"}, "allowWatchBookmarks": {"true"}, "resourceVersion": {version}, "timeoutSeconds": {strconv.Itoa(watchSeconds)},
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.base+p.path+"?"+query.Encode(), nil)
	if err != nil {
		return version, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return version, err
	}
	defer response.Body.Close()
	p.notes.count(outcome("watch", response.StatusCode, nil))
	if response.StatusCode != http.StatusOK {
		return version, fmt.Errorf("%d", response.StatusCode)
	}
	lines := bufio.NewReader(response.Body)
	for {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF {
			return version, nil
		}
		if err != nil {
			return version, err
		}
		var came event
		if err := json.Unmarshal(line, &came); err != nil {
			p.notes.problem("an event that is not JSON: %.100s", line)
			return version, err
		}
		if came.Type == "ERROR" {
			p.notes.count(fmt.Sprintf("ERROR %d", came.Object.Code))
			return "", nil
		}
		version = p.take(came, version)
	}
}

func (p *page) take(came event, version string) string {
	next := came.Object.Metadata.ResourceVersion
	isBookmark := came.Type == "BOOKMARK"
	if !isLater(next, version) && !(isBookmark && next == version) {
		p.notes.problem("%s of %s after %s", came.Type, next, version)
	}
	if isBookmark {
		return next
	}
	p.notes.count(came.Type)
	key, value := rowOf(came.Object)
	before, isKnown := p.notes.get(key)
	switch uid, _, _ := strings.Cut(before, " "); {
	case isKnown == (came.Type == "ADDED"):
		p.notes.problem("%s of %s at %s, which was there: %t", came.Type, key, next, isKnown)
	case isKnown && uid != came.Object.Metadata.UID:
		p.notes.problem("%s of %s at %s is of another object", came.Type, key, next)
	}
	if came.Type == "DELETED" {
		p.notes.remove(key)
	} else {
		p.notes.put(key, value)
	}
	return next
}

// refresh lists all in pages, and looks at the first and the last object that there are.
func (p *page) refresh(ctx context.Context) {
	for ctx.Err() == nil {
		time.Sleep(pause)
		listed, ok := p.list(ctx, "limit="+strconv.Itoa(pageSize))
		if !ok || len(listed.Items) == 0 {
			continue
		}
		for _, item := range []object{listed.Items[0], listed.Items[len(listed.Items)-1]} {
			slash := strings.LastIndex(p.path, "/")
			at := p.base + p.path[:slash] + "/namespaces/" + item.Metadata.Namespace + p.path[slash:] + "/" + item.Metadata.Name
			status, _, err := ask(ctx, at, nil)
			p.notes.count(outcome("get", status, err))
		}
	}
}

// list reads all pages.
func (p *page) list(ctx context.Context, query string) (list, bool) {
	var all list
	isLastKnown := false
	for page := 0; ; page++ {
		var read list
		at := p.base + p.path + "?" + query
		if all.Metadata.Continue != "" {
			at += "&continue=" + url.QueryEscape(all.Metadata.Continue)
		}
		status, warnings, err := ask(ctx, at, &read)
		p.notes.count(outcome("list", status, err))
		if len(warnings) > 0 {
			p.notes.count("list with a Warning")
			isLastKnown = true
		}
		if status != http.StatusOK || err != nil {
			return all, false
		}
		if page > 0 && read.Metadata.ResourceVersion != all.Metadata.ResourceVersion {
			p.notes.problem("page %d is of %s, the first of %s", page, read.Metadata.ResourceVersion, all.Metadata.ResourceVersion)
		}
		all.Items = append(all.Items, read.Items...)
		all.Metadata = read.Metadata
		if all.Metadata.Continue == "" {
			break
		}
	}
	if len(storeOf(all.Items)) != len(all.Items) {
		p.notes.problem("a list at %s has an object twice", all.Metadata.ResourceVersion)
	}
	// What is last known of a member may be older than the version that the list before it named: docs/federation.md, Limitations.
	if query != "" && !isLastKnown {
		p.notes.listed(all.Metadata.ResourceVersion)
	}
	return all, true
}

func ask(ctx context.Context, at string, into any) (int, []string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return 0, nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && into != nil && response.StatusCode == http.StatusOK {
		err = json.Unmarshal(body, into)
	}
	return response.StatusCode, response.Header.Values("Warning"), err
}

func outcome(what string, status int, err error) string {
	if err != nil && status == 0 {
		return what + ": no answer"
	}
	return fmt.Sprintf("%s: %d", what, status)
}

func rowOf(o object) (key, value string) {
	return o.Metadata.Namespace + "/" + o.Metadata.Name, o.Metadata.UID + " " + o.Metadata.ResourceVersion
}

func storeOf(items []object) map[string]string {
	store := map[string]string{}
	for _, item := range items {
		key, value := rowOf(item)
		store[key] = value
	}
	return store
}
