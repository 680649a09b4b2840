package tree

import (
	"fmt"
	"strings"
)

// maxPointer is the length of the longest JSON pointer to a value, in bytes, and maxName what a violation shows of it.
// Each value and task has its pointer.
const (
	maxPointer = 4 << 10
	maxName    = 100
)

// builder is the part that both readers share: limits, violations, members.
type builder struct {
	limits     Limits
	nodes      int
	violations []Violation
	stopped    bool // a limit was exceeded: the tree is incomplete
}

func (b *builder) report(f Violation) { b.violations = append(b.violations, f) }

// stop records a violation after which the tree is not usable.
func (b *builder) stop(f Violation) {
	if !b.stopped {
		b.report(f)
	}
	b.stopped = true
}

// enter counts a node and checks the limits.
func (b *builder) enter(pos Pos, pointer string, depth int) bool {
	b.nodes++
	switch {
	case b.stopped:
	case len(pointer) > maxPointer:
		b.stop(Violation{
			Kind: Limit, Pos: pos, Pointer: pointer[:maxName],
			Message:    fmt.Sprintf("the path to this value has %d bytes, over the limit of %d", len(pointer), maxPointer),
			Suggestion: "use shorter keys",
		})
	case depth > b.limits.Depth:
		b.stop(Violation{Kind: Limit, Pos: pos,
			Message: fmt.Sprintf("nested deeper than the limit of %d levels", b.limits.Depth)})
	case b.nodes > b.limits.Nodes:
		b.stop(Violation{
			Kind: Limit, Pos: pos, Pointer: pointer,
			Message:    fmt.Sprintf("more than %d values once aliases are expanded", b.limits.Nodes),
			Suggestion: "use fewer aliases of large parts",
		})
	}
	return !b.stopped
}

// member adds a member unless the key already exists.
func (b *builder) member(n *Node, seen map[string]Pos, m Member, pointer string) {
	if first, twice := seen[m.Key]; twice {
		b.report(Violation{
			Kind: DuplicateKey, Pos: m.Pos, Pointer: pointer,
			Message:    fmt.Sprintf("the key %q is already defined in line %d", m.Key, first.Line),
			Suggestion: "remove or rename one of them",
		})
		return
	}
	seen[m.Key] = m.Pos
	n.Members = append(n.Members, m)
}

// Escape writes a key as a part of a JSON pointer.
func Escape(key string) string {
	if !strings.ContainsAny(key, "~/") {
		return key
	}
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
}

// Unescape returns the key that a part of a JSON pointer stands for.
func Unescape(part string) string {
	if !strings.Contains(part, "~") {
		return part
	}
	return strings.NewReplacer("~1", "/", "~0", "~").Replace(part)
}
