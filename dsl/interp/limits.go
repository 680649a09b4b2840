package interp

// Version is the version of the interpretation. It grows when the same document and the same history would give other
// effects than before; a run keeps the version it started with. 2 added listen and emit; 3 pauses, steps that are granted, other
// runs and secrets; 4 bounds: fuel that counts what built-in functions cost, recorded steps, steps per run, large values.
const Version = 4

// BoundedSince is the first version whose runs are bounded as version 4 says. Runs of older versions go on as they began.
const BoundedSince = 4

// Limits bound the compute of one run. All are counted, never measured by a clock.
type Limits struct {
	// ExpressionFuel bounds one evaluation; exhausted, the task fails with an expression error.
	ExpressionFuel int64
	// AdvanceFuel bounds one Advance; exhausted, it yields.
	AdvanceFuel int64
	// Steps bounds the steps that one run enters; 0: no bound. A run that would enter one more fails, and no task can catch
	// the error. Runs of versions before BoundedSince have no bound.
	Steps int64
	// Records bound the steps that have records of their own, in runs since version BoundedSince.
	Records RecordLimits
}

// DefaultLimits bound one evaluation and one Advance to a fraction of a second on a slow machine.
func DefaultLimits() Limits {
	return Limits{ExpressionFuel: 1_250_000, AdvanceFuel: 500_000, Records: DefaultRecordLimits()}
}
