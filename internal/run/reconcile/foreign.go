package reconcile

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/signalbox-dev/signalbox/internal/run"
)

// maxForeignGroups bounds the groups of foreign runs of a report. Executions of further groups are counted in one
// without a workflow.
const maxForeignGroups = 100

// foreignKey is what the executions of a group have in common.
type foreignKey struct{ project, workflow, version, why string }

// addForeign adds an execution that cannot be adopted to those of its workflow version with the same reason.
func (p *pass) addForeign(x run.Execution, of run.Identity, why lack) {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := foreignKey{of.Project, of.Workflow, of.Version, why.text}
	if p.foreign[key] == nil && len(p.foreign) >= maxForeignGroups {
		of, why = run.Identity{}, lack{text: "they lack further projects or workflow versions"}
		key = foreignKey{why: why.text}
	}
	g := p.foreign[key]
	if g == nil {
		g = &run.ForeignRuns{Project: of.Project, Workflow: of.Workflow, Version: of.Version, NoProject: why.project,
			Why: why.text}
		p.foreign[key] = g
	}
	g.Count++
	if x.Open {
		g.Open++
	}
	g.RunIDs = append(g.RunIDs, x.RunID)
	slices.Sort(g.RunIDs)
	g.RunIDs = g.RunIDs[:min(len(g.RunIDs), run.ForeignSamples)]
	if g.Since.IsZero() || x.StartedAt.Before(g.Since) {
		g.Since = x.StartedAt
	}
}

// reportForeign adds the foreign runs to the report, and stores those that are open. An incomplete list, or one of
// another Temporal than that of the runs, leaves what is stored.
func (p *pass) reportForeign(ctx context.Context) error {
	open := []run.ForeignRuns{}
	for _, g := range p.foreign {
		p.report.Foreign = append(p.report.Foreign, *g)
		if g.Open > 0 {
			open = append(open, *g)
		}
	}
	slices.SortFunc(p.report.Foreign, byProject)
	slices.SortFunc(open, byProject)
	if p.dry || p.partial || p.view.Placement() == run.PlacementElsewhere {
		return nil
	}
	return p.r.store.RecordForeign(ctx, open)
}

func byProject(a, b run.ForeignRuns) int {
	return cmp.Or(strings.Compare(a.Project, b.Project), strings.Compare(a.Workflow, b.Workflow),
		strings.Compare(a.Version, b.Version), strings.Compare(a.Why, b.Why))
}
