package problem

import (
	"context"
	"time"

	"github.com/signalbox-dev/signalbox/conn/conntype"
	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/logger"
	"github.com/signalbox-dev/signalbox/internal/loop"
)

const (
	// recordEvery is the time between two passes, and how often a process tries to take over from one that has stopped.
	recordEvery = 5 * time.Second
	// logEvery is how often the log has the same line about a source that cannot be read.
	logEvery = 10 * time.Minute
	// connectingPause is the time between two looks at the first attempt to connect to Temporal, before which no
	// dispatcher is known.
	connectingPause = 100 * time.Millisecond
	// confirmEvery is how often the record of a problem that does not change is written.
	confirmEvery = time.Minute
	// lockName is the name of the lock that elects the process.
	lockName = "problems"
)

// Recording is what a pass of the recorder writes about one problem.
type Recording struct {
	Record

	// Again marks a new occurrence: what was done about the problem is removed, if the record still has the revision
	// before this one. Otherwise only times and the finding are written, if the record has this revision or does not
	// exist.
	Again bool
	// Gone marks a record to delete.
	Gone bool
}

// RecorderStore is the store of a [Recorder].
type RecorderStore interface {
	// Record writes what a pass found. A record with another revision stays as it is.
	Record(ctx context.Context, list []Recording) error
	// Exclusive runs fn unless another caller, in any process, runs work of that name.
	Exclusive(ctx context.Context, name string, fn func(context.Context) error) (ran bool, err error)
}

// Recorder stores the problems that exist, and those that no longer do. One elected process records.
type Recorder struct {
	*loop.Loop

	service *Service
	store   RecorderStore
}

// NewRecorder returns a recorder. It records nothing before Start.
func NewRecorder(s *Service, store RecorderStore) *Recorder {
	r := &Recorder{service: s, store: store}
	r.Loop = loop.New(r.poll)
	return r
}

// Start makes the first pass. It does not block, and is called once.
func (r *Recorder) Start(ctx context.Context) error {
	return r.Loop.Start(logger.WithContext(ctx, logger.WithoutRepeats(logger.FromContext(ctx), logEvery)))
}

// poll makes passes while this process holds the lock, and tries to get the lock otherwise.
func (r *Recorder) poll(ctx, _ context.Context) time.Duration {
	ctx = auth.WithActor(ctx, auth.System())
	_, err := r.store.Exclusive(ctx, lockName, func(ctx context.Context) error {
		for r.service.o.Connection().State == conntype.Connecting && loop.Sleep(ctx, connectingPause) {
		}
		for ctx.Err() == nil {
			if err := r.Pass(ctx); err != nil {
				return err
			}
			loop.Sleep(ctx, recordEvery)
		}
		return nil
	})
	if err != nil && ctx.Err() == nil {
		logger.FromContext(ctx).DebugContext(ctx, "Problems could not be recorded", "error", err)
	}
	return recordEvery
}

// Pass records the problems of all projects.
func (r *Recorder) Pass(ctx context.Context) error {
	s := r.service
	projects, err := s.visible(ctx, "")
	if err != nil {
		return err
	}
	l := s.find(ctx, projects)
	records, err := s.o.Store.Problems(ctx, append(projects, ""))
	if err != nil {
		return err
	}
	return r.store.Record(ctx, l.recordings(records, s.o.Now()))
}

// recordings compares what was found with the records.
func (l *live) recordings(records []Record, now time.Time) (list []Recording) {
	byID := map[string]Record{}
	for _, r := range records {
		byID[r.ID] = r
	}
	for _, f := range l.findings {
		r, known := byID[f.ID]
		delete(byID, f.ID)
		switch {
		case !known:
			list = append(list, Recording{Record: Record{Finding: f, FirstSeen: now, LastSeen: now}})
		case occursAgain(r, now):
			list = append(list, Recording{
				Record: Record{Finding: f, FirstSeen: now, LastSeen: now, Revision: r.Revision + 1}, Again: true})
		case !r.ResolvedAt.IsZero(), now.Sub(r.LastSeen) >= confirmEvery, differs(f, r.Finding):
			r.Finding, r.LastSeen, r.ResolvedAt = f, now, time.Time{}
			list = append(list, Recording{Record: r})
		}
	}
	for _, r := range byID {
		switch {
		case r.ResolvedAt.IsZero() && !l.isUnknown(r.Finding):
			r.Finding, r.ResolvedAt = l.resolved(r.Finding), now
			list = append(list, Recording{Record: r})
		case !r.ResolvedAt.IsZero() && now.Sub(r.ResolvedAt) >= kept:
			list = append(list, Recording{Record: r, Gone: true})
		}
	}
	return list
}

// differs reports whether a finding has changed in more than its times.
func differs(a, b Finding) bool {
	return a.Count != b.Count || a.NotReplayed != b.NotReplayed || a.Title != b.Title || a.Detail != b.Detail ||
		a.Cause != b.Cause
}
