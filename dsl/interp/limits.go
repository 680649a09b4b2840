package interp

// Version is the version of the interpretation. It increases when the same document and the same history would lead to
// other effects than before; a run keeps the version it started with. Version 2 added listen and emit; 3 pauses,
// granted steps, other runs and secrets; 4 limits: fuel that includes the cost of built-in functions, recorded steps,
// steps per run, large values; 5 workflow tasks that end after a time of calls, records of large values that keep their
// types; 6 retries that wait for as long as the called service asks.
const Version = 6

// BoundedSince is the first version with limits for runs. Runs of older versions continue without them.
const BoundedSince = 4

// PacedSince is the first version whose workflow tasks end after a time of calls.
const PacedSince = 5

// ShortenedSince is the first version whose records of large payloads keep the types of the values. Where a workflow
// task ends depends on the sizes of records, so runs of earlier versions keep theirs.
const ShortenedSince = 5

// AskedSince is the first version whose retries wait for as long as the called service asks.
const AskedSince = 6

// Limits limit the compute of one run. All are counted, never measured by a clock.
type Limits struct {
	// ExpressionFuel limits one evaluation; when it is exhausted, the task fails with an expression error.
	ExpressionFuel int64
	// AdvanceFuel limits one Advance; when it is exhausted, Advance yields.
	AdvanceFuel int64
	// Steps limits the steps that one run enters; 0: no limit. A run that would enter one more fails, and no task can
	// catch the error. Runs of versions before BoundedSince have no limit.
	Steps int64
	// Records limits the steps that have records of their own, in runs since version BoundedSince.
	Records RecordLimits
}

// DefaultLimits limit one evaluation and one Advance to a fraction of a second on a slow machine.
func DefaultLimits() Limits {
	return Limits{ExpressionFuel: 1_250_000, AdvanceFuel: 500_000, Records: DefaultRecordLimits()}
}
