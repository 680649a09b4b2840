// Package payload encodes values as the JSON of records: in full, or shortened if they are large.
package payload

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"slices"

	"github.com/signalbox-dev/signalbox/dsl/jq"
)

// Encode writes a value as JSON. Values come from JSON or from expressions, so they have a JSON form.
func Encode(v any) json.RawMessage {
	data, err := jq.EncodeJSON(v)
	if err != nil {
		data, _ = jq.EncodeJSON(err.Error())
	}
	return data
}

// Beginning returns a string with the beginning of a value's JSON: the form in which the versions before
// interp.ShortenedSince record a large value. Their workflow tasks end by its length.
func Beginning(v any) json.RawMessage {
	const beginning = 1 << 10
	return Encode(string(begin(nil, v, beginning)))
}

// Size returns a lower bound of the bytes of a value's JSON. It stops counting over the limit.
func Size(v any, limit int) int {
	switch v := v.(type) {
	case string:
		return len(v) + 2
	case *big.Int:
		return v.BitLen() / 4
	case []any:
		n := 2*len(v) + 1
		if n > limit {
			return n
		}
		for _, e := range v {
			if n += Size(e, limit-n) - 1; n > limit {
				return n
			}
		}
		return n
	case map[string]any:
		n := 5*len(v) + 1
		if n > limit {
			return n
		}
		for k, e := range v {
			if n += len(k) + Size(e, limit-n) - 1; n > limit {
				return n
			}
		}
		return n
	}
	return 1
}

// begin appends the beginning of a value's JSON, a little over limit bytes at most.
func begin(b []byte, v any, limit int) []byte {
	const many = 1 << 10
	switch v := v.(type) {
	case string:
		if len(v) > limit {
			v = v[:limit]
		}
		return append(b, Encode(v)...)
	case []any:
		b = append(b, '[')
		for i, e := range v {
			if len(b) > limit {
				return b
			}
			if i > 0 {
				b = append(b, ',')
			}
			b = begin(b, e, limit)
		}
		return append(b, ']')
	case map[string]any:
		if len(v) > many {
			return fmt.Appendf(b, "{%d members", len(v))
		}
		b = append(b, '{')
		for i, k := range slices.Sorted(maps.Keys(v)) {
			if len(b) > limit {
				return b
			}
			if i > 0 {
				b = append(b, ',')
			}
			b = append(append(b, Encode(k)...), ':')
			b = begin(b, v[k], limit)
		}
		return append(b, '}')
	}
	return append(b, Encode(v)...)
}
