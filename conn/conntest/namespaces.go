package conntest

import (
	"maps"
	"slices"
	"sync"
)

// SetNamespaces sets the namespaces that exist. A namespace that existed before keeps its ID.
func (f *Frontend) SetNamespaces(names ...string) {
	f.namespaces.set(names)
}

// RemoveNamespace removes a namespace, also if the upstream has it.
func (f *Frontend) RemoveNamespace(name string) {
	f.namespaces.remove(name)
}

// directory holds the namespaces.
type directory struct {
	mu sync.Mutex
	// all: every name exists except the removed ones, since the upstream determines which namespaces it has.
	all     bool
	removed map[string]bool
	ids     map[string]string // by name
}

func newDirectory(options Options) *directory {
	d := &directory{removed: map[string]bool{}, ids: map[string]string{}}
	switch {
	case len(options.Namespaces) > 0:
		d.set(options.Namespaces)
	case options.Upstream != "":
		d.all = true
	default:
		d.set([]string{"default"})
	}
	return d
}

func (d *directory) set(names []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.all = false
	maps.DeleteFunc(d.ids, func(name, _ string) bool { return !slices.Contains(names, name) })
	for _, name := range names {
		if d.ids[name] == "" {
			d.ids[name] = newID()
		}
	}
}

func (d *directory) remove(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.removed[name] = true
	delete(d.ids, name)
}

func (d *directory) has(name string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.ids[name] != "" || d.all && !d.removed[name]
}

// find looks a namespace up by its name or, where that is empty, by its ID.
func (d *directory) find(name, id string) (foundName, foundID string, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for n, i := range d.ids {
		if n == name || name == "" && i == id {
			return n, i, true
		}
	}
	return "", "", false
}
