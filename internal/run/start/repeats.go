package start

import (
	"bytes"
	"context"
	"time"

	"github.com/jellydator/ttlcache/v3"
	"golang.org/x/time/rate"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/redact"
	"github.com/signalbox-dev/signalbox/internal/run"
)

// The refused repeats of a request ID that one actor may make: without a limit, an actor could find an input by trying.
const (
	repeatsEvery = 6 * time.Second
	repeatsBurst = 20
	// maxRepeaters is the number of actors that a process remembers.
	maxRepeaters = 10_000
)

// repeats limits the refused repeats of each actor. It is safe for concurrent use.
type repeats struct {
	actors *ttlcache.Cache[string, *rate.Limiter]
}

func newRepeats() *repeats {
	return &repeats{ttlcache.New(ttlcache.WithCapacity[string, *rate.Limiter](maxRepeaters))}
}

// check returns an error while the actor has made too many repeats that were refused.
func (l *repeats) check(actor auth.Actor, now time.Time) error {
	item := l.actors.Get(actor.ID)
	if item == nil || item.Value().TokensAt(now) >= 1 {
		return nil
	}
	return apperror.New(apperror.Exhausted, apperror.RateLimited,
		"%q has repeated request IDs with other arguments too often; use a new request ID for each request", actor.Name).
		WithRetry(repeatsEvery)
}

// refused counts a refused repeat.
func (l *repeats) refused(actor auth.Actor, now time.Time) {
	item, _ := l.actors.GetOrSetFunc(actor.ID, func() *rate.Limiter {
		return rate.NewLimiter(rate.Every(repeatsEvery), repeatsBurst)
	})
	item.Value().AllowN(now, 1)
}

// refuseRepeat counts and audits the repeat of a request ID that belongs to another request, and returns its error.
func (s *Service) refuseRepeat(ctx context.Context, requestID string, stored run.Run) error {
	actor, _ := auth.ActorFrom(ctx)
	s.repeats.refused(actor, s.opts.Now())
	if err := s.store.WriteAudit(ctx,
		audit.NewEntry(ctx, s.opts.Now(), audit.RunStartRefused, stored.Project, stored.ID,
			"the request ID belongs to another request")); err != nil {
		return err
	}
	return reused(requestID, stored)
}

// comparable reports whether the actor of ctx may learn if its arguments are those of a stored run. The values that are
// hidden in the run are known only to the actor that started it.
func (s *Service) comparable(ctx context.Context, stored run.Run) bool {
	actor, acts := auth.ActorFrom(ctx)
	return !acts || actor.Name == stored.Actor || !bytes.Contains(stored.Input, []byte(redact.Mark))
}
