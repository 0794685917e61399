// One reflector: what its lists and watches bring, by version.
package main

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

// Versions are decimal numbers of any length (KEP-5504): text, compared by the length first.

// stretch is an unbroken row of changes: it begins behind a state, and goes on from watch to watch until there is another state.
type stretch struct {
	// From is the version of the state.
	From string `json:"from"`
	// To is the version up to which all changes have come: that of the last change, or of a later bookmark.
	To     string   `json:"to"`
	Events []change `json:"events"`
}

type change struct {
	Type    watch.EventType `json:"type"`
	Version string          `json:"version"`
	Key     string          `json:"key"`
}

// seen is what one of them tells of itself.
type seen struct {
	Resource  string    `json:"resource"`
	Stretches []stretch `json:"stretches"`
	Problems  []string  `json:"problems"`
	// Store has the uid and the version of each object.
	Store map[string]string `json:"store"`
}

type informer struct {
	resource  string
	reflector *cache.Reflector
	store     cache.Store

	mutex     sync.Mutex
	stretches []stretch
	problems  []string
	// position is the version up to which everything is known; "" = nothing is.
	position       string
	lists, watches int
	// expired is how often a watch had to begin with a new state: 410.
	expired int
	// watching is how many watches are open: 0 or 1.
	watching int
	synced   bool
}

// source lists and watches in one of three encodings.
type source struct {
	list  func(context.Context, metav1.ListOptions) (runtime.Object, error)
	watch func(context.Context, metav1.ListOptions) (watch.Interface, error)
	// object is an example of what it brings.
	object runtime.Object
}

func newInformer(o *options, resource string) (*informer, error) {
	config, err := clientcmd.BuildConfigFromFlags("", o.kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	config.UserAgent = "informers"
	// A function of its own is a connection of its own: client-go shares those of equal configurations.
	config.Dial = (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext
	at, err := parseResource(resource)
	if err != nil {
		return nil, err
	}
	from, err := newSource(config, at, o.encoding)
	if err != nil {
		return nil, err
	}
	i := &informer{resource: resource, store: cache.NewStore(cache.MetaNamespaceKeyFunc)}
	listWatch := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			list, err := from.list(ctx, options)
			if err == nil && options.ResourceVersionMatch != metav1.ResourceVersionMatchExact {
				i.listed(list, options)
			}
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			opened, err := from.watch(ctx, options)
			if err != nil {
				return nil, err
			}
			return i.watched(opened, options), nil
		},
	}
	i.reflector = cache.NewReflectorWithOptions(listWatch, from.object, i.store, cache.ReflectorOptions{Name: resource})
	return i, nil
}

func parseResource(text string) (schema.GroupVersionResource, error) {
	parts := strings.Split(text, "/")
	switch len(parts) {
	case 2:
		return schema.GroupVersionResource{Version: parts[0], Resource: parts[1]}, nil
	case 3:
		return schema.GroupVersionResource{Group: parts[0], Version: parts[1], Resource: parts[2]}, nil
	}
	return schema.GroupVersionResource{}, fmt.Errorf("%q is not [group/]version/resource", text)
}

func newSource(config *rest.Config, at schema.GroupVersionResource, encoding string) (*source, error) {
	switch encoding {
	case "json":
		client, err := dynamic.NewForConfig(config)
		if err != nil {
			return nil, err
		}
		resource := client.Resource(at)
		return &source{
			list:  func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return resource.List(ctx, o) },
			watch: resource.Watch,
		}, nil
	case "metadata":
		client, err := metadata.NewForConfig(config)
		if err != nil {
			return nil, err
		}
		resource := client.Resource(at)
		return &source{
			list:  func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return resource.List(ctx, o) },
			watch: resource.Watch,
		}, nil
	case "protobuf":
		version := at.GroupVersion()
		config.GroupVersion = &version
		config.APIPath = "/apis"
		if at.Group == "" {
			config.APIPath = "/api"
		}
		config.ContentType = runtime.ContentTypeProtobuf
		config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
		client, err := rest.RESTClientFor(config)
		if err != nil {
			return nil, err
		}
		request := func(o metav1.ListOptions) *rest.Request {
			return client.Get().Resource(at.Resource).VersionedParams(&o, scheme.ParameterCodec)
		}
		return &source{
			list: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
				return request(o).Do(ctx).Get()
			},
			watch: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
				o.Watch = true
				return request(o).Watch(ctx)
			},
		}, nil
	}
	return nil, fmt.Errorf("no encoding %q", encoding)
}

