package quota

import (
	"context"
	"encoding/json"
	"time"

	"github.com/signalbox-dev/signalbox/internal/audit"
)

// Store keeps quotas. A project that does not exist is [fault.NotFound].
type Store interface {
	// GetQuota returns a project's quota and what is used of it.
	GetQuota(ctx context.Context, project string) (Usage, error)
	// SetQuota replaces a project's quota and writes e.
	SetQuota(ctx context.Context, project string, q Quota, e audit.Entry) (Usage, error)
	// HeldUp returns how many runs are held up in each project that has, or had, a quota, in order of their names.
	HeldUp(ctx context.Context) ([]Held, error)
}

// Held is how many runs of a project are held up by its quota.
type Held struct {
	Project string
	// Queued wait for a place, Waiting for steps.
	Queued, Waiting int64
}

// Options are what the service needs beside its store.
type Options struct {
	// Now is the clock.
	Now func() time.Time
	// Admit is told of a project where more runs may have a place than before. It must not block.
	Admit func(project string)
}

// Service shows and changes what projects may use.
type Service struct {
	store Store
	opts  Options
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
	if err == nil {
		s.opts.Admit(project)
	}
	return u, err
}
