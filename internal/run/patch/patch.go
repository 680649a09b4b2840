package patch

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/redact"
)

const (
	// maxOperations limits the number of operations in a patch.
	maxOperations = 1000
	// maxDepth is the maximum depth of a path in a patch.
	maxDepth = 1000
)

// operation is one operation of a patch. An absent value differs from null.
type operation struct {
	Op    string          `json:"op"`
	Path  *string         `json:"path"`
	From  *string         `json:"from"`
	Value json.RawMessage `json:"value"`
}

func parse(patch json.RawMessage) ([]operation, error) {
	var ops []operation
	if err := json.Unmarshal(patch, &ops); err != nil {
		return nil, wrong("patch",
			`is not a list of operations as RFC 6902 writes them: [{"op": "replace", "path": "/amount", "value": 12}]`)
	}
	if len(ops) > maxOperations {
		return nil, wrong("patch", "has %d operations, more than %d; give the whole input instead", len(ops), maxOperations)
	}
	return ops, nil
}

func wrong(field, format string, args ...any) error {
	text := fmt.Sprintf(format, args...)
	return apperror.New(apperror.Invalid, apperror.InvalidArgument, "%s: %s", field, text).WithField(field, "%s", text)
}

// edit applies operations to both the shown input and the original: an error on the shown one reveals nothing of
// the original.
type edit struct {
	mark            string
	shown, original any
	room            int
}

func (p *edit) apply(field string, op operation) error {
	path, err := split(field+"/path", op.Path)
	if err != nil {
		return err
	}
	var value any
	switch op.Op {
	case "add", "replace", "test":
		if value, err = p.given(field, op); err != nil {
			return err
		}
	case "move", "copy":
		return p.transfer(field, op, path)
	case "remove":
	default:
		return wrong(field+"/op", "unknown operation %q; use add, remove, replace, move, copy or test", op.Op)
	}
	if op.Op == "test" {
		return p.test(field, path, value)
	}
	if op.Op != "replace" && p.shifts(path, op.Op == "add") {
		return shifted(field + "/path")
	}
	return p.both(field, func(doc any) (any, error) {
		switch op.Op {
		case "add":
			return put(doc, path, clone(value), true) // the documents share no values
		case "replace":
			return put(doc, path, clone(value), false)
		default:
			doc, _, err := take(doc, path)
			return doc, err
		}
	})
}

// given returns the value of an operation.
func (p *edit) given(field string, op operation) (any, error) {
	if op.Value == nil {
		return nil, wrong(field+"/value", "is required for %q", op.Op)
	}
	value, err := decode(op.Value)
	if err != nil {
		return nil, wrong(field+"/value", "%v", err)
	}
	if at, found := marked(value, p.mark, nil); found {
		return nil, redacted(field + "/value" + pointer(at))
	}
	return value, nil
}

// both changes the shown input first: there it fails with errors about values that the caller can see.
func (p *edit) both(field string, change func(doc any) (any, error)) (err error) {
	if p.shown, err = change(p.shown); err != nil {
		return wrong(field, "%v", err)
	}
	if p.original, err = change(p.original); err != nil {
		return wrong(field, "%v", err)
	}
	return nil
}

func (p *edit) test(field string, path []string, value any) error {
	seen, err := find(p.shown, path)
	if err != nil {
		return wrong(field, "%v", err)
	}
	if _, found := marked(seen, p.mark, nil); found {
		return redacted(field + "/path")
	}
	if !equal(seen, value) {
		return wrong(field, "the value at %q differs", pointer(path))
	}
	return nil
}

// transfer applies a move or a copy.
func (p *edit) transfer(field string, op operation, path []string) error {
	from, err := split(field+"/from", op.From)
	if err != nil {
		return err
	}
	seen, err := find(p.shown, from)
	if err != nil {
		return wrong(field, "%v", err)
	}
	if _, found := marked(seen, p.mark, nil); found {
		return redacted(field + "/from")
	}
	if op.Op == "move" {
		if len(path) > len(from) && pointer(path[:len(from)]) == pointer(from) {
			return wrong(field+"/path", "lies within the moved value")
		}
		return p.move(field, from, path)
	}
	if p.shifts(path, true) {
		return shifted(field + "/path")
	}
	if p.room -= weight(seen); p.room < 0 {
		return apperror.New(apperror.Exhausted, apperror.InputTooLarge,
			"%s: the patched input would be larger than the limit (runs.max_input_bytes)", field).
			WithField(field, "makes the input too large")
	}
	return p.both(field, func(doc any) (any, error) {
		value, err := find(doc, from)
		if err != nil {
			return nil, err
		}
		return put(doc, path, clone(value), true)
	})
}

// move applies a move whose value has no marks.
func (p *edit) move(field string, from, path []string) error {
	if p.shifts(from, false) {
		return shifted(field + "/from")
	}
	var values []any
	err := p.both(field, func(doc any) (any, error) {
		doc, value, err := take(doc, from)
		values = append(values, value)
		return doc, err
	})
	if err != nil {
		return err
	}
	if p.shifts(path, true) {
		return shifted(field + "/path")
	}
	return p.both(field, func(doc any) (any, error) {
		value := values[0]
		values = values[1:]
		return put(doc, path, value, true)
	})
}

// shifts reports whether a value with a mark gets another index of its list when a value is inserted at a path, or
// removed from it. A place in a list is sensitive by its index: at another one the value would be shown.
func (p *edit) shifts(path []string, insert bool) bool {
	if len(path) == 0 {
		return false
	}
	parent, _ := find(p.shown, path[:len(path)-1]) // where there is none, the change itself fails
	list, _ := parent.([]any)
	first, isIndex := redact.PartIndex(path[len(path)-1], len(list))
	if !isIndex {
		return false
	}
	if !insert {
		first++
	}
	_, found := marked(list[first:], p.mark, nil)
	return found
}

// split parses a JSON pointer.
func split(field string, text *string) ([]string, error) {
	switch {
	case text == nil:
		return nil, wrong(field, "is required")
	case *text == "":
		return nil, nil
	case (*text)[0] != '/':
		return nil, wrong(field, "%q is not a JSON pointer: it does not begin with /", *text)
	}
	parts := strings.Split((*text)[1:], "/")
	if len(parts) > maxDepth {
		return nil, wrong(field, "is deeper than %d", maxDepth)
	}
	for i, part := range parts {
		parts[i] = redact.UnescapePart(part)
	}
	return parts, nil
}

// pointer formats a JSON pointer.
func pointer(path []string) string {
	var b strings.Builder
	for _, part := range path {
		b.WriteString("/" + redact.EscapePart(part))
	}
	return b.String()
}
