package reconciler

import (
	"context"
	"fmt"
	"time"

	"github.com/signalbox-dev/signalbox/internal/logger"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/home"
)

// locate finds out what Temporal as it is now is to the runs.
func (p *pass) locate(ctx context.Context) (err error) {
	p.view, err = home.Look(ctx, p.r.engine, p.r.store)
	return err
}

// recognise records the place before a pass acts: as the first one, or as another address of the same.
func (p *pass) recognise(ctx context.Context) error {
	switch {
	case p.dry || p.view.Home.Place == p.view.Here:
		return nil
	case p.view.Home.Place == (run.Place{}):
		return p.move(ctx, p.r.opts.Now())
	case p.view.Home.NamespaceID == p.view.Here.NamespaceID:
		return p.move(ctx, p.view.Home.Since)
	}
	return nil
}

// settleIn records the place after a pass when nothing that is open is left in the one of before: it lost its data and
// all that was lost is settled, or all was moved from there. While workers live there, runs may come to be there any time.
func (p *pass) settleIn(ctx context.Context) error {
	if p.dry || p.moved || p.report.Failed > 0 || p.report.Withheld > 0 || p.view.Home.NamespaceID == p.view.Here.NamespaceID {
		return nil
	}
	for _, w := range p.view.Workers {
		if p.view.Standing() == home.Elsewhere && w.NamespaceID == p.view.Home.NamespaceID {
			return nil
		}
	}
	return p.move(ctx, p.r.opts.Now())
}

// move records this place as the one where the runs are, unless somebody else has recorded another one.
func (p *pass) move(ctx context.Context, since time.Time) error {
	to := run.Home{Place: p.view.Here, Since: since}
	moved, err := p.r.store.MoveHome(ctx, p.view.Home.Place, to)
	if err != nil || !moved {
		return err
	}
	if p.view.Home.NamespaceID != "" && p.view.Home.NamespaceID != p.view.Here.NamespaceID {
		logger.FromContext(ctx).InfoContext(ctx, "The runs are in another Temporal from now on", "before", home.Named(p.view.Home.Place), "now", home.Named(p.view.Here))
	}
	p.view.Home = to
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
	if p.view.Standing() == home.Elsewhere {
		return "they are " + p.view.Because() + ". Point temporal.address and temporal.namespace back there, " +
			"or, if the move is meant, terminate the runs that were left behind"
	}
	return "they are " + p.view.Because() + ". Make temporal.address and temporal.namespace the same " +
		"in all processes; workers that stopped count for a few seconds more"
}

// leftAlone is a report's runs that were left alone, as an error.
func leftAlone(report run.Report) error {
	if report.Withheld == 1 {
		return fmt.Errorf("1 open run was left alone: %s", report.WithheldBecause)
	}
	return fmt.Errorf("%d open runs were left alone: %s", report.Withheld, report.WithheldBecause)
}
