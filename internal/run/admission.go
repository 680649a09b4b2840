package run

import (
	"context"
	"time"
)

// AdmissionStore gives the places of projects to runs. A run has a place while it is open and not `queued: admission`, unless it was
// started by a parent that awaits it, and has that one's. [Store.InsertRun] gives one when fewer runs of the project have one than its quota allows and none waits; otherwise the
// run is `queued: admission`, behind all that were accepted before it.
type AdmissionStore interface {
	// Admit gives free places of a project, most at a time, to the runs that wait for one, in order of acceptance, and returns their
	// IDs in that order: they are `queued: starting` from then on. Callers in many processes together give no more than there are.
	Admit(ctx context.Context, project string, most int, at time.Time) ([]string, error)
	// ReturnAdmitted takes the place of a run back that was admitted, is `queued: starting` and was not started: it waits again, where
	// it did before. It returns false when the run is no longer that.
	ReturnAdmitted(ctx context.Context, id string, at time.Time) (bool, error)
	// AdmissionQueues returns how many runs wait, by project, for those where any does.
	AdmissionQueues(ctx context.Context) (map[string]int64, error)
}
