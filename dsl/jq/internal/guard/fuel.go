package guard

import (
	"context"
	"fmt"
	"time"

	"github.com/signalbox-dev/signalbox/dsl/jq/internal/pattern"
)

// DefaultFuel is the budget of one evaluation when the caller gives none: a few tenths of a second of work.
const DefaultFuel int64 = 5_000_000

// WatchEvery is how many units are spent between two calls of a Fuel's Watch: a fifth of a millisecond, by the prices.
const WatchEvery = 4096

// Err is an error that is the same everywhere, so that errors.Is finds it and nobody can replace it.
type Err string

// Error implements error.
func (e Err) Error() string { return string(e) }

// ErrFuel is what every error about an exhausted budget wraps; test for it with errors.Is.
const ErrFuel = Err("expression used up its compute budget")

// Fuel is a budget of compute. One unit is one instruction of the expression machine; functions whose work grows
// with their data charge in proportion to it. The same expression on the same data always uses the same number
// of units, on any machine. A Fuel may be shared by several evaluations in a row; it is not safe for concurrent use.
type Fuel struct {
	Limits Limits // caps on values; set before use
	Prices Prices // what is charged for; set before use
	// Watch, where set, is called about every [WatchEvery] units. It is for those who must stop an evaluation that takes longer than its
	// prices say: it may panic. It must not decide what an evaluation gives.
	Watch func()

	limit, used int64
	closed      chan struct{}

	patterns map[string]*pattern.Pattern // compiled in this evaluation
	roots    []any                       // values whose largest object and text are not known yet
	widest   int                         // keys of the largest object that is known
	longest  int64                       // bytes of the longest text that is known
	deepest  int64                       // what an instruction costs more because of the depth of calls
	watchAt  int64                       // units at which Watch is called next
}

// NewFuel returns a budget of limit units.
func NewFuel(limit int64) *Fuel {
	closed := make(chan struct{})
	close(closed)
	return &Fuel{Limits: DefaultLimits(), limit: limit, closed: closed}
}

// Begin notes the values that an evaluation starts with. It forgets what the one before left.
func (f *Fuel) Begin(values ...any) {
	f.patterns, f.roots, f.widest, f.longest, f.deepest = nil, values, 0, 0, 0
}

// Used tells how many units were spent so far; never more than the limit.
func (f *Fuel) Used() int64 { return min(f.used, f.limit) }

// Remaining tells how many units are left.
func (f *Fuel) Remaining() int64 { return max(f.limit-f.used, 0) }

// Err is nil while there is fuel left, afterwards an error that wraps ErrFuel.
func (f *Fuel) Err() error {
	if f.used <= f.limit {
		return nil
	}
	return fmt.Errorf("%w of %d units", ErrFuel, f.limit)
}

// charge spends n units and reports whether they were there.
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

// Counter makes a Fuel look like a context to the expression machine, which asks Done at every instruction.
// This stops an expression at an exact, repeatable instruction, which no clock can.
type Counter struct{ *Fuel }

var _ context.Context = Counter{}

// Deadline implements [context.Context]; there is none, because no clock may decide.
func (c Counter) Deadline() (time.Time, bool) { return time.Time{}, false }

// Value implements [context.Context] and carries nothing.
func (c Counter) Value(any) any { return nil }

// Done implements [context.Context]: being asked is what costs fuel.
func (c Counter) Done() <-chan struct{} {
	if c.charge(1+c.deepest) != nil {
		return c.closed
	}
	return nil
}
