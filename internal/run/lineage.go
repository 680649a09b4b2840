package run

import (
	"errors"
	"slices"
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

// ErrAncestorCanceled is a store's error for a child that must not be started: its parent, or a run that awaits the
// parent, is being canceled or was canceled or terminated, or a run that awaits the parent has ended.
var ErrAncestorCanceled = errors.New("an ancestor was canceled")
