package run

import (
	"context"
	"slices"

	"github.com/signalbox-dev/signalbox/internal/fault"
	"github.com/signalbox-dev/signalbox/internal/run/problem"
)

// List lists runs.
func (s *Service) List(ctx context.Context, f Filter) ([]Run, error) {
	for _, status := range f.Statuses {
		if !status.Known() {
			return nil, fault.New(fault.Invalid, fault.InvalidArgument, "run status %q is none of %v", status, Statuses()).
				WithField("statuses", "unknown status %q", status)
		}
	}
	for _, code := range f.Problems {
		if code != AnyProblem && !slices.Contains(problem.Codes(), code) {
			return nil, fault.New(fault.Invalid, fault.InvalidArgument, "problem %q is neither %q nor one of %v", code, AnyProblem, problem.Codes()).
				WithField("problems", "unknown code %q", code)
		}
	}
	if f.Trigger != "" && !slices.Contains(Triggers(), f.Trigger) {
		return nil, fault.New(fault.Invalid, fault.InvalidArgument, "trigger %q is none of %v", f.Trigger, Triggers()).
			WithField("trigger", "unknown trigger %q", f.Trigger)
	}
	f, err := s.resolved(ctx, f)
	if err != nil {
		return nil, err
	}
	return s.store.ListRuns(ctx, f)
}

// Count counts a project's runs, of one workflow or of a time where the filter says so.
func (s *Service) Count(ctx context.Context, f Filter) (Counts, error) {
	f, err := s.resolved(ctx, f)
	if err != nil {
		return Counts{}, err
	}
	return s.store.CountRuns(ctx, f)
}

// resolved is the filter with the whole name of its workflow.
func (s *Service) resolved(ctx context.Context, f Filter) (Filter, error) {
	if f.Workflow == "" {
		return f, nil
	}
	full, err := s.workflows.Resolve(ctx, f.Project, f.Workflow)
	f.Workflow = full
	return f, err
}
