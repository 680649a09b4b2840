package interp

// Version is the version of the interpretation. It increases when the same document and the same history would lead to
// other effects than before; a run keeps the version it started with.
//
//	version  difference from the version before
//	2        the conditions of a catch and of its retry policy see the error as . instead of the task's input;
//	         a retry without a delay waits; a child without an input gets that of its task; fromdate accepts
//	         fractions of a second; loose mode evaluates each text that compiles; messages of schemas have no
//	         empty pointers
const Version = 2

// Limits limit the compute of one run. All are counted, never measured by a clock.
type Limits struct {
	// ExpressionFuel limits one evaluation; when it is exhausted, the task fails with an expression error.
	ExpressionFuel int64
	// AdvanceFuel limits one Advance; when it is exhausted, Advance yields.
	AdvanceFuel int64
	// Steps limits the steps that one run enters; 0: no limit. A run that would enter one more fails, and no task can
	// catch the error.
	Steps int64
	// Records limits the steps that have records of their own.
	Records RecordLimits
}

// DefaultLimits limit one evaluation and one Advance to a fraction of a second on a slow machine.
func DefaultLimits() Limits {
	return Limits{ExpressionFuel: 1_250_000, AdvanceFuel: 500_000, Records: DefaultRecordLimits()}
}

// atLeast reports whether a run has at least a version of the interpretation.
func (m *Machine) atLeast(version int) bool { return m.start.Interpreter >= version }
