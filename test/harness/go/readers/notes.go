// What a reader writes down of itself.
package main

import (
	"fmt"
	"maps"
	"sync"

	"k8s.io/apimachinery/pkg/util/resourceversion"
)

type fallen struct {
	Key  string `json:"key"`
	From string `json:"from"`
	To   string `json:"to"`
}

type notes struct {
	reader, resource string

	mutex    sync.Mutex
	store    map[string]string
	problems []string
	versions []string
	fallen   []fallen
	counts   map[string]int
}

func newNotes(reader, resource string) *notes {
	return &notes{reader: reader, resource: resource, store: map[string]string{}, problems: []string{}, versions: []string{}, fallen: []fallen{}, counts: map[string]int{}}
}

func (n *notes) count(what string) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	n.counts[what]++
}

func (n *notes) problem(format string, args ...any) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	if len(n.problems) < 20 {
		n.problems = append(n.problems, n.reader+", "+n.resource+": "+fmt.Sprintf(format, args...))
	}
}

func (n *notes) listed(version string) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	n.versions = append(n.versions, version)
}

func (n *notes) fell(key, from, to string) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	n.fallen = append(n.fallen, fallen{Key: key, From: from, To: to})
}

func (n *notes) put(key, uidAndVersion string) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	n.store[key] = uidAndVersion
}

func (n *notes) remove(key string) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	delete(n.store, key)
}

func (n *notes) get(key string) (string, bool) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	known, found := n.store[key]
	return known, found
}

func (n *notes) replace(store map[string]string) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	n.store = store
}

func (n *notes) seen() seen {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	return seen{
		Reader: n.reader, Resource: n.resource, Store: maps.Clone(n.store), Problems: append([]string{}, n.problems...),
		Versions: append([]string{}, n.versions...), Fallen: append([]fallen{}, n.fallen...), Counts: maps.Clone(n.counts),
	}
}

// isLater: what is not a number is never later.
func isLater(version, than string) bool {
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err == nil && order > 0
}
