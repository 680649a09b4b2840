package jq

import (
	"fmt"
	"slices"

	"github.com/signalbox-dev/signalbox/dsl/internal/value"
	"github.com/signalbox-dev/signalbox/dsl/jq/internal/guard"
	"github.com/signalbox-dev/signalbox/dsl/jq/internal/pattern"
)

// Fuel is a budget of compute. One unit is one instruction of the jq virtual machine; functions whose work grows with
// their data charge in proportion to it. The same expression on the same data always uses the same number of units, on
// any machine. A Fuel may be used by several evaluations in a row; it is not safe for concurrent use. Its field Limits
// limits the values that expressions create.
type Fuel = guard.Fuel

// Limits limits the values that expressions create.
type Limits = guard.Limits

// DefaultFuel is the budget of one evaluation if the caller passes none: a few tenths of a second of work.
const DefaultFuel = guard.DefaultFuel

// The errors that the errors of Run wrap; test for them with errors.Is.
const (
	ErrFuel = guard.ErrFuel // the budget is used up
	ErrSize = guard.ErrSize // a value is too large or too deep
)

// NewFuel returns a budget of limit units with the default limits.
func NewFuel(limit int64) *Fuel { return guard.NewFuel(limit) }

// Normalize converts a Go value into the types that expressions use: nil, bool, int, float64, *big.Int, string, []any
// and map[string]any. Integers that fit become int, others *big.Int; NaN becomes nil and the infinities the largest
// floats, as in jq's output. Any other type is converted through its JSON form; if it has none, it becomes nil.
func Normalize(v any) any { return value.Normalize(v) }

// DecodeJSON reads exactly one JSON value. Integers keep all their digits; text after the value is an error, and so
// is a nesting over 1,000 levels or a number over 1,024 digits.
func DecodeJSON(data []byte) (any, error) { return value.Decode(data) }

// EncodeJSON writes a value as compact JSON with sorted keys and without escaping <, > and &: equal values encode to
// equal bytes. It refuses values that JSON cannot represent. Invalid UTF-8 becomes the replacement character.
func EncodeJSON(v any) ([]byte, error) { return value.Encode(v) }

// TypeName returns a value's type as messages show it: "an object", "a number", "null".
func TypeName(v any) string { return value.TypeName(v) }

// PatternWeight returns an upper bound of the number of instructions that a regular expression compiles to. It depends
// on the text of the expression alone.
func PatternWeight(source string) int64 { return pattern.Weigh(source) }

// Builtins lists the functions that expressions may use, as name/arity, sorted.
func Builtins() []string {
	var out []string
	for f := range newLibrary().functions {
		out = append(out, fmt.Sprintf("%s/%d", f.name, f.arity))
	}
	slices.Sort(out)
	return out
}
