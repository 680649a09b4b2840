package sealed

import (
	"context"
	"slices"
	"time"

	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/run/diagnose"
)

// Verdicts is a store of verdicts that writes nothing sensitive: messages of Temporal and of workers about a run may
// quote its values.
type Verdicts struct {
	VerdictStore

	sealer *Sealer
}

var _ diagnose.Store = (*Verdicts)(nil)

// Verdicts returns a store that writes to the given one with marks.
func (sl *Sealer) Verdicts(below VerdictStore) *Verdicts {
	return &Verdicts{VerdictStore: below, sealer: sl}
}

// ChangeVerdicts implements [diagnose.Store].
func (s *Verdicts) ChangeVerdicts(ctx context.Context, project string, at time.Time,
	changes []diagnose.Change) (diagnose.Changed, error) {
	ids := make([]string, len(changes))
	for i, c := range changes {
		ids[i] = c.RunID
	}
	known, err := s.sealer.rereadAll(ctx, ids)
	if err != nil {
		return diagnose.Changed{}, err
	}
	hidden := make([]Sealed[diagnose.Change], len(changes))
	for i, c := range changes {
		hidden[i] = marked(known[c.RunID].change(c))
	}
	return s.VerdictStore.ChangeVerdicts(ctx, project, at, hidden)
}

// change replaces secrets in a change. Its events have no sealed originals: the values that they quote are never shown.
func (s *runSecrets) change(c diagnose.Change) diagnose.Change {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.To != nil {
		to := *c.To
		to.Detail, to.Advice = s.text(to.Detail), s.text(to.Advice)
		c.To = &to
	}
	c.Events = slices.Clone(c.Events)
	for i := range c.Events {
		s.platformEvent(&c.Events[i])
	}
	return c
}

// platformEvent replaces secrets in an event of the platform about the run.
func (s *runSecrets) platformEvent(e *event.Event) {
	e.Subject, _ = s.secrets.Text(e.Subject)
	e.Extensions, _ = s.value(emitted(), e.Extensions)
	e.Data, _ = s.value(emitted(), e.Data)
}

// NoteFailures implements [diagnose.Store].
func (s *Verdicts) NoteFailures(ctx context.Context, failures []diagnose.TaskFailure) error {
	ids := make([]string, len(failures))
	for i, f := range failures {
		ids[i] = f.RunID
	}
	known, err := s.sealer.rereadAll(ctx, ids)
	if err != nil {
		return err
	}
	hidden := make([]Sealed[diagnose.TaskFailure], len(failures))
	for i, f := range failures {
		f.Text = known[f.RunID].redact(f.Text)
		hidden[i] = marked(f)
	}
	return s.VerdictStore.NoteFailures(ctx, hidden)
}
