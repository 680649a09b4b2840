// Package docdiff compares two documents by their structure: which tasks were added, removed, moved or changed, and which
// other parts changed. The order of keys, comments and the spelling of values do not count.
//
//	for _, c := range docdiff.Compare(before, after) {
//		fmt.Println(c.Kind, c.Task, c.Parts)
//	}
package docdiff

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/eventfilter"
	"github.com/signalbox-dev/signalbox/dsl/taskindex"
)

// Kind is the kind of a change.
type Kind string

// The kinds of changes. A task that was moved may also have been changed: then it has two changes.
const (
	Added   Kind = "added"
	Removed Kind = "removed"
	Moved   Kind = "moved"
	Changed Kind = "changed"
)

// Change is one difference.
type Change struct {
	Kind Kind
	// Task is the name of the task; empty for a part of the document outside of its tasks.
	Task string
	// Before and After are the JSON pointers of the task or the part in the two documents; empty where it is not in one.
	Before, After string
	// Parts are the members of a changed task that differ, as paths of keys, such as with.endpoint.
	Parts []string
	// Pos is the position in the new document, or in the old one for what was removed; zero for parts outside of tasks.
	Pos dsl.Pos
}

// Compare returns the differences between two documents, in the order of the new one; what was removed comes last. The
// version of a document is not compared.
func Compare(before, after *dsl.Document) []Change {
	changes := compareRest(before, after)
	old, updated := entries(before), entries(after)
	pairs := match(old, updated)
	moved := reordered(updated, pairs)
	for _, e := range updated {
		p, known := pairs[e]
		if !known {
			changes = append(changes, Change{Kind: Added, Task: e.task.Name, After: e.task.Pointer, Pos: e.task.Pos})
			continue
		}
		change := Change{Task: e.task.Name, Before: p.task.Pointer, After: e.task.Pointer, Pos: e.task.Pos}
		if p.parent != e.parent || moved[e] {
			change.Kind = Moved
			changes = append(changes, change)
		}
		if change.Parts = differences(p.own, e.own, ""); len(change.Parts) > 0 {
			change.Kind = Changed
			changes = append(changes, change)
		}
	}
	kept := map[*entry]bool{}
	for _, p := range pairs {
		kept[p] = true
	}
	for _, e := range old {
		if !kept[e] {
			changes = append(changes, Change{Kind: Removed, Task: e.task.Name, Before: e.task.Pointer, Pos: e.task.Pos})
		}
	}
	return changes
}

// entry is a task with its place by names, which does not depend on the tasks beside it.
type entry struct {
	task   *dsl.Task
	parent string // pointer of its list without the positions of tasks
	own    any    // the definition without inner tasks
	index  int    // in its list
}

func entries(doc *dsl.Document) []*entry {
	tasks := taskindex.List(doc)
	out := make([]*entry, len(tasks))
	for i, t := range tasks {
		out[i] = &entry{task: t, parent: listOf(t.Pointer), own: withoutTasks(t.Definition), index: t.Index}
	}
	return out
}

// listOf returns the pointer of a task's list, without the positions of the tasks around it.
func listOf(pointer string) string {
	parts := strings.Split(pointer, "/")
	parts = parts[:max(0, len(parts)-2)] // without its own position and name
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool {
		_, err := strconv.Atoi(part)
		return err == nil
	}), "/")
}

// withoutTasks returns the definition of a task without the tasks inside it, which are compared by themselves.
func withoutTasks(definition any) any {
	object, ok := definition.(map[string]any)
	if !ok {
		return definition
	}
	out := maps.Clone(object)
	for _, key := range []string{"do", "try"} {
		if _, list := out[key].([]any); list {
			delete(out, key)
		}
	}
	for key, member := range map[string]string{"catch": "do", "fork": "branches", "foreach": "do"} {
		if inner, ok := out[key].(map[string]any); ok {
			inner = maps.Clone(inner)
			delete(inner, member)
			out[key] = inner
		}
	}
	return out
}

