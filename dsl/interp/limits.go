package interp

// Version is the version of the interpretation. It grows when the same document and the same history would give other
// effects than before; a run keeps the version it started with. 2 added listen and emit; 3 pauses, steps that are granted, other
// runs and secrets.
const Version = 3

// Limits bound the compute of one run. All are counted, never measured by a clock.
type Limits struct {
	// ExpressionFuel bounds one evaluation; exhausted, the task fails with an expression error.
	ExpressionFuel int64
	// AdvanceFuel bounds one Advance; exhausted, it yields.
	AdvanceFuel int64
}

// DefaultLimits bound one evaluation and one Advance to a fraction of a second on a slow machine.
func DefaultLimits() Limits {
	return Limits{ExpressionFuel: 2_000_000, AdvanceFuel: 2_000_000}
}
