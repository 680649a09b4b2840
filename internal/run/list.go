package run

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/signalbox-dev/signalbox/internal/apperror"
)

// List lists runs.
func (s *Service) List(ctx context.Context, f Filter) ([]Run, error) {
	f, err := s.Checked(ctx, f)
	if err != nil {
		return nil, err
	}
	return s.store.ListRuns(ctx, f)
}

// Count counts the runs that match the filter, and also in buckets of time if bucket is not zero.
func (s *Service) Count(ctx context.Context, f Filter, bucket time.Duration) (Counts, error) {
	f, err := s.Checked(ctx, f)
	if err != nil {
		return Counts{}, err
	}
	if bucket != 0 {
		if f.Until.IsZero() {
			f.Until = s.opts.Now()
		}
		if err := checkBuckets(f, bucket); err != nil {
			return Counts{}, err
		}
	}
	counts, err := s.store.CountRuns(ctx, f)
	if err == nil && bucket != 0 {
		counts.Buckets, err = s.store.CountBuckets(ctx, f, bucket)
	}
	return counts, err
}

func checkBuckets(f Filter, bucket time.Duration) error {
	invalid := func(field, message, format string, args ...any) error {
		return apperror.New(apperror.Invalid, apperror.InvalidArgument, format, args...).WithField(field, "%s", message)
	}
	switch n := -(-f.Until.Sub(f.Since) / bucket); {
	case bucket < MinBucket || bucket%time.Microsecond != 0:
		return invalid("bucket", "is too short", "a bucket of %v: give at least %v, in whole microseconds", bucket, MinBucket)
	case f.Since.IsZero():
		return invalid("since", "is required with bucket",
			"buckets without since: name the time at which the first one begins")
	case !f.Since.Before(f.Until):
		return invalid("until", "must be after since", "buckets from %s to %s: until must be after since",
			f.Since.Format(time.RFC3339), f.Until.Format(time.RFC3339))
	case f.Until.Sub(f.Since) > MaxBuckets*bucket || n > MaxBuckets:
		return invalid("bucket", "makes too many buckets", "the time from since to until has more than %d buckets of %v: "+
			"give a longer bucket or a shorter time", MaxBuckets, bucket)
	}
	return nil
}

// Checked returns the filter with the full name of its workflow, or why it cannot select anything.
func (s *Service) Checked(ctx context.Context, f Filter) (Filter, error) {
	if err := f.Check(); err != nil {
		return f, err
	}
	if f.Cause != "" && len(f.Stuck) == 0 {
		f.Stuck = []string{AnyCode} // only stuck runs have a cause
	}
	return s.resolved(ctx, f)
}

// maxErrorType is the maximum length of the type of an error in a filter, in bytes.
const maxErrorType = 1000

// Check returns an error for a condition that no run can fulfil, and for a version without a workflow. A period of no
// time is not an error.
func (f Filter) Check() error {
	for _, status := range f.Statuses {
		if !status.Known() {
			return apperror.New(apperror.Invalid, apperror.InvalidArgument, "unknown run status %q; use one of %v", status,
				Statuses()).
				WithField("statuses", "unknown status %q", status)
		}
	}
	for _, code := range f.Stuck {
		if code != AnyCode && !slices.Contains(Codes(), code) {
			return apperror.New(apperror.Invalid, apperror.InvalidArgument, "unknown code %q of stuck runs; use %q or one of %v",
				code, AnyCode, Codes()).
				WithField("stuck", "unknown code %q", code)
		}
	}
	if f.Version != "" && f.Workflow == "" { // it would have to be searched among all runs of the project
		return apperror.New(apperror.Invalid, apperror.InvalidArgument,
			"version %q without a workflow: name the workflow as well", f.Version).
			WithField("workflow", "is required with version")
	}
	if f.Trigger != "" && !slices.Contains(Triggers(), f.Trigger) {
		return apperror.New(apperror.Invalid, apperror.InvalidArgument, "unknown trigger %q; use one of %v", f.Trigger,
			Triggers()).
			WithField("trigger", "unknown trigger %q", f.Trigger)
	}
	if len(f.ErrorType) > maxErrorType {
		return apperror.New(apperror.Invalid, apperror.InvalidArgument,
			"the type of an error has %d bytes: at most %d are allowed", len(f.ErrorType), maxErrorType).
			WithField("error_type", "is too long")
	}
	if f.Waiting != "" && !slices.Contains(WaitingKinds(), f.Waiting) {
		return apperror.New(apperror.Invalid, apperror.InvalidArgument, "unknown kind of wait %q; use one of %v", f.Waiting,
			WaitingKinds()).
			WithField("waiting", "unknown kind %q", f.Waiting)
	}
	if f.Cause != "" && !slices.Contains(Causes(), f.Cause) {
		return apperror.New(apperror.Invalid, apperror.InvalidArgument, "unknown cause %q; use one of %v", f.Cause, Causes()).
			WithField("cause", "unknown cause %q", f.Cause)
	}
	if err := cmp.Or(CheckWords("words", f.Words), CheckWords("error_text", f.ErrorText)); err != nil {
		return err
	}
	if err := checkLabels(f.Labels); err != nil {
		return err
	}
	return checkFailureGroup(f.FailureGroup)
}

// CheckPeriods returns an error for a period that does not begin before it ends, so that no run is in it.
func (f Filter) CheckPeriods() error {
	for _, period := range []struct {
		since, until         time.Time
		sinceName, untilName string
	}{{f.Since, f.Until, "since", "until"}, {f.EndedSince, f.EndedUntil, "ended_since", "ended_until"}} {
		if !period.since.IsZero() && !period.until.IsZero() && !period.since.Before(period.until) {
			return apperror.New(apperror.Invalid, apperror.InvalidArgument, "%s %s is not after %s %s: no run matches",
				period.untilName, period.until.Format(time.RFC3339), period.sinceName, period.since.Format(time.RFC3339)).
				WithField(period.untilName, "must be after %s", period.sinceName)
		}
	}
	return nil
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
	return failureGroupKey(r.Workflow, r.Error)
}
