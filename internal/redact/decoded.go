package redact

import (
	"encoding/json"
	"fmt"
	"math/big"
	"strconv"
)

// MayHide reports whether [Policy.Value] could put a mark into the JSON of a decoded value. It walks the value without encoding it, so
// that a large value in which nothing is sensitive costs neither time in proportion to its texts nor memory. false is certain; true is
// not: an empty value under a sensitive name is kept by Value. taint may be nil.
func (p *Policy) MayHide(at Place, v any, taint *Taint) bool {
	if p.all {
		return v != nil
	}
	s := search{taint: taint, tainted: taint.Any()}
	return s.value(v, p.trees(at))
}

// search looks for the first part of a value that is to be hidden.
type search struct {
	taint   *Taint
	tainted bool
}

func (s *search) value(v any, trees []*tree) bool {
	for _, t := range trees {
		if t.end {
			return v != nil
		}
	}
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			if s.text(name) || hasContent(member) && namedText(name) || s.value(member, descend(trees, name)) {
				return true
			}
		}
		return false
	case []any:
		for i, item := range v {
			var below []*tree
			if len(trees) > 0 {
				below = descend(trees, strconv.Itoa(i))
			}
			if s.value(item, below) {
				return true
			}
		}
		return false
	case string:
		return s.text(v)
	default:
		return s.tainted && s.scalar(v)
	}
}

// namedText is [Named] for a text; only its end matters, which is copied to the stack.
func namedText(name string) bool {
	var buffer [maxName]byte
	return Named(append(buffer[:0], name[max(0, len(name)-maxName):]...))
}

func (s *search) text(text string) bool {
	if !s.tainted {
		return false
	}
	_, found := s.taint.Text(text)
	return found
}

// scalar compares a number as it would be encoded. Where another encoding is possible, the answer is true.
func (s *search) scalar(v any) bool {
	switch v := v.(type) {
	case nil, bool:
		return false
	case int:
		return s.taint.values[strconv.Itoa(v)]
	case *big.Int:
		return s.taint.values[v.String()]
	case json.Number:
		return s.taint.values[v.String()]
	default: // a fraction has more than one form
		return len(fmt.Sprint(v)) >= shortest
	}
}

// hasContent reports whether a member is worth hiding for its name.
func hasContent(v any) bool {
	switch v := v.(type) {
	case nil, bool:
		return false
	case string:
		return v != ""
	case []any:
		return len(v) > 0
	case map[string]any:
		return len(v) > 0
	default:
		return true
	}
}
