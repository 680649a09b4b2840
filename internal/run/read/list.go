package read

import (
	"context"
	"time"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/run"
)

// List lists runs.
func (s *Reader) List(ctx context.Context, f run.Filter) ([]run.Run, error) {
	f, err := s.Checked(ctx, f)
	if err != nil {
		return nil, err
	}
	return s.store.ListRuns(ctx, f)
}

// Count counts the runs that match the filter, and also in buckets of time if bucket is not zero.
func (s *Reader) Count(ctx context.Context, f run.Filter, bucket time.Duration) (run.Counts, error) {
	f, err := s.Checked(ctx, f)
	if err != nil {
		return run.Counts{}, err
	}
	if bucket != 0 {
		if f.Until.IsZero() {
			f.Until = s.opts.Now()
		}
		if err := checkBuckets(f, bucket); err != nil {
			return run.Counts{}, err
		}
	}
	counts, err := s.store.CountRuns(ctx, f)
	if err == nil && bucket != 0 {
		counts.Buckets, err = s.store.CountBuckets(ctx, f, bucket)
	}
	return counts, err
}

func checkBuckets(f run.Filter, bucket time.Duration) error {
	invalid := func(field, message, format string, args ...any) error {
		return apperror.New(apperror.Invalid, apperror.InvalidArgument, format, args...).WithField(field, "%s", message)
	}
	switch n := -(-f.Until.Sub(f.Since) / bucket); {
	case bucket < run.MinBucket || bucket%time.Microsecond != 0:
		return invalid("bucket", "is too short", "a bucket of %v: give at least %v, in whole microseconds", bucket,
			run.MinBucket)
	case f.Since.IsZero():
		return invalid("since", "is required with bucket",
			"buckets without since: name the time at which the first one begins")
	case !f.Since.Before(f.Until):
		return invalid("until", "must be after since", "buckets from %s to %s: until must be after since",
			f.Since.Format(time.RFC3339), f.Until.Format(time.RFC3339))
	case f.Until.Sub(f.Since) > run.MaxBuckets*bucket || n > run.MaxBuckets:
		return invalid("bucket", "makes too many buckets", "the time from since to until has more than %d buckets of %v: "+
			"give a longer bucket or a shorter time", run.MaxBuckets, bucket)
	}
	return nil
}

// Checked returns the filter with the full name of its workflow, or why it cannot select anything.
func (s *Reader) Checked(ctx context.Context, f run.Filter) (run.Filter, error) {
	if err := f.Check(); err != nil {
		return f, err
	}
	if f.Cause != "" && len(f.Stuck) == 0 {
		f.Stuck = []string{run.AnyCode} // only stuck runs have a cause
	}
	return s.resolved(ctx, f)
}

// resolved returns the filter with the full name of its workflow.
func (s *Reader) resolved(ctx context.Context, f run.Filter) (run.Filter, error) {
	if f.Workflow == "" {
		return f, nil
	}
	full, err := s.workflows.Resolve(ctx, f.Project, f.Workflow)
	f.Workflow = full
	return f, err
}
