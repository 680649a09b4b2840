package quota

import (
	"context"
	"encoding/json"
	"time"

	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/loop"
	"github.com/signalbox-dev/signalbox/internal/run"
)

// Store stores quotas. A project that does not exist is [apperror.NotFound].
type Store interface {
	// GetQuota returns a project's quota and its use.
	GetQuota(ctx context.Context, project string) (Usage, error)
	// SetQuota replaces a project's quota and writes e.
	SetQuota(ctx context.Context, project string, q Quota, e audit.Entry) (Usage, error)
	// GrantSteps grants steps to a run. All callers in all processes together grant no more than the limit in a period,
	// plus what resumed runs get beyond it.
	GrantSteps(ctx context.Context, r Request) (Grant, error)
	// ResumeSteps lets a run that waits for steps get more of them in this period than the limit allows, once; it returns
	// false when the run does not wait for steps.
	ResumeSteps(ctx context.Context, project, id string) (bool, error)
	// WaitingForSteps lists runs that wait for steps, the one that has waited longest first.
	WaitingForSteps(ctx context.Context, project string, most int) ([]string, error)
	// ResumedSteps lists the waiting runs that were resumed in this period and have not received their steps yet.
	ResumedSteps(ctx context.Context, project string, most int) ([]string, error)
	// ReturnSteps returns the unused steps of ended runs to their period, for up to most runs, and returns the number of
	// those runs.
	ReturnSteps(ctx context.Context, most int) (int, error)
	// HeldUp returns the number of waiting runs in each project that has, or had, a quota, in order of their names.
	HeldUp(ctx context.Context) ([]Held, error)
	// Exclusive runs fn while no other caller, in any process, runs work of that name; it returns false at once when one
	// does.
	Exclusive(ctx context.Context, name string, fn func(ctx context.Context) error) (ran bool, err error)
}

// Held is the number of runs of a project that wait because of its quota.
type Held struct {
	Project string
	// Queued runs wait for a slot, Waiting runs for steps.
	Queued, Waiting int64
}

// Engine sends controls to runs.
type Engine interface {
	// Control is Control of [run.Engine].
	Control(ctx context.Context, r run.Run, op, reason string) error
}

// Runs are the controls of runs.
type Runs interface {
	Get(ctx context.Context, project, id string) (run.Run, error)
	// ResumeQuota makes a run request steps, and writes an audit entry with the actor of ctx.
	ResumeQuota(ctx context.Context, project, id, reason string) (run.Run, error)
}

// Options are the dependencies of the service beside its store.
type Options struct {
	// Now is the clock.
	Now func() time.Time
	// Admit is called for a project where more runs may get a slot than before. It must not block.
	Admit  func(project string)
	Engine Engine
	Runs   Runs
}

// Service returns and changes quotas, and grants steps.
type Service struct {
	*loop.Loop // returns the steps of ended runs, and notifies waiting runs of available steps

	store Store
	opts  Options
}

// NewService returns a service. It does nothing in the background before Start.
func NewService(store Store, opts Options) *Service {
	s := &Service{store: store, opts: opts}
	s.Loop = loop.New(s.poll)
	return s
}

// Get returns a project's quota and its use.
func (s *Service) Get(ctx context.Context, project string) (Usage, error) {
	return s.store.GetQuota(ctx, project)
}

// Set replaces a project's quota. A higher quota takes effect at once; a lower one stops nothing that has begun.
func (s *Service) Set(ctx context.Context, project string, q Quota) (Usage, error) {
	if err := q.check(); err != nil {
		return Usage{}, err
	}
	entry := audit.NewEntry(ctx, s.opts.Now(), audit.QuotaSet, project, project, "")
	entry.Detail, _ = json.Marshal(map[string]int64{ //nolint:errchkjson // numbers always encode
		"concurrentRuns": q.ConcurrentRuns, "steps": q.Steps, "periodSeconds": int64(q.Period / time.Second),
	})
	u, err := s.store.SetQuota(ctx, project, q, entry)
	if err != nil {
		return Usage{}, err
	}
	s.opts.Admit(project)
	s.notifyWaiting(ctx, project, u, nil)
	return u, nil
}

// Grant grants steps to a run.
func (s *Service) Grant(ctx context.Context, r Request) (Grant, error) {
	return s.store.GrantSteps(ctx, r)
}
