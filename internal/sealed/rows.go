package sealed

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/redact"
	"github.com/signalbox-dev/signalbox/internal/run"
)

// Rows is a store of runs that writes nothing sensitive. Methods without values of runs are those of the wrapped store.
type Rows struct {
	Store

	sealer *Sealer
}

var _ run.ReconcileStore = (*Rows)(nil)

// Rows returns a store that writes to the given one with marks and sealed originals.
func (sl *Sealer) Rows(below Store) *Rows { return &Rows{Store: below, sealer: sl} }

// InsertRun implements [run.Store].
func (s *Rows) InsertRun(ctx context.Context, r run.Run, e audit.Entry) (run.Run, bool, error) {
	hidden, known, err := s.sealer.hideRun(ctx, r)
	if err != nil {
		return run.Run{}, false, err
	}
	stored, made, err := s.Store.InsertRun(ctx, marked(hidden), e)
	s.inserted(r.ID, known, made && err == nil)
	return stored, made, err
}

// EnqueueRun implements [run.QueueStore].
func (s *Rows) EnqueueRun(ctx context.Context, r run.Run, limit int, e audit.Entry) (run.Run, bool, error) {
	hidden, known, err := s.sealer.hideRun(ctx, r)
	if err != nil {
		return run.Run{}, false, err
	}
	stored, made, err := s.Store.EnqueueRun(ctx, marked(hidden), limit, e)
	s.inserted(r.ID, known, made && err == nil)
	return stored, made, err
}

func (s *Rows) inserted(id string, known *runSecrets, made bool) {
	if made && known != nil {
		known.unsaved = nil
		_ = s.sealer.remember(id, known)
	}
}

// ApplyUpdates implements [run.Store].
func (s *Rows) ApplyUpdates(ctx context.Context, updates []run.Update) ([]run.Transition, error) {
	hidden, written, err := s.sealer.hide(ctx, updates)
	if err != nil {
		return nil, err
	}
	transitions, err := s.Store.ApplyUpdates(ctx, allMarked(hidden))
	if err == nil {
		written()
	}
	return transitions, err
}

// PostponeRepair implements [run.RepairStore].
func (s *Rows) PostponeRepair(ctx context.Context, r run.Repair, after time.Duration, failure string) error {
	shown, err := s.sealer.Text(ctx, r.RunID, failure)
	if err != nil {
		// Without the secrets of the run the text cannot be redacted; the log has it.
		shown = "see the log of the worker"
	}
	return s.Store.PostponeRepair(ctx, r, after, marked(shown))
}

// CorrectRun implements [run.ReconcileStore].
func (s *Rows) CorrectRun(ctx context.Context, u run.Update, e *audit.Entry) (bool, error) {
	hidden, written, err := s.sealer.hide(ctx, []run.Update{u})
	if err != nil {
		return false, err
	}
	changed, err := s.Store.CorrectRun(ctx, marked(hidden[0]), e)
	if err == nil {
		written()
	}
	return changed, err
}

// FollowExecution implements [run.ReconcileStore].
func (s *Rows) FollowExecution(ctx context.Context, u run.Update, from string, left []string,
	e audit.Entry) (bool, error) {
	hidden, written, err := s.sealer.hide(ctx, []run.Update{u})
	if err != nil {
		return false, err
	}
	followed, err := s.Store.FollowExecution(ctx, marked(hidden[0]), from, left, e)
	if err == nil && followed {
		written()
	}
	return followed, err
}

// RemoveUnstarted implements [run.Store].
func (s *Rows) RemoveUnstarted(ctx context.Context, id string, e audit.Entry) (bool, error) {
	_, entry, err := s.sealer.hideEnd(ctx, id, nil, e)
	if err != nil {
		return false, err
	}
	return s.Store.RemoveUnstarted(ctx, id, marked(entry))
}

