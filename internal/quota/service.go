package quota

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/run"
)

// Store keeps quotas. A project that does not exist is [fault.NotFound].
type Store interface {
	// GetQuota returns a project's quota and what is used of it.
	GetQuota(ctx context.Context, project string) (Usage, error)
	// SetQuota replaces a project's quota and writes e.
	SetQuota(ctx context.Context, project string, q Quota, e audit.Entry) (Usage, error)
	// GrantSteps answers a request in the name of a run. All callers in all processes together grant no more than the limit in a period,
	// and what resumed runs get beyond it.
	GrantSteps(ctx context.Context, r Request) (Grant, error)
	// ResumeSteps lets a run that waits for steps have more of them in this period than the limit allows, once; it returns false when the
	// run does not wait for steps.
	ResumeSteps(ctx context.Context, project, id string) (bool, error)
	// WaitingForSteps lists runs that wait for steps, the one that has waited longest first.
	WaitingForSteps(ctx context.Context, project string, most int) ([]string, error)
	// ResumedSteps lists those of them that were resumed in this period and have not had their steps yet.
	ResumedSteps(ctx context.Context, project string, most int) ([]string, error)
	// ReturnSteps gives what runs that have ended did not use of a period back to it, of most runs at a time, and returns of how many.
	ReturnSteps(ctx context.Context, most int) (int, error)
	// HeldUp returns how many runs are held up in each project that has, or had, a quota, in order of their names.
	HeldUp(ctx context.Context) ([]Held, error)
	// Exclusive runs fn while nobody else, in any process, runs work of that name; it returns false at once when somebody does.
	Exclusive(ctx context.Context, name string, fn func(ctx context.Context) error) (ran bool, err error)
}

// Held is how many runs of a project are held up by its quota.
type Held struct {
	Project string
	// Queued wait for a place, Waiting for steps.
	Queued, Waiting int64
}

// Engine tells runs to ask for steps.
type Engine interface {
	// Control is that of [run.Engine].
	Control(ctx context.Context, r run.Run, op, reason string) error
}

// Runs are the controls of runs.
type Runs interface {
	Get(ctx context.Context, project, id string) (run.Run, error)
	// ResumeQuota tells a run to ask for steps, and writes who wanted that.
	ResumeQuota(ctx context.Context, project, id, reason string) (run.Run, error)
}

// Options are what the service needs beside its store.
type Options struct {
	// Now is the clock.
	Now func() time.Time
	// Admit is told of a project where more runs may have a place than before. It must not block.
	Admit  func(project string)
	Engine Engine
	Runs   Runs
}

// Service shows and changes what projects may use, and gives steps out.
type Service struct {
	store Store
	opts  Options

	stop   context.CancelFunc
	joined sync.WaitGroup
}

// NewService wires the service.
func NewService(store Store, opts Options) *Service { return &Service{store: store, opts: opts} }

// Get returns a project's quota and what is used of it.
func (s *Service) Get(ctx context.Context, project string) (Usage, error) {
	return s.store.GetQuota(ctx, project)
}

// Set replaces a project's quota. What a higher one allows goes on at once; a lower one stops nothing that has begun.
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
	s.tell(ctx, project, u, nil)
	return u, nil
}

// Grant answers a run that asks for steps.
func (s *Service) Grant(ctx context.Context, r Request) (Grant, error) {
	return s.store.GrantSteps(ctx, r)
}
