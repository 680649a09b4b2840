package reconciler

import (
	"context"
	"fmt"
	"time"

	"github.com/signalbox-dev/signalbox/internal/logger"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/reconciler/verdict"
)

// locate finds out what Temporal as it is now is to the runs.
func (p *pass) locate(ctx context.Context) (err error) {
	if p.place, err = p.r.engine.Place(ctx); err != nil {
		return err
	}
	if p.home, err = p.r.store.RunsHome(ctx); err != nil {
		return err
	}
	if p.workers, err = p.r.store.WorkerPlaces(ctx); err != nil {
		return err
	}
	p.standing = verdict.Stand(p.home.Place, p.place, p.workers)
	return nil
}

// recognise records the place before a pass acts: as the first one, or as another address of the same.
func (p *pass) recognise(ctx context.Context) error {
	switch {
	case p.dry || p.home.Place == p.place:
		return nil
	case p.home.Place == (run.Place{}):
		return p.move(ctx, p.r.opts.Now())
	case p.home.NamespaceID == p.place.NamespaceID:
		return p.move(ctx, p.home.Since)
	}
	return nil
}

// settleIn records the place after a pass when nothing that is open is left in the one of before: it lost its data and
// all that was lost is settled, or all was moved from there. While workers live there, runs may come to be there any time.
func (p *pass) settleIn(ctx context.Context) error {
	if p.dry || p.moved || p.report.Failed > 0 || p.report.Withheld > 0 || p.home.NamespaceID == p.place.NamespaceID {
		return nil
	}
	for _, w := range p.workers {
		if p.standing == verdict.Elsewhere && w.NamespaceID == p.home.NamespaceID {
			return nil
		}
	}
	if err := p.move(ctx, p.r.opts.Now()); err != nil {
		return err
	}
	p.standing = verdict.Stand(p.home.Place, p.place, p.workers)
	return nil
}

// move records this place as the one where the runs are, unless somebody else has recorded another one.
func (p *pass) move(ctx context.Context, since time.Time) error {
	to := run.Home{Place: p.place, Since: since}
	moved, err := p.r.store.MoveHome(ctx, p.home.Place, to)
	if err != nil || !moved {
		return err
	}
	if p.home.NamespaceID != "" && p.home.NamespaceID != p.place.NamespaceID {
		logger.FromContext(ctx).InfoContext(ctx, "The runs are in another Temporal from now on", "before", named(p.home.Place), "now", named(p.place))
	}
	p.home = to
	return nil
}

// withhold counts runs that are left alone because they may be in another Temporal.
func (p *pass) withhold(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.report.Withheld += n
}

// tell says why runs were left alone: in the report, and in the log once until the reason is another one.
func (p *pass) tell(ctx context.Context) {
	why := ""
	if p.report.Withheld > 0 {
		why = p.because()
	}
	p.report.WithheldBecause = why
	if p.dry || !p.r.memory.news(why) {
		return
	}
	logger.FromContext(ctx).ErrorContext(ctx, "Open runs are not known to this Temporal and are left alone: they may be in another one",
		"runs", p.report.Withheld, "detail", why)
}

// because is why runs were left alone, and what to do about it.
func (p *pass) because() string {
	if p.standing == verdict.Elsewhere {
		return fmt.Sprintf("they are not known to %s; since %s the runs have been in %s. Point temporal.address and temporal.namespace back there, "+
			"or, if the move is meant, cancel the runs that were left behind",
			named(p.place), p.home.Since.UTC().Format(time.RFC3339), named(p.home.Place))
	}
	other := p.place
	for _, w := range p.workers {
		if verdict.Another(w, p.place) {
			other = w
			break
		}
	}
	return fmt.Sprintf("they are not known to %s, and live workers are connected to %s. Make temporal.address and temporal.namespace the same "+
		"in all processes; workers that stopped count for a few seconds more", named(p.place), named(other))
}

// leftAlone is a report's runs that were left alone, as an error.
func leftAlone(report run.Report) error {
	if report.Withheld == 1 {
		return fmt.Errorf("1 open run was left alone: %s", report.WithheldBecause)
	}
	return fmt.Errorf("%d open runs were left alone: %s", report.Withheld, report.WithheldBecause)
}

func named(p run.Place) string {
	return fmt.Sprintf("Temporal at %s (namespace %q, ID %s)", p.Address, p.Namespace, p.NamespaceID)
}