// FinishMissing implements [run.Store].
func (s *Rows) FinishMissing(ctx context.Context, id string, status run.Status, p *run.Error, at time.Time,
	e audit.Entry) (bool, error) {
	hidden, entry, err := s.sealer.hideEnd(ctx, id, p, e)
	if err != nil {
		return false, err
	}
	return s.Store.FinishMissing(ctx, id, status, marked(hidden), at, marked(entry))
}

// FinishQueued implements [run.QueueStore].
func (s *Rows) FinishQueued(ctx context.Context, r run.Run, e audit.Entry) (bool, error) {
	var err error
	if r.Error, e, err = s.sealer.hideEnd(ctx, r.ID, r.Error, e); err != nil {
		return false, err
	}
	return s.Store.FinishQueued(ctx, marked(r), marked(e))
}

// hideEnd replaces secrets in the error with which the platform ends a run, and in the audit entry. Both may quote an
// answer of Temporal.
func (sl *Sealer) hideEnd(ctx context.Context, id string, p *run.Error,
	e audit.Entry) (*run.Error, audit.Entry, error) {
	if !sl.keys.Seals() || p == nil && e.Reason == "" {
		return p, e, nil
	}
	s, err := sl.reread(ctx, id)
	if err != nil {
		return nil, audit.Entry{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	hidden, _ := s.runError(p)
	// A user may have written the reason: it is not hidden as a whole where all of the run is hidden.
	e.Reason, _ = s.secrets.Text(e.Reason)
	return hidden, e, nil
}

// hideRun replaces the sensitive values of a run that is to be inserted. The returned secrets are nil where nothing is
// to be sealed.
func (sl *Sealer) hideRun(ctx context.Context, r run.Run) (run.Run, *runSecrets, error) {
	if !sl.keys.Seals() {
		return r, nil, nil
	}
	shown, known, err := sl.mask(ctx, r)
	if err != nil {
		return r, nil, err
	}
	r.Labels = known.labels(r.Labels)
	owner := owner{r.Project, r.ID}
	var originals [3]*run.Original
	if changed(shown, r.Input) {
		if originals[0], err = sl.seal(owner, run.OriginalInput, 0, r.Input); err != nil {
			return r, nil, err
		}
		r.Input = shown
	}
	if originals[1], err = sl.sealSecrets(owner, known); err != nil {
		return r, nil, err
	}
	if known.origin.All || len(known.origin.Documents) > 0 {
		if originals[2], err = sl.sealBeside(owner, known.origin); err != nil {
			return r, nil, err
		}
	}
	for _, o := range originals {
		if o != nil {
			r.Redacted, r.Originals = true, append(r.Originals, *o)
		}
	}
	return r, known, nil
}

// mask returns the input of a run that is to be inserted with marks, and the run's secrets.
func (sl *Sealer) mask(ctx context.Context, r run.Run) (json.RawMessage, *runSecrets, error) {
	policy, err := sl.policy(ctx, r.DocumentHash)
	if err != nil {
		return nil, nil, err
	}
	known := &runSecrets{project: r.Project, policy: policy, hash: r.DocumentHash}
	var given redact.SecretSet
	given.Add(r.Secrecy.Texts...)
	known.unsaved = known.secrets.Add(given.In(r.Input)...)
	if r.ReplayOf != "" {
		if err := sl.inherit(ctx, known, r.ReplayOf); err != nil {
			return nil, nil, err
		}
	}
	shown, found := known.policy.Value(redact.Location{}, r.Input, &known.secrets)
	if added := known.secrets.Add(found...); added != nil {
		known.unsaved = append(known.unsaved, added...)
		shown, _ = known.policy.Value(redact.Location{}, r.Input, &known.secrets)
	}
	return shown, known, nil
}

// Mask implements [start.Masking].
func (sl *Sealer) Mask(ctx context.Context,
	r run.Run) (shown json.RawMessage, sensitive func(text string) bool, err error) {
	if !sl.keys.Seals() {
		return r.Input, func(string) bool { return false }, nil
	}
	shown, known, err := sl.mask(ctx, r)
	if err != nil {
		return nil, nil, err
	}
	return shown, func(text string) bool {
		_, contains := known.secrets.Text(text)
		return contains
	}, nil
}

// labels replaces secrets in the values of labels. The labels that a replay inherits may contain a secret of its own
// input.
func (s *runSecrets) labels(labels map[string]string) map[string]string {
	shown := maps.Clone(labels)
	for key, value := range labels {
		shown[key], _ = s.secrets.Text(value)
	}
	return shown
}

// hide replaces the sensitive values of updates. The caller must call written once the updates are written.
func (sl *Sealer) hide(ctx context.Context, updates []run.Update) (hidden []run.Update, written func(), err error) {
	if !sl.keys.Seals() {
		return updates, func() {}, nil
	}
	ids := make([]string, len(updates))
	for i := range updates {
		ids[i] = updates[i].RunID
	}
	known, err := sl.runSecretsOf(ctx, ids)
	if err != nil {
		return nil, nil, err
	}
	if err := sl.refresh(ctx, known, updates); err != nil {
		return nil, nil, err
	}
	hidden = make([]run.Update, len(updates))
	var saved []func()
	for i, u := range updates {
		hidden[i] = u
		s := known[u.RunID]
		if s == nil {
			// The store skips updates of runs that it does not have. Should the run exist by now, its policy is unknown.
			s = &runSecrets{policy: redact.Everything()}
		}
		s.mu.Lock()
		hidden[i], err = sl.hideUpdate(u, s)
		count := len(s.unsaved)
		s.execution = cmp.Or(u.ExecutionID, s.execution)
		s.mu.Unlock()
		if err != nil {
			return nil, nil, err
		}
		saved = append(saved, func() {
			s.mu.Lock()
			s.unsaved = s.unsaved[min(count, len(s.unsaved)):]
			s.mu.Unlock()
			if u.State != nil && u.State.Status.Terminal() {
				sl.known.Delete(u.RunID)
			}
		})
	}
	return hidden, func() {
		for _, done := range saved {
			done()
		}
	}, nil
}

// hideUpdate returns a copy of the update without sensitive values. It does not change the original, which the caller
// may write again.
func (sl *Sealer) hideUpdate(u run.Update, s *runSecrets) (run.Update, error) {
	s.unsaved = append(s.unsaved, s.secrets.Add(u.Sensitive...)...)
	if !s.addSecrets(u) && !s.secrets.Any() && !s.policy.All() {
		return u, nil
	}
	owner := owner{s.project, u.RunID}
	steps := u.Steps
	for i, step := range steps {
		shown, changed := s.step(step)
		if !changed {
			continue
		}
		plain, err := json.Marshal(sealedStep{step.Input, step.Output, step.Error, step.Attempts})
		if err != nil {
			return u, err //nolint:wrapcheck // a step is always JSON
		}
		if shown.Original, err = sl.seal(owner, run.OriginalStep, step.Number, plain); err != nil {
			return u, err
		}
		if &steps[0] == &u.Steps[0] {
			steps = slices.Clone(steps)
		}
		steps[i] = shown
	}
	u.Steps, u.Logs = steps, s.logs(u.Logs)
	if u.State != nil {
		state := *u.State
		var output, runError bool
		state.Output, output = s.value(redact.Location{Output: true}, state.Output)
		state.Error, runError = s.runError(state.Error)
		if output || runError {
			plain, err := json.Marshal(sealedEnd{u.State.Output, u.State.Error})
			if err != nil {
				return u, err //nolint:wrapcheck // a state is always JSON
			}
			if state.Original, err = sl.seal(owner, run.OriginalEnd, 0, plain); err != nil {
				return u, err
			}
			u.State = &state
		}
	}
	var err error
	u.Secrets, err = sl.sealSecrets(owner, s)
	return u, err
}

// addSecrets adds the values at sensitive locations of an update, before any part of it is redacted: a secret of a
// later step may occur in an earlier one. It reports whether there is anything to hide.
func (s *runSecrets) addSecrets(u run.Update) bool {
	hide := false
	add := func(at redact.Location, value json.RawMessage) {
		shown, found := s.policy.Value(at, value, nil)
		hide = hide || changed(shown, value)
		s.unsaved = append(s.unsaved, s.secrets.Add(found...)...)
	}
	for _, step := range u.Steps {
		add(redact.Location{Pointer: step.Pointer, Task: step.Task}, step.Input)
		add(redact.Location{Pointer: step.Pointer, Task: step.Task, Output: true}, step.Output)
		hide = hide || step.InputShown != nil || step.OutputShown != nil
	}
	if u.State != nil {
		add(redact.Location{Output: true}, u.State.Output)
	}
	return hide
}

// logs replaces secrets in what programs have printed. No original is kept of it.
func (s *runSecrets) logs(logs []run.AttemptLog) []run.AttemptLog {
	shown := slices.Clone(logs)
	for i := range shown {
		shown[i].Stdout.Text, shown[i].Stderr.Text = s.text(shown[i].Stdout.Text), s.text(shown[i].Stderr.Text)
	}
	return shown
}

// changed reports whether shown has marks: otherwise it is the value itself.
func changed(shown, value json.RawMessage) bool {
	return len(shown) != len(value) || len(value) > 0 && &shown[0] != &value[0]
}

func (s *runSecrets) value(at redact.Location, value json.RawMessage) (json.RawMessage, bool) {
	shown, _ := s.policy.Value(at, value, &s.secrets)
	return shown, changed(shown, value)
}

func (s *runSecrets) step(step run.Step) (run.Step, bool) {
	var changed, hidden bool
	if step.InputShown != nil {
		step.Input, hidden = step.InputShown, true
	}
	if step.OutputShown != nil {
		step.Output, hidden = step.OutputShown, true
	}
	step.InputShown, step.OutputShown = nil, nil
	step.Input, changed = s.value(redact.Location{Pointer: step.Pointer, Task: step.Task}, step.Input)
	hidden = hidden || changed
	step.Output, changed = s.value(redact.Location{Pointer: step.Pointer, Task: step.Task, Output: true}, step.Output)
	hidden = hidden || changed
	step.Error, changed = s.runError(step.Error)
	hidden = hidden || changed
	attempts := slices.Clone(step.Attempts)
	for i := range attempts {
		if attempts[i].Error, changed = s.runError(attempts[i].Error); changed {
			step.Attempts, hidden = attempts, true
		}
		if attempts[i].Method, changed = s.secrets.Text(attempts[i].Method); changed {
			step.Attempts, hidden = attempts, true
		}
		if host := s.text(attempts[i].Host); host != attempts[i].Host {
			attempts[i].Host = host
			step.Attempts, hidden = attempts, true
		}
	}
	return step, hidden
}

// runError replaces secrets in the texts of an error.
func (s *runSecrets) runError(p *run.Error) (*run.Error, bool) {
	if p == nil {
		return nil, false
	}
	shown := *p
	// the kind of an error is not a value and stays visible where all of the run is hidden
	shown.Type, _ = s.secrets.Text(shown.Type)
	for _, text := range []*string{&shown.Title, &shown.Detail, &shown.Instance} {
		*text = s.text(*text)
	}
	return &shown, shown != *p
}

// redact is text for a caller that does not hold the lock.
func (s *runSecrets) redact(text string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text(text)
}

// text replaces secrets in a text about the run.
func (s *runSecrets) text(text string) string {
	if s.policy.All() && text != "" {
		return redact.Mark
	}
	clean, _ := s.secrets.Text(text)
	return clean
}
