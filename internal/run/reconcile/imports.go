package reconcile

import (
	"context"

	"github.com/signalbox-dev/signalbox/internal/run"
)

// cancelImported cancels imported runs that were set back to an open status although their engine no longer exists.
// Each pass reads a limited number of open imported runs and continues where the previous one ended.
func (p *pass) cancelImported(ctx context.Context) error {
	after := p.r.imports
	for range importPages {
		page, err := p.r.opts.Imports.OpenImports(ctx, after, rowPage)
		if err != nil {
			return err
		}
		var stranded []run.Run
		for i := range page {
			if Decide(p.facts(&page[i])) == CancelImported {
				stranded = append(stranded, page[i])
			}
		}
		if err := p.cancel(ctx, stranded); err != nil {
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

// cancel cancels runs of an engine that no longer exists.
func (p *pass) cancel(ctx context.Context, stranded []run.Run) error {
	rows := make(map[string]run.Run, len(stranded))
	ended := make([]string, 0, len(stranded))
	for _, r := range stranded {
		rows[r.ID] = r
		ended = append(ended, r.ID)
	}
	if !p.dry && len(stranded) > 0 {
		var err error
		if ended, err = p.r.opts.Imports.EndImports(ctx, stranded, p.r.opts.Now()); err != nil {
			return err
		}
	}
	for _, id := range ended {
		r := rows[id]
		if !p.dry {
			p.r.opts.Metrics.Count(ctx, r.Project, string(run.Canceled))
		}
		p.record(ctx, run.Correction{
			Kind: run.CorrectionEngineGone, RunID: id, Project: r.Project, Applied: !p.dry,
			Detail: run.EngineGone(r.LegacyEngine, r.Status).Detail,
		})
	}
	return nil
}
