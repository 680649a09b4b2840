package run

import "github.com/signalbox-dev/signalbox/internal/apperror"

// StepStatuses are the statuses of steps.
func StepStatuses() []string {
	return []string{"running", "waiting", "completed", "failed", "skipped", "canceled"}
}

// NoStep is the error for a step that the run does not have, or that has no row because a summary counts it.
func NoStep(id string, number int64) error {
	return apperror.New(apperror.NotFound, apperror.StepNotFound,
		"run %q has no step %d, or the step is only counted in the summary of a long run", id, number)
}
