package run

import (
	"context"
	"slices"

	"github.com/signalbox-dev/signalbox/internal/apperror"
)

// Lineage is what a run descends from: the runs that started it by a task or by an event that they emitted, those that
// started them, and so on up to a start by a person or by the clock.
type Lineage struct {
	// Generation is the number of starts by tasks and events between the run and that of a person or of the clock, which
	// has 0. A run that follows another one by the clock has that of the other.
	Generation int `json:"generation,omitempty"`
	// Workflows are those of the ancestors, each once, the oldest first.
	Workflows []string `json:"workflows,omitempty"`
}

// IsZero reports whether the run descends from no other.
func (l Lineage) IsZero() bool { return l.Generation == 0 && len(l.Workflows) == 0 }

// Descends reports whether a run of the workflow is among the ancestors.
func (l Lineage) Descends(workflow string) bool { return slices.Contains(l.Workflows, workflow) }

// Next is the lineage of a run that this one starts.
func (r Run) Next() Lineage {
	return Lineage{r.Lineage.Generation + 1, nil}.Join(r.Lineage).Join(Lineage{Workflows: []string{r.Workflow}})
}

// Following is the lineage of a run that the clock starts after the end of this one. It has the same generation, so
// that a chain of starts goes on over the clock, and a workflow that only follows its own runs goes on for ever.
func (r Run) Following() Lineage {
	return r.Lineage.Join(Lineage{Workflows: []string{r.Workflow}})
}

// Join returns the lineage of a run that descends from both: it has the greater generation.
func (l Lineage) Join(other Lineage) Lineage {
	joined := Lineage{max(l.Generation, other.Generation), slices.Clone(l.Workflows)}
	for _, name := range other.Workflows {
		if !joined.Descends(name) {
			joined.Workflows = append(joined.Workflows, name)
		}
	}
	return joined
}

// checkGeneration refuses a run that is too many starts away from one by a person or by the clock.
func (s *Service) checkGeneration(ctx context.Context, req StartRequest) error {
	if s.opts.MaxGeneration == nil || req.Lineage.Generation == 0 {
		return nil
	}
	limit, err := s.opts.MaxGeneration(ctx, req.Project)
	if err != nil || req.Lineage.Generation <= limit {
		return err
	}
	return apperror.New(apperror.Refused, apperror.GenerationLimit,
		"the run would be %d starts away from one by a person or by the clock, and the limit of project %q is %d: "+
			"workflows start each other without end, or the limit is too low (runs.max_generation, or max_generation of the "+
			"project)", req.Lineage.Generation, req.Project, limit)
}
