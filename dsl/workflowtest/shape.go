package workflowtest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/internal/duration"
	"github.com/signalbox-dev/signalbox/dsl/internal/suggest"
	"github.com/signalbox-dev/signalbox/dsl/internal/tree"
	"github.com/signalbox-dev/signalbox/dsl/jq"
)

// form is the form of a value in a test file.
type form int

const (
	anything form = iota
	text
	integer
	moment     // a time of RFC 3339
	length     // a duration of the language
	expression // jq
	object     // with the members of fields
	mapping    // any names, with values of item
	list       // of item
	some       // one item, or a list of them
)

// shape describes a value of a test file, for its reader and for the JSON Schema.
type shape struct {
	form   form
	item   *shape
	fields func(*reader) fields
	oneOf  []string // texts that are allowed; empty: all
}

// fields are the members that an object may have.
type fields []field

// field is one member: its shape, and its reader, which is called for a value of this shape only.
type field struct {
	name     string
	required bool
	shape    shape
	doc      string
	read     func(value)
}

func (fs fields) names() []string {
	names := make([]string, len(fs))
	for i, f := range fs {
		names[i] = f.name
	}
	return names
}

// value is a node of the file with its pointer.
type value struct {
	node *tree.Node
	path string
}

func (v value) at() location { return location{v.path, dsl.Pos(v.node.Pos)} }

func (v value) items() []value {
	if v.node.Kind != tree.Array {
		return []value{v}
	}
	items := make([]value, len(v.node.Items))
	for i, n := range v.node.Items {
		items[i] = value{n, fmt.Sprintf("%s/%d", v.path, i)}
	}
	return items
}

func (v value) members() map[string]value {
	members := make(map[string]value, len(v.node.Members))
	for _, m := range v.node.Members {
		members[m.Key] = value{m.Value, v.path + "/" + tree.Escape(m.Key)}
	}
	return members
}

func (v value) text() string { return v.node.Text }
func (v value) any() any     { return v.node.Value() }
func (v value) integer() int { n, _ := v.node.Scalar.(int); return n }

func (v value) duration() time.Duration {
	d, _ := duration.Of(v.any()) // the shape was checked
	return d
}

func (v value) time() time.Time {
	at, _ := time.Parse(time.RFC3339, v.text()) // the shape was checked
	return at
}

func (v value) texts() []string {
	list := v.items()
	out := make([]string, len(list))
	for i, item := range list {
		out[i] = item.text()
	}
	return out
}

func (v value) textMap() map[string]string {
	out := map[string]string{}
	for name, member := range v.members() {
		out[name] = member.text()
	}
	return out
}

// reader collects violations while it reads a file.
type reader struct {
	violations dsl.Violations
	compiler   *jq.Compiler
}

func (r *reader) report(code dsl.Code, at location, suggestion, format string, args ...any) {
	r.violations = append(r.violations, dsl.Violation{
		Severity: dsl.SeverityError, Code: code, Path: at.path, Pos: at.pos, Message: fmt.Sprintf(format, args...),
		Suggestion: suggestion,
	})
}

// object reads the members of an object.
func (r *reader) object(v value, what string, fs fields) {
	members := v.members()
	for _, f := range fs {
		member, given := members[f.name]
		switch {
		case !given && f.required:
			r.report(dsl.CodeMissingKey, v.at(), "", "%s needs the key %q", what, f.name)
		case given && r.conforms(member, f.shape, f.name):
			f.read(member)
		}
	}
	for _, m := range v.node.Members {
		if !slices.Contains(fs.names(), m.Key) {
			r.report(dsl.CodeUnknownKey, location{v.path + "/" + tree.Escape(m.Key), dsl.Pos(m.Pos)},
				suggest.Name(m.Key, fs.names()), "%s has no key %q", what, m.Key)
		}
	}
}

// conforms reports whether a value has a shape, without the members of objects, which the reader of the object checks.
func (r *reader) conforms(v value, s shape, what string) bool {
	switch s.form {
	case anything:
		return true
	case text, expression, moment:
		return r.is(v, tree.String, what) && r.textConforms(v, s, what)
	case integer:
		if _, whole := v.node.Scalar.(int); v.node.Kind == tree.Number && !whole {
			r.report(dsl.CodeType, v.at(), "", "%s must be an integer, got %s", what, v.node.Text)
			return false
		}
		return r.is(v, tree.Number, what)
	case length:
		if _, err := duration.Of(v.any()); err != nil {
			r.report(dsl.CodeValue, v.at(), "write {seconds: 5} or PT5S", "%s is no duration: %v", what, err)
			return false
		}
		return true
	case object:
		return r.is(v, tree.Object, what)
	case mapping:
		if !r.is(v, tree.Object, what) {
			return false
		}
		valid := true
		for name, member := range v.members() {
			valid = r.conforms(member, *s.item, what+"."+name) && valid
		}
		return valid
	case list, some:
		if s.form == list && !r.is(v, tree.Array, what) {
			return false
		}
		valid := true
		for _, item := range v.items() {
			valid = r.conforms(item, *s.item, what) && valid
		}
		return valid
	}
	return false
}

func (r *reader) is(v value, kind tree.Kind, what string) bool {
	if v.node.Kind == kind {
		return true
	}
	suggestion := ""
	if kind == tree.String && (v.node.Kind == tree.Number || v.node.Kind == tree.Bool) {
		suggestion = fmt.Sprintf("quote it: %q", v.node.Text)
	}
	r.report(dsl.CodeType, v.at(), suggestion, "%s must be %s, got %s", what, kind, v.node.Kind)
	return false
}

func (r *reader) textConforms(v value, s shape, what string) bool {
	switch {
	case s.form == moment:
		if _, err := time.Parse(time.RFC3339, v.text()); err != nil {
			r.report(dsl.CodeValue, v.at(), "write it as in 2026-01-31T08:00:00Z", "%s is no time: %q", what, v.text())
			return false
		}
	case s.form == expression:
		if _, err := r.compiler.Compile(bare(v.text()), variables()); err != nil {
			r.report(dsl.CodeExpression, v.at(), "", "%s does not compile: %v", what, err)
			return false
		}
	case len(s.oneOf) > 0 && !slices.Contains(s.oneOf, v.text()):
		r.report(dsl.CodeValue, v.at(), suggest.Closest(v.text(), s.oneOf), "%s must be one of %s, got %q", what,
			strings.Join(s.oneOf, ", "), v.text())
		return false
	}
	return true
}

// variables are those of the expressions of a test file.
func variables() []string { return []string{"input", "error", "requests", "events"} }

// bare returns an expression without ${ } around it.
func bare(source string) string {
	inner, wrapped := strings.CutPrefix(strings.TrimSpace(source), "${")
	if inner, closed := strings.CutSuffix(inner, "}"); wrapped && closed {
		return inner
	}
	return source
}
