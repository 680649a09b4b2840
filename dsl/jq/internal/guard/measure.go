package guard

import (
	"encoding/json"
	"fmt"
	"math"
	"math/big"

	"github.com/signalbox-dev/signalbox/dsl/internal/value"
)

// ErrSize is wrapped by every error about a value that is too large or too deep; test for it with errors.Is.
const ErrSize = Err("value is over a limit")

// Limits limits the values that expressions create.
type Limits struct {
	Bytes int64 // approximate size of a value as JSON; parts that occur several times count each time
	Items int   // length of an array, number of keys of an object
	Index int   // largest index that an expression may use
	Depth int   // nesting
	Bits  int   // length of an integer
}

// DefaultLimits returns the limits of a new Fuel.
func DefaultLimits() Limits {
	return Limits{Bytes: 16 << 20, Items: 1 << 18, Index: 1 << 18, Depth: value.MaxDepth, Bits: 4096}
}

func sizeError(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrSize, fmt.Sprintf(format, args...))
}

const nodeBytes = 16

// gauge measures a value by its JSON form. A value made of shared parts can be exponentially larger than the memory it
// uses, so the measurement stops at the limit.
type gauge struct {
	limits Limits
	nodes  int64
	bytes  int64
	widest int // keys of the largest object
	// longest is the length of the longest text in bytes.
	longest int64
	// sorting is the cost of sorting the keys of the objects.
	sorting int64
	// digits is the size of the long integers: their conversion to text takes longer than that of texts.
	digits int64
	err    error
	raw    bool // contains numbers as text, NaN or infinities, which normalized values do not contain
}

func (g *gauge) walk(v any, depth int) {
	g.nodes++
	g.bytes += nodeBytes
	switch v := v.(type) {
	case string:
		g.bytes += int64(len(v))
		g.longest = max(g.longest, int64(len(v)))
	case json.Number:
		g.bytes += int64(len(v))
		g.raw = true
	case float64:
		g.raw = g.raw || math.IsNaN(v) || math.IsInf(v, 0)
	case *big.Int:
		g.bytes += int64(v.BitLen() / 8)
		g.digits += int64(v.BitLen() / 8)
	case []any:
		for _, e := range v {
			if !g.ok(depth) {
				return
			}
			g.walk(e, depth+1)
		}
	case map[string]any:
		g.widest = max(g.widest, len(v))
		g.sorting += int64(len(v)) * logarithm(len(v)) / 2
		for k, e := range v {
			if !g.ok(depth) {
				return
			}
			g.bytes += int64(len(k))
			g.walk(e, depth+1)
		}
	}
	g.ok(depth)
}

func (g *gauge) ok(depth int) bool {
	// one message for both limits, as which of them is exceeded first depends on the order of a map
	if g.err == nil && (g.bytes > g.limits.Bytes || depth > g.limits.Depth) {
		g.err = sizeError("more than %d bytes or nested deeper than %d levels", g.limits.Bytes, g.limits.Depth)
	}
	return g.err == nil
}

// text returns the number of bytes of text in the value.
func (g *gauge) text() int64 { return g.bytes - g.nodes*nodeBytes }

// cost is the fuel for one pass over the measured value.
func (g *gauge) cost() int64 { return 1 + g.nodes/2 + g.bytes/64 }

// deep measures a whole value, charges for it and refuses it if it is too large. The charge of a refusal is that of the
// limit, because the number of parts visited depends on the order of a map.
func (f *Fuel) deep(v any) (int64, error) {
	g := &gauge{limits: f.Limits}
	err := f.measure(g, v)
	return g.nodes, err
}

func (f *Fuel) measure(g *gauge, v any) error {
	g.walk(v, 0)
	if g.err != nil {
		if err := f.charge(f.Limits.Bytes / 64); err != nil {
			return err
		}
		return g.err
	}
	return f.charge(g.cost())
}

// Result checks the result of an expression and normalizes it.
func (f *Fuel) Result(v any) (any, error) {
	g := &gauge{limits: f.Limits}
	if err := f.measure(g, v); err != nil {
		return nil, err
	}
	if g.raw {
		return value.Normalize(v), nil
	}
	return v, nil
}

// length is the size of a value's top level, in items or bytes.
func length(v any) int {
	switch v := v.(type) {
	case string:
		return len(v)
	case []any:
		return len(v)
	case map[string]any:
		return len(v)
	}
	return 0
}

// fits checks the length that a value is about to have, and charges for creating it.
func (f *Fuel) fits(v any, n int) error {
	switch v.(type) {
	case string:
		return f.room(int64(n))
	case []any, map[string]any:
		if n > f.Limits.Items {
			return sizeError("%d items, the limit is %d", n, f.Limits.Items)
		}
		if m, object := v.(map[string]any); object {
			f.widest = max(f.widest, n)
			return f.charge(4*int64(n) + hashedKeys(m)) // each key is hashed and stored again
		}
		return f.charge(int64(n) / 3)
	}
	return nil
}
