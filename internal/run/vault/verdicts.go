package vault

import (
	"context"
	"slices"
	"time"

	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/run/stuck"
)

// Verdicts is a store of verdicts into which nothing sensitive is written: what Temporal and workers say of a run may quote its values.
type Verdicts struct {
	VerdictStore

	vault *Vault
}

var _ stuck.Store = (*Verdicts)(nil)

// Verdicts returns the store with marks in what is written through it.
func (v *Vault) Verdicts(below VerdictStore) *Verdicts {
	return &Verdicts{VerdictStore: below, vault: v}
}

// ChangeVerdicts implements [stuck.Store].
func (s *Verdicts) ChangeVerdicts(ctx context.Context, project string, at time.Time, changes []stuck.Change) (stuck.Changed, error) {
	ids := make([]string, len(changes))
	for i, c := range changes {
		ids[i] = c.RunID
	}
	known, err := s.vault.rereadAll(ctx, ids)
	if err != nil {
		return stuck.Changed{}, err
	}
	hidden := make([]Sealed[stuck.Change], len(changes))
	for i, c := range changes {
		hidden[i] = marked(known[c.RunID].change(c))
	}
	return s.VerdictStore.ChangeVerdicts(ctx, project, at, hidden)
}

// change puts marks into a change. Its events have no sealed originals: what they quote is never shown.
func (s *secrecy) change(c stuck.Change) stuck.Change {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.To != nil {
		to := *c.To
		to.Detail, to.Advice = s.text(to.Detail), s.text(to.Advice)
		c.To = &to
	}
	c.Events = slices.Clone(c.Events)
	for i := range c.Events {
		s.words(&c.Events[i])
	}
	return c
}

// words puts marks into an event of the platform about the run.
func (s *secrecy) words(e *event.Event) {
	e.Subject, _ = s.taint.Text(e.Subject)
	e.Extensions, _ = s.value(emitted, e.Extensions)
	e.Data, _ = s.value(emitted, e.Data)
}

// NoteFailures implements [stuck.Store].
func (s *Verdicts) NoteFailures(ctx context.Context, failures []stuck.TaskFailure) error {
	ids := make([]string, len(failures))
	for i, f := range failures {
		ids[i] = f.RunID
	}
	known, err := s.vault.rereadAll(ctx, ids)
	if err != nil {
		return err
	}
	hidden := make([]Sealed[stuck.TaskFailure], len(failures))
	for i, f := range failures {
		f.Text = known[f.RunID].says(f.Text)
		hidden[i] = marked(f)
	}
	return s.VerdictStore.NoteFailures(ctx, hidden)
}
