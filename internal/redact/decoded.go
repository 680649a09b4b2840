package redact

import (
	"encoding/json"
	"fmt"
	"math/big"
	"strconv"
)

// MayHide reports whether [Policy.Value] could put a mark into the JSON of a decoded value. It walks the value without
// encoding it, so that a large value without sensitive parts costs no memory, and no time in proportion to its texts.
// false is certain; true is not: Value keeps an empty value under a sensitive name. secrets may be nil.
func (p *Policy) MayHide(at Location, v any, secrets *SecretSet) bool {
	if p.all {
		return v != nil
	}
	s := search{secrets: secrets, hasSecrets: secrets.Any()}
	return s.value(v, p.trees(at))
}

// search searches for the first part of a value that is to be hidden.
type search struct {
	secrets    *SecretSet
	hasSecrets bool
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
		return s.hasSecrets && s.scalar(v)
	}
}

// namedText is [Named] for a string. Only the end of the string matters, which is copied to the stack.
func namedText(name string) bool {
	var buffer [maxName]byte
	return Named(append(buffer[:0], name[max(0, len(name)-maxName):]...))
}

func (s *search) text(text string) bool {
	if !s.hasSecrets {
		return false
	}
	_, found := s.secrets.Text(text)
	return found
}

// scalar compares a number as it would be encoded. Where another encoding is possible, the answer is true.
func (s *search) scalar(v any) bool {
	switch v := v.(type) {
	case nil, bool:
		return false
	case int:
		return s.secrets.values[strconv.Itoa(v)]
	case *big.Int:
		return s.secrets.values[v.String()]
	case json.Number:
		return s.secrets.values[v.String()]
	default: // a fraction has more than one form
		return len(fmt.Sprint(v)) >= shortest
	}
}

// hasContent reports whether a member with the name of a secret is to be hidden: one that may hold a secret.
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
