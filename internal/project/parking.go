package project

import (
	"context"
	"log/slog"
	"time"

	"github.com/signalbox-dev/signalbox/internal/logger"
	"github.com/signalbox-dev/signalbox/internal/loop"
)

const (
	// longestReview is the interval of reviews, unless the idle time is short.
	longestReview = 15 * time.Second
	// reviewTimeout bounds one review.
	reviewTimeout = 30 * time.Second
	// reviewLock is the name of the lock of the reviewing process.
	reviewLock = "parking"
)

// Review are the projects that one review has woken and parked.
type Review struct{ Woken, Parked []string }

// ParkingStore reviews the activity of projects.
type ParkingStore interface {
	// Review wakes the parked projects that have work, and parks those in which nothing has happened for the idle time. An
	// idle time of 0 wakes all and parks none.
	Review(ctx context.Context, idle time.Duration) (Review, error)
	// Exclusive runs fn while no other process runs work of the same name, and reports whether it did.
	Exclusive(ctx context.Context, name string, fn func(context.Context) error) (bool, error)
}

// Parking parks the projects in which nothing happens: no process serves them until something happens again. Of all
// processes on one store, one reviews at a time.
type Parking struct {
	*loop.Loop

	store ParkingStore
	idle  time.Duration
}

// NewParking returns the parking of projects after an idle time; 0 parks none. It does nothing before Start.
func NewParking(store ParkingStore, idle time.Duration) *Parking {
	p := &Parking{store: store, idle: idle}
	p.Loop = loop.New(func(ctx, _ context.Context) time.Duration {
		p.review(ctx, logger.FromContext(ctx))
		return RecordEvery(idle)
	})
	return p
}

// RecordEvery returns the interval at which activity in a project is recorded and reviewed, for an idle time: a quarter
// of it, and at most [longestReview].
func RecordEvery(idle time.Duration) time.Duration {
	if idle == 0 {
		return longestReview
	}
	return min(idle/4, longestReview)
}

func (p *Parking) review(ctx context.Context, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(ctx, reviewTimeout)
	defer cancel()
	var changed Review
	_, err := p.store.Exclusive(ctx, reviewLock, func(ctx context.Context) (err error) {
		changed, err = p.store.Review(ctx, p.idle)
		return err
	})
	if err != nil && ctx.Err() == nil {
		log.WarnContext(ctx, "Projects without activity could not be found; trying again", "error", err)
	}
	if len(changed.Woken) > 0 {
		log.InfoContext(ctx, "Parked projects have work, and are served again", "projects", changed.Woken)
	}
	if len(changed.Parked) > 0 {
		log.InfoContext(ctx, "Projects are parked: nothing happens in them", "projects", changed.Parked, "for", p.idle)
	}
}
