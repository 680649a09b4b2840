package run

import "time"

// Stuck is the diagnosis of a run that makes no progress although it should; package diagnose makes it.
type Stuck struct {
	// Code is the cause; see [Codes].
	Code string
	// Cause is why workflow tasks fail, for the codes TASK_FAILING and POISON; empty for the others.
	Cause string
	// Since is when progress stopped.
	Since time.Time
	// Detail is the observation and Advice the remedy, one line each.
	Detail, Advice string
	// CheckedAt is when the run was last diagnosed.
	CheckedAt time.Time
}
