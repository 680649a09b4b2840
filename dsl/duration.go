package dsl

import (
	"fmt"
	"time"

	"github.com/signalbox-dev/signalbox/dsl/internal/duration"
	"github.com/signalbox-dev/signalbox/dsl/jq"
)

// Duration is a length of time: an object of days, hours, minutes, seconds and milliseconds, an ISO 8601 duration,
// or an expression that gives either. ISO 8601 leaves the length of a year and a month open; here a year has 365 days
// and a month 30, so that a duration means the same whenever it starts. Durations are never negative.
type Duration struct {
	Pos   Pos
	fixed time.Duration
	expr  *Expr
}

// Eval gives the duration's length.
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

// Fixed gives the length of a duration that needs no evaluation.
func (d *Duration) Fixed() (time.Duration, bool) { return d.fixed, d.expr == nil }
