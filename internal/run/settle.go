package run

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/fault"
	"github.com/signalbox-dev/signalbox/internal/logger"
)

const (
	// settleEvery is how often runs are looked for whose start has no known outcome.
	settleEvery = 5 * time.Second
	// settlePage is how many queued runs are read at a time.
	settlePage = 200
)

// Settler hands over again the runs that were left `queued: starting`: the process died in between, or Temporal's answer
// was lost. Starting a run twice starts it once, so it needs no knowledge of which it was.
type Settler struct {
	service *Service

	cancel context.CancelFunc
	joined sync.WaitGroup
}

// NewSettler returns a settler for the service's runs.
func NewSettler(service *Service) *Settler { return &Settler{service: service} }

// Start begins to look for runs to settle.
func (s *Settler) Start(ctx context.Context) error {
	ctx, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	s.joined.Go(func() { s.loop(auth.WithActor(ctx, auth.System())) })
	return nil
}

// Stop ends the looking and joins it.
func (s *Settler) Stop(context.Context) error {
	s.cancel()
	s.joined.Wait()
	return nil
}

func (s *Settler) loop(ctx context.Context) {
	ticker := time.NewTicker(settleEvery)
	defer ticker.Stop()
	for {
		if err := s.service.Settle(ctx); err != nil && ctx.Err() == nil {
			logger.FromContext(ctx).DebugContext(ctx, "Starts without a known outcome could not be settled", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// Settle hands over every run that has been `queued: starting` for longer than a start may take. It does nothing while
// Temporal is away. A run that cannot be settled yet does not hold up those behind it; the first such error is returned.
func (s *Service) Settle(ctx context.Context) error {
	filter := Filter{Statuses: []Status{Queued}, OldestFirst: true, Limit: settlePage}
	var failed error
	for {
		page, err := s.store.ListRuns(ctx, filter)
		if err != nil {
			return err
		}
		for _, r := range page {
			if r.QueuedReason != QueuedStarting || s.opts.Now().Sub(r.StatusAt) < s.opts.StartTimeout {
				continue
			}
			if err := s.engine.Check(ctx); err != nil {
				return err
			}
			if err := s.settle(ctx, r); err != nil && failed == nil {
				failed = err
			}
		}
		if len(page) < settlePage {
			return failed
		}
		last := page[len(page)-1]
		filter.After = &Cursor{CreatedAt: last.CreatedAt, ID: last.ID}
	}
}

// settle hands one run over again. Its caller was told that it is queued, so a definite refusal ends it visibly.
func (s *Service) settle(ctx context.Context, r Run) error {
	r, err := s.store.GetRun(ctx, r.Project, r.ID)
	if err != nil {
		return err
	}
	startCtx, cancel := context.WithTimeout(ctx, s.opts.StartTimeout)
	defer cancel()
	executionID, err := s.engine.Start(startCtx, r)
	now := s.opts.Now()
	log := logger.FromContext(ctx)
	var refused *fault.Fault
	switch {
	case err == nil:
		log.InfoContext(ctx, "Run with an unknown outcome of its start was handed over", "run_id", r.ID)
		err = s.store.MarkHandedOver(ctx, r.ID, executionID, now)
	case errors.As(err, &refused) && (refused.Class == fault.Refused || refused.Class == fault.Invalid):
		log.WarnContext(ctx, "Run could not be started", "run_id", r.ID, "error", err)
		problem := &Problem{
			Type: dsl.ErrorTypeRuntime, Status: 500, Title: "Not started", Detail: readable(err), Instance: "/",
		}
		_, err = s.store.FinishMissing(ctx, r.ID, Failed, problem, now,
			audit.NewEntry(ctx, now, audit.RunStartRefused, r.Project, r.ID, readable(err)))
	default:
		return err
	}
	s.changes.Notify(r.ID)
	return err
}
