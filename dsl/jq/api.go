package jq

import (
	"fmt"
	"slices"

	"github.com/signalbox-dev/signalbox/dsl/internal/value"
	"github.com/signalbox-dev/signalbox/dsl/jq/internal/guard"
	"github.com/signalbox-dev/signalbox/dsl/jq/internal/pattern"
)

// Fuel is a budget of compute. One unit is one instruction of the expression machine; functions whose work grows
// with their data charge in proportion to it. The same expression on the same data always uses the same number
// of units, on any machine. A Fuel may be shared by several evaluations in a row; it is not safe for concurrent use.
// Its field Limits caps the values expressions make.
type Fuel = guard.Fuel

// Limits caps the values expressions make.
type Limits = guard.Limits

// Prices say what a budget is charged for.
type Prices = guard.Prices

// The prices. A budget has those by work unless its field Prices is set.
const (
	// ByWork charges for the time and memory that each function takes.
	ByWork = guard.ByWork
	// ByInstruction charges mostly for instructions. It is for runs that began so.
	ByInstruction = guard.ByInstruction
)

// DefaultFuel is the budget of one evaluation when the caller gives none: a few tenths of a second of work.
const DefaultFuel = guard.DefaultFuel

// What the errors of Run wrap; test for them with errors.Is.
const (
	ErrFuel = guard.ErrFuel // the budget is used up
	ErrSize = guard.ErrSize // a value is too large or too deep
)

// NewFuel returns a budget of limit units with the default limits.
func NewFuel(limit int64) *Fuel { return guard.NewFuel(limit) }

// Normalize turns a Go value into the values expressions work on: nil, bool, int, float64, *big.Int, string,
// []any and map[string]any. Integers that fit become int, others *big.Int; NaN becomes nil and the infinities the
// largest floats, as in jq's output. Anything else goes through its JSON form; what has none becomes nil.
func Normalize(v any) any { return value.Normalize(v) }

// DecodeJSON reads exactly one JSON value. Integers keep all their digits; text after the value is an error, and so
// is a nesting over 1,000 levels or a number over 1,024 digits.
func DecodeJSON(data []byte) (any, error) { return value.Decode(data) }

// EncodeJSON writes a value as compact JSON with sorted keys and without escaping <, > and &: equal values give
// equal bytes. It refuses what JSON cannot hold. Invalid UTF-8 becomes the replacement character.
func EncodeJSON(v any) ([]byte, error) { return value.Encode(v) }

// TypeName names a value's type as authors know it: "an object", "a number", "null".
func TypeName(v any) string { return value.TypeName(v) }

// PatternWeight estimates from above how many instructions a regular expression compiles to, by its text alone.
func PatternWeight(source string) int64 { return pattern.Weigh(source) }

// Builtins lists the functions that expressions may use, as name/arity in order.
func Builtins() []string {
	var out []string
	for f := range newLibrary(ByWork).functions {
		out = append(out, fmt.Sprintf("%s/%d", f.name, f.arity))
	}
	slices.Sort(out)
	return out
}
