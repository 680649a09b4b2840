package run

import (
	"context"
	"slices"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/run/failuregroup"
)

// List lists runs.
func (s *Service) List(ctx context.Context, f Filter) ([]Run, error) {
	f, err := s.Checked(ctx, f)
	if err != nil {
		return nil, err
	}
	return s.store.ListRuns(ctx, f)
}

// Checked returns the filter with the full name of its workflow, or why it cannot select anything.
func (s *Service) Checked(ctx context.Context, f Filter) (Filter, error) {
	for _, status := range f.Statuses {
		if !status.Known() {
			return f, apperror.New(apperror.Invalid, apperror.InvalidArgument, "unknown run status %q; use one of %v", status, Statuses()).
				WithField("statuses", "unknown status %q", status)
		}
	}
	for _, code := range f.Problems {
		if code != AnyProblem && !slices.Contains(Codes(), code) {
			return f, apperror.New(apperror.Invalid, apperror.InvalidArgument, "unknown problem code %q; use %q or one of %v", code, AnyProblem, Codes()).
				WithField("problems", "unknown code %q", code)
		}
	}
	if f.Trigger != "" && !slices.Contains(Triggers(), f.Trigger) {
		return f, apperror.New(apperror.Invalid, apperror.InvalidArgument, "unknown trigger %q; use one of %v", f.Trigger, Triggers()).
			WithField("trigger", "unknown trigger %q", f.Trigger)
	}
	if err := failuregroup.Check("failure_group", f.FailureGroup); err != nil {
		return f, err
	}
	return s.resolved(ctx, f)
}

// Count counts a project's runs that match the filter's workflow, failure group and time, where they are set.
func (s *Service) Count(ctx context.Context, f Filter) (Counts, error) {
	if err := failuregroup.Check("failure_group", f.FailureGroup); err != nil {
		return Counts{}, err
	}
	f, err := s.resolved(ctx, f)
	if err != nil {
		return Counts{}, err
	}
	return s.store.CountRuns(ctx, f)
}

// resolved returns the filter with the full name of its workflow.
func (s *Service) resolved(ctx context.Context, f Filter) (Filter, error) {
	if f.Workflow == "" {
		return f, nil
	}
	full, err := s.workflows.Resolve(ctx, f.Project, f.Workflow)
	f.Workflow = full
	return f, err
}

// FailureGroup returns the key of the group of failed runs that a run belongs to. It is empty for a run that neither
// failed nor timed out, and for a run of another engine.
func FailureGroup(r Run) string {
	if r.Status != Failed && r.Status != TimedOut || r.Trigger == TriggerImport {
		return ""
	}
	return failuregroup.Key(r.Workflow, r.Version, r.Error)
}