// listed: a list that came whole, or the last page of one, is a new state.
func (i *informer) listed(list runtime.Object, options metav1.ListOptions) {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	i.lists++
	facts, err := meta.ListAccessor(list)
	if err != nil {
		i.problem("a list without metadata: %v", err)
		return
	}
	if facts.GetContinue() == "" {
		i.begin(i.checked(facts.GetResourceVersion()))
	}
}

func (i *informer) begin(version string) {
	i.stretches = append(i.stretches, stretch{From: version, To: version, Events: []change{}})
	i.position = version
	i.synced = true
}

// watched passes each event on, and writes down what it was.
func (i *informer) watched(opened watch.Interface, options metav1.ListOptions) watch.Interface {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	i.watches++
	i.watching++
	initial := options.SendInitialEvents != nil && *options.SendInitialEvents
	if !initial {
		i.resumed(i.checked(options.ResourceVersion))
	}
	seen := &seenWatch{informer: i, initial: initial}
	filtered := watch.Filter(opened, func(event watch.Event) (watch.Event, bool) {
		i.mutex.Lock()
		defer i.mutex.Unlock()
		seen.event(event)
		return event, true
	})
	return &closing{Interface: filtered, informer: i}
}

// resumed: what had come, but the reflector has not taken any more, comes once more.
func (i *informer) resumed(version string) {
	if len(i.stretches) == 0 {
		i.problem("a watch from %s without a state", version)
		i.begin(version)
		return
	}
	last := &i.stretches[len(i.stretches)-1]
	for len(last.Events) > 0 && isLater(last.Events[len(last.Events)-1].Version, version) {
		last.Events = last.Events[:len(last.Events)-1]
	}
	last.To = version
	i.position = version
}

type seenWatch struct {
	informer *informer
	// initial: its state is still coming.
	initial bool
}

func (w *seenWatch) event(event watch.Event) {
	i := w.informer
	if event.Type == watch.Error {
		if err := apierrors.FromObject(event.Object); apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
			i.expired++
		}
		return
	}
	facts, err := meta.Accessor(event.Object)
	if err != nil {
		i.problem("an event without metadata: %v", err)
		return
	}
	version := i.checked(facts.GetResourceVersion())
	if event.Type == watch.Bookmark {
		if facts.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true" {
			if !w.initial {
				i.problem("a second mark of the end of the state, at %s", version)
			}
			w.initial = false
			i.begin(version)
			return
		}
		if isLater(i.position, version) && !w.initial {
			i.problem("a bookmark of %s after %s", version, i.position)
		}
		if !w.initial {
			i.moved(version)
		}
		return
	}
	if w.initial {
		if event.Type != watch.Added {
			i.problem("%s in an initial state, at %s", event.Type, version)
		}
		return
	}
	if !isLater(version, i.position) {
		i.problem("%s of %s after %s", event.Type, version, i.position)
		return
	}
	key := facts.GetName()
	if facts.GetNamespace() != "" {
		key = facts.GetNamespace() + "/" + key
	}
	last := &i.stretches[len(i.stretches)-1]
	last.Events = append(last.Events, change{Type: event.Type, Version: version, Key: key})
	i.moved(version)
}

func (i *informer) moved(version string) {
	i.position = version
	i.stretches[len(i.stretches)-1].To = version
}

// closing counts that the reflector is done with a watch.
type closing struct {
	watch.Interface
	informer *informer
	once     sync.Once
}

func (c *closing) Stop() {
	c.once.Do(func() {
		c.informer.mutex.Lock()
		c.informer.watching--
		c.informer.mutex.Unlock()
	})
	c.Interface.Stop()
}

func (i *informer) checked(version string) string {
	if _, err := resourceversion.CompareResourceVersion(version, version); err != nil {
		i.problem("the version %q is not a number", version)
	}
	return version
}

// isLater: anything is later than nothing; what is not a number is a problem already.
func isLater(version, than string) bool {
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err == nil && order > 0 || than == ""
}

func (i *informer) problem(format string, args ...any) {
	if len(i.problems) < 20 {
		i.problems = append(i.problems, i.resource+": "+fmt.Sprintf(format, args...))
	}
}

func (i *informer) seen() seen {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	store := map[string]string{}
	for _, object := range i.store.List() {
		facts, err := meta.Accessor(object)
		if err != nil {
			continue
		}
		key, _ := cache.MetaNamespaceKeyFunc(object)
		store[key] = string(facts.GetUID()) + " " + facts.GetResourceVersion()
	}
	return seen{Resource: i.resource, Stretches: i.stretches, Problems: append([]string{}, i.problems...), Store: store}
}
