package run

import (
	"context"
	"time"
)

// AdmissionStore assigns the slots of a project's concurrency limit to runs. A run uses a slot while it is open and not
// `queued: admission`, unless a parent that awaits it started it, whose slot it shares. [Store.InsertRun] assigns a
// slot when fewer runs of the project use one than its quota allows and no run waits; otherwise the run is `queued:
// admission`, behind all runs accepted before it.
type AdmissionStore interface {
	// Admit assigns free slots of a project, no more than the given number at a time, to the runs that wait for one, in
	// order of acceptance, and returns their IDs in that order: they are `queued: starting` from then on. Callers in many
	// processes together never assign more slots than exist.
	Admit(ctx context.Context, project string, most int, at time.Time) ([]string, error)
	// ReturnAdmitted takes the slot back from a run that was admitted, is `queued: starting` and was not started: it
	// waits again at its old position. It returns false when the run is not in that state.
	ReturnAdmitted(ctx context.Context, id string, at time.Time) (bool, error)
	// AdmissionQueues returns how many runs wait, by project, for projects where any does.
	AdmissionQueues(ctx context.Context) (map[string]int64, error)
}
