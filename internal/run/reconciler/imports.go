package reconciler

import (
	"context"

	"github.com/signalbox-dev/signalbox/internal/cutover"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/reconciler/verdict"
)

// imports settles the imported runs that somebody has set back to an open state, on an engine that is gone. Where there are many open ones,
// each pass looks at the next of them.
func (p *pass) imports(ctx context.Context) error {
	after := p.r.imports
	for range importPages {
		page, err := p.r.opts.Imports.OpenImports(ctx, after, rowPage)
		if err != nil {
			return err
		}
		var stranded []run.Run
		for i := range page {
			if verdict.Of(p.facts(&page[i])) == verdict.Settle {
				stranded = append(stranded, page[i])
			}
		}
		if err := p.settle(ctx, stranded); err != nil {
			return err
		}
		if after = ""; len(page) == rowPage {
			after = page[rowPage-1].ID
		}
		if !p.dry {
			p.r.imports = after
		}
		if after == "" {
			return nil
		}
	}
	return nil
}

// settle cancels runs whose engine is gone.
func (p *pass) settle(ctx context.Context, stranded []run.Run) error {
	rows := make(map[string]run.Run, len(stranded))
	ended := make([]string, 0, len(stranded))
	for _, r := range stranded {
		rows[r.ID] = r
		ended = append(ended, r.ID)
	}
	if !p.dry && len(stranded) > 0 {
		var err error
		if ended, err = p.r.opts.Imports.SettleImports(ctx, stranded, p.r.opts.Now()); err != nil {
			return err
		}
	}
	for _, id := range ended {
		r := rows[id]
		if !p.dry {
			p.r.opts.Metrics.Count(ctx, r.Project, string(run.Canceled))
		}
		p.record(ctx, run.Correction{
			Kind: run.CorrectionEngineGone, RunID: id, Project: r.Project, Applied: !p.dry, Detail: cutover.EngineGone(r.LegacyEngine, r.Status).Detail,
		})
	}
	return nil
}
