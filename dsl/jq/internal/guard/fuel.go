package guard

import (
	"context"
	"fmt"
	"time"

	"github.com/signalbox-dev/signalbox/dsl/jq/internal/pattern"
)

// DefaultFuel is the budget of one evaluation if the caller passes none: a few tenths of a second of work.
const DefaultFuel int64 = 5_000_000

// WatchEvery is the number of units between two calls of a Fuel's Watch: about a fifth of a millisecond of work.
const WatchEvery = 4096

// Err is a constant error: errors.Is finds it, and no package can reassign it.
type Err string

// Error implements error.
func (e Err) Error() string { return string(e) }

// ErrFuel is wrapped by every error about an exhausted budget; test for it with errors.Is.
const ErrFuel = Err("expression used up its compute budget")

// Fuel is a budget of compute. One unit is one instruction of the jq virtual machine; functions whose work grows with
// their data charge in proportion to it. The same expression on the same data always uses the same number of units, on
// any machine. A Fuel may be used by several evaluations in a row; it is not safe for concurrent use.
type Fuel struct {
	Limits Limits // limits on values; set before use
	// Watch, if set, is called about every [WatchEvery] units. A caller that must stop an evaluation that takes longer
	// than its charge suggests may panic in it. It must not influence the result of an evaluation.
	Watch func()
	// Now is the time that now returns; without it, now is an error. It must be the same whenever an evaluation is
	// repeated.
	Now time.Time
	// Version1 selects the first version of the interpretation, in which fromdate refuses times with a fraction of a
	// second.
	Version1 bool

	limit, used int64
	closed      chan struct{}

	patterns map[string]*pattern.Pattern // compiled in this evaluation
	roots    []any                       // values whose largest object and text have not been measured yet
	widest   int                         // keys of the largest object measured
	longest  int64                       // bytes of the longest text measured
	deepest  int64                       // surcharge per instruction for the depth of calls
	watchAt  int64                       // units at which Watch is called next
}

// NewFuel returns a budget of limit units.
func NewFuel(limit int64) *Fuel {
	closed := make(chan struct{})
	close(closed)
	return &Fuel{Limits: DefaultLimits(), limit: limit, closed: closed}
}

// Begin registers the values that an evaluation starts with, and removes those of the previous one.
func (f *Fuel) Begin(values ...any) {
	f.patterns, f.roots, f.widest, f.longest, f.deepest = nil, values, 0, 0, 0
}

// Used returns the number of units used; never more than the limit.
func (f *Fuel) Used() int64 { return min(f.used, f.limit) }

// Remaining returns the number of units left.
func (f *Fuel) Remaining() int64 { return max(f.limit-f.used, 0) }

// Err is nil while there is fuel left, afterwards an error that wraps ErrFuel.
func (f *Fuel) Err() error {
	if f.used <= f.limit {
		return nil
	}
	return fmt.Errorf("%w of %d units", ErrFuel, f.limit)
}

// charge uses n units and returns an error if there were fewer.
func (f *Fuel) charge(n int64) error {
	if f.used <= f.limit {
		f.used += n
	}
	if f.Watch != nil && f.used >= f.watchAt {
		f.watchAt = f.used + WatchEvery
		f.Watch()
	}
	return f.Err()
}

// Counter presents a Fuel as a context to gojq, which calls Done at every instruction. This stops an expression at an
// exact, repeatable instruction, which a deadline could not.
type Counter struct{ *Fuel }

var _ context.Context = Counter{}

// Deadline implements [context.Context]; there is none, because a clock must not influence the result.
func (c Counter) Deadline() (time.Time, bool) { return time.Time{}, false }

// Value implements [context.Context] and carries nothing.
func (c Counter) Value(any) any { return nil }

// Done implements [context.Context]: each call charges for one instruction.
func (c Counter) Done() <-chan struct{} {
	if c.charge(1+c.deepest) != nil {
		return c.closed
	}
	return nil
}
