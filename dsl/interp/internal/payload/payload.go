// Package payload encodes values as the JSON of records: in full, or shortened if they are large.
package payload

import (
	"encoding/json"
	"math/big"

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
