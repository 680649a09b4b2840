// Package patch makes the input of a replay from the original input, the input as shown to the caller, and the caller's
// edit.
//
//	input, err := patch.Whole(given, redact.Mark)
//	input, err := patch.Patched(original, shown, patch, redact.Mark, maxBytes)
//
// The shown input may have marks where the original has sensitive values. This has two consequences. A mark never
// becomes input: a value of the edit that contains one is refused, while values of the original that the edit does not
// replace are not checked. And a patch reveals nothing of the value behind a mark: the value cannot be tested, nor
// copied or moved to where it would be shown, which another index of its list may be. Members of objects keep their
// order; new ones are the last.
//
// The package performs no I/O. Its errors are faults of the class Invalid or Exhausted that name the field of the
// request.
package patch

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/signalbox-dev/signalbox/internal/apperror"
)

// Whole checks an input that is given as a whole.
func Whole(input json.RawMessage, mark string) error {
	value, err := decode(input)
	if err != nil {
		return apperror.New(apperror.Invalid, apperror.InvalidInput, "the input is not JSON: %v", err).
			WithField("input", "%v", err)
	}
	if at, found := marked(value, mark, nil); found {
		return redacted("input" + pointer(at))
	}
	return nil
}

// Patched applies a JSON patch (RFC 6902) that was written against shown to original. The result may exceed the
// original by maxBytes bytes before it is refused.
func Patched(original, shown, patch json.RawMessage, mark string, maxBytes int) (json.RawMessage, error) {
	ops, err := parse(patch)
	if err != nil {
		return nil, err
	}
	if len(ops) == 0 {
		return original, nil
	}
	p := edit{mark: mark, room: maxBytes}
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
	return apperror.New(apperror.Invalid, apperror.InputRedacted,
		"%s contains a mark that stands for a sensitive value; omit that value from the edit, or write the actual "+
			"one", field).
		WithField(field, "is a redaction mark")
}

func shifted(field string) error {
	return apperror.New(apperror.Invalid, apperror.InputRedacted,
		"%s gives a value behind a mark another index of its list; add to the end of the list (/-), replace values in "+
			"place, or give the whole input", field).
		WithField(field, "moves a value behind a redaction mark")
}

// marked returns the path of the first string that contains the mark.
func marked(value any, mark string, at []string) ([]string, bool) {
	switch v := value.(type) {
	case string:
		return at, strings.Contains(v, mark)
	case []any:
		for i, item := range v {
			if path, found := marked(item, mark, append(at, strconv.Itoa(i))); found {
				return path, true
			}
		}
	case *object:
		for name, item := range v.all() {
			if path, found := marked(item, mark, append(at, name)); found {
				return path, true
			}
		}
	}
	return nil, false
}