// match finds the old entry of each new one: of the same name in the same list, else the only one of the same name and
// kind that is left.
func match(old, updated []*entry) map[*entry]*entry {
	pairs := map[*entry]*entry{}
	taken := map[*entry]bool{}
	pair := func(e *entry, fits func(o *entry) bool) {
		var found []*entry
		for _, o := range old {
			if !taken[o] && o.task.Name == e.task.Name && fits(o) {
				found = append(found, o)
			}
		}
		if len(found) == 1 {
			pairs[e], taken[found[0]] = found[0], true
		}
	}
	for _, e := range updated {
		pair(e, func(o *entry) bool { return o.parent == e.parent })
	}
	for _, e := range updated {
		if pairs[e] == nil {
			pair(e, func(o *entry) bool { return o.task.Body.Kind() == e.task.Body.Kind() })
		}
	}
	return pairs
}

// reordered returns the tasks that have another order within their list than before: as few as explain the new order.
func reordered(updated []*entry, pairs map[*entry]*entry) map[*entry]bool {
	lists := map[string][]*entry{}
	for _, e := range updated {
		if p := pairs[e]; p != nil && p.parent == e.parent {
			lists[e.parent] = append(lists[e.parent], e)
		}
	}
	moved := map[*entry]bool{}
	for _, list := range lists {
		kept := longestRising(list, func(e *entry) int { return pairs[e].index })
		for _, e := range list {
			moved[e] = !kept[e]
		}
	}
	return moved
}

// longestRising returns the members of a longest part of a list whose values rise.
func longestRising(list []*entry, value func(*entry) int) map[*entry]bool {
	length, before := make([]int, len(list)), make([]int, len(list))
	last := -1
	for i := range list {
		length[i], before[i] = 1, -1
		for j := range i {
			if value(list[j]) < value(list[i]) && length[j]+1 > length[i] {
				length[i], before[i] = length[j]+1, j
			}
		}
		if last < 0 || length[i] > length[last] {
			last = i
		}
	}
	kept := map[*entry]bool{}
	for i := last; i >= 0; i = before[i] {
		kept[list[i]] = true
	}
	return kept
}

// compareRest compares the parts of documents outside of their tasks.
func compareRest(before, after *dsl.Document) []Change {
	rest := func(doc *dsl.Document) map[string]any {
		root, _ := doc.Definition.(map[string]any)
		out := maps.Clone(root)
		delete(out, "do")
		if header, ok := out["document"].(map[string]any); ok {
			header = maps.Clone(header)
			delete(header, "version")
			out["document"] = header
		}
		return out
	}
	old, updated := rest(before), rest(after)
	var changes []Change
	for _, part := range differences(old, updated, "") {
		change := Change{Kind: Changed, Before: pointer(part), After: pointer(part)}
		switch {
		case member(old, part) == nil:
			change.Kind, change.Before = Added, ""
		case member(updated, part) == nil:
			change.Kind, change.After = Removed, ""
		}
		changes = append(changes, change)
	}
	return changes
}

func pointer(path string) string { return "/" + strings.ReplaceAll(path, ".", "/") }

func member(v any, path string) any {
	for key := range strings.SplitSeq(path, ".") {
		object, _ := v.(map[string]any)
		v = object[key]
	}
	return v
}

// maxDepth is the number of keys in a path of a difference.
const maxDepth = 3

// differences returns the paths of the members in which two values differ.
func differences(a, b any, at string) []string {
	if eventfilter.Equal(a, b) {
		return nil
	}
	first, ok := a.(map[string]any)
	second, both := b.(map[string]any)
	if !ok || !both || strings.Count(at, ".") >= maxDepth-1 {
		return []string{cmp.Or(at, "the task")}
	}
	keys := slices.Collect(maps.Keys(first))
	for key := range second {
		if _, known := first[key]; !known {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	var out []string
	for _, key := range keys {
		path := strings.TrimPrefix(at+"."+key, ".")
		x, had := first[key]
		y, has := second[key]
		if had != has {
			out = append(out, path)
			continue
		}
		out = append(out, differences(x, y, path)...)
	}
	return out
}
