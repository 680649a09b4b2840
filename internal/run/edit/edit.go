// Package edit makes the input of a replay: from the original input, from what the caller saw of it, and from what the
// caller changed.
//
//	input, err := edit.Whole(given, redact.Mark)
//	input, err := edit.Patched(original, shown, patch, redact.Mark, maxBytes)
//
// The caller may have seen marks where the original has sensitive values. Two things follow. A mark never becomes input: a
// value that has one is refused, and so is nothing the caller never saw. And a patch tells nothing of what stands behind a
// mark: it cannot be tested, nor copied or moved to where it would be shown.
//
// The package is pure. Its errors are faults of the class Invalid or Exhausted that name the place in the request.
package edit

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/signalbox-dev/signalbox/internal/fault"
)

// Whole checks an input that is given as a whole.
func Whole(input json.RawMessage, mark string) error {
	value, err := decode(input)
	if err != nil {
		return fault.New(fault.Invalid, fault.InvalidInput, "the input is not JSON: %v", err).WithField("input", "%v", err)
	}
	if at, found := marked(value, mark, nil); found {
		return redacted("input" + pointer(at))
	}
	return nil
}

// Patched applies a JSON patch (RFC 6902) that was made for shown to original. The result may have maxBytes bytes more than
// the original before it is refused.
func Patched(original, shown, patch json.RawMessage, mark string, maxBytes int) (json.RawMessage, error) {
	ops, err := parse(patch)
	if err != nil {
		return nil, err
	}
	if len(ops) == 0 {
		return original, nil
	}
	p := patching{mark: mark, room: maxBytes}
	if p.original, err = decode(original); err != nil {
		return nil, err
	}
	if p.shown, err = decode(shown); err != nil {
		return nil, err
	}
	for i, op := range ops {
		if err := p.apply("patch/"+strconv.Itoa(i), op); err != nil {
			return nil, err
		}
	}
	return encode(p.original)
}

func redacted(field string) error {
	return fault.New(fault.Invalid, fault.InputRedacted,
		"%s has a mark that stands for a sensitive value; leave that value out of the edit, or write the real one", field).
		WithField(field, "is a redaction mark")
}

// marked finds the first string that has the mark.
func marked(value any, mark string, at []string) ([]string, bool) {
	switch v := value.(type) {
	case string:
		return at, strings.Contains(v, mark)
	case []any:
		for i, item := range v {
			if place, found := marked(item, mark, append(at, strconv.Itoa(i))); found {
				return place, true
			}
		}
	case map[string]any:
		for _, name := range slices.Sorted(keys(v)) {
			if place, found := marked(v[name], mark, append(at, name)); found {
				return place, true
			}
		}
	}
	return nil, false
}

func keys(m map[string]any) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

var errTrailing = errors.New("there is text after the value")

// decode reads one value. Numbers keep their text.
func decode(raw json.RawMessage) (value any, err error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(&value); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errTrailing
	}
	return value, nil
}

func encode(value any) (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
