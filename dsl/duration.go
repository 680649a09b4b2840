package dsl

import (
	"fmt"
	"time"

	"github.com/signalbox-dev/signalbox/dsl/internal/duration"
	"github.com/signalbox-dev/signalbox/dsl/jq"
)

// Duration is a length of time: an object of days, hours, minutes, seconds and milliseconds, an ISO 8601 duration, or
// an expression that evaluates to either. ISO 8601 does not define the length of a year or a month; here a year has 365
// days and a month 30, so that a duration has the same length whenever it starts. Durations are never negative.
type Duration struct {
	Pos   Pos
	fixed time.Duration
	expr  *Expr
}

// Eval returns the duration's length.
func (d *Duration) Eval(input any, vars map[string]any, fuel *jq.Fuel) (time.Duration, error) {
	if d.expr == nil {
		return d.fixed, nil
	}
	v, err := d.expr.Eval(input, vars, fuel)
	if err != nil {
		return 0, err
	}
	length, err := duration.Of(v)
	if err != nil {
		return 0, fmt.Errorf("evaluate %q as a duration: %w", d.expr.Source, err)
	}
	return length, nil
}

// Fixed returns the length of a duration that needs no evaluation, and whether it is one.
func (d *Duration) Fixed() (time.Duration, bool) { return d.fixed, d.expr == nil }
