package run

import "time"

// Stuck is a verdict about a run that makes no progress although it should; package stuck gives it.
type Stuck struct {
	// Code says what is wrong; package problem has the codes.
	Code string
	// Cause says why workflow tasks fail, for the codes TASK_FAILING and POISON; empty for the others.
	Cause string
	// Since is since when it makes no progress.
	Since time.Time
	// Detail is what was seen and Advice what to do, in a line each.
	Detail, Advice string
	// CheckedAt is when it was last looked at.
	CheckedAt time.Time
}
