package vault

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/redact"
	"github.com/signalbox-dev/signalbox/internal/run"
)

// Rows is a store into which nothing sensitive is written. What holds no values of runs goes straight to the store below.
type Rows struct {
	Store

	vault *Vault
}

var _ run.ReconcileStore = (*Rows)(nil)

// Rows returns the store with marks and sealed originals in what is written through it.
func (v *Vault) Rows(below Store) *Rows { return &Rows{Store: below, vault: v} }

// InsertRun implements [run.Store].
func (s *Rows) InsertRun(ctx context.Context, r run.Run, e audit.Entry) (run.Run, bool, error) {
	hidden, known, err := s.vault.hideRun(ctx, r)
	if err != nil {
		return run.Run{}, false, err
	}
	stored, made, err := s.Store.InsertRun(ctx, marked(hidden), e)
	s.inserted(r.ID, known, made && err == nil)
	return stored, made, err
}

// EnqueueRun implements [run.QueueStore].
func (s *Rows) EnqueueRun(ctx context.Context, r run.Run, limit int, e audit.Entry) (run.Run, bool, error) {
	hidden, known, err := s.vault.hideRun(ctx, r)
	if err != nil {
		return run.Run{}, false, err
	}
	stored, made, err := s.Store.EnqueueRun(ctx, marked(hidden), limit, e)
	s.inserted(r.ID, known, made && err == nil)
	return stored, made, err
}

func (s *Rows) inserted(id string, known *secrecy, made bool) {
	if made && known != nil {
		known.unsaved = nil
		_ = s.vault.remember(id, known)
	}
}

// ApplyUpdates implements [run.Store].
func (s *Rows) ApplyUpdates(ctx context.Context, updates []run.Update) ([]run.Transition, error) {
	hidden, written, err := s.vault.hide(ctx, updates)
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
func (s *Rows) PostponeRepair(ctx context.Context, r run.Repair, after time.Duration, problem string) error {
	shown, err := s.vault.Text(ctx, r.RunID, problem)
	if err != nil {
		// Without what is sensitive in the run the text cannot be shown; the log has it.
		shown = "see the log of the worker"
	}
	return s.Store.PostponeRepair(ctx, r, after, marked(shown))
}

// CorrectRun implements [run.ReconcileStore].
func (s *Rows) CorrectRun(ctx context.Context, u run.Update, e *audit.Entry) (bool, error) {
	hidden, written, err := s.vault.hide(ctx, []run.Update{u})
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
func (s *Rows) FollowExecution(ctx context.Context, u run.Update, from string, left []string, e audit.Entry) (bool, error) {
	hidden, written, err := s.vault.hide(ctx, []run.Update{u})
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
	_, entry, err := s.vault.hideEnd(ctx, id, nil, e)
	if err != nil {
		return false, err
	}
	return s.Store.RemoveUnstarted(ctx, id, marked(entry))
}

// FinishMissing implements [run.Store].
func (s *Rows) FinishMissing(ctx context.Context, id string, status run.Status, p *run.Problem, at time.Time, e audit.Entry) (bool, error) {
	hidden, entry, err := s.vault.hideEnd(ctx, id, p, e)
	if err != nil {
		return false, err
	}
	return s.Store.FinishMissing(ctx, id, status, marked(hidden), at, marked(entry))
}

// FinishQueued implements [run.QueueStore].
func (s *Rows) FinishQueued(ctx context.Context, r run.Run, e audit.Entry) (bool, error) {
	var err error
	if r.Error, e, err = s.vault.hideEnd(ctx, r.ID, r.Error, e); err != nil {
		return false, err
	}
	return s.Store.FinishQueued(ctx, marked(r), marked(e))
}

// hideEnd puts marks into the problem with which the platform ends a run, and into what the audit log says of it. Both may quote what
// Temporal has answered.
func (v *Vault) hideEnd(ctx context.Context, id string, p *run.Problem, e audit.Entry) (*run.Problem, audit.Entry, error) {
	if !v.keys.Seals() || p == nil && e.Reason == "" {
		return p, e, nil
	}
	s, err := v.reread(ctx, id)
	if err != nil {
		return nil, audit.Entry{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	hidden, _ := s.problem(p)
	// A reason may be a person's: it is not hidden where all of the run is.
	e.Reason, _ = s.taint.Text(e.Reason)
	return hidden, e, nil
}

// hideRun puts marks into a run that is to be inserted. The secrecy is nil where nothing is to be sealed.
func (v *Vault) hideRun(ctx context.Context, r run.Run) (run.Run, *secrecy, error) {
	if !v.keys.Seals() {
		return r, nil, nil
	}
	policy, err := v.policy(ctx, r.DocumentHash)
	if err != nil {
		return r, nil, err
	}
	known := &secrecy{policy: policy, hash: r.DocumentHash}
	var given redact.Taint
	given.Add(r.Secrecy.Texts...)
	known.unsaved = known.taint.Add(given.In(r.Input)...)
	if r.ReplayOf != "" {
		if err := v.inherit(ctx, known, r.ReplayOf); err != nil {
			return r, nil, err
		}
	}
	shown, found := known.policy.Value(redact.Place{}, r.Input, &known.taint)
	if added := known.taint.Add(found...); added != nil {
		known.unsaved = append(known.unsaved, added...)
		shown, _ = known.policy.Value(redact.Place{}, r.Input, &known.taint)
	}
	var originals [3]*run.Original
	if changed(shown, r.Input) {
		if originals[0], err = v.seal(r.ID, run.OriginalInput, 0, r.Input); err != nil {
			return r, nil, err
		}
		r.Input = shown
	}
	if originals[1], err = v.sealTaint(r.ID, known); err != nil {
		return r, nil, err
	}
	if known.origin.All || len(known.origin.Documents) > 0 {
		if originals[2], err = v.sealBeside(r.ID, known.origin); err != nil {
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

// hide puts marks into updates. written is to be called once they are.
func (v *Vault) hide(ctx context.Context, updates []run.Update) (hidden []run.Update, written func(), err error) {
	if !v.keys.Seals() {
		return updates, func() {}, nil
	}
	ids := make([]string, len(updates))
	for i := range updates {
		ids[i] = updates[i].RunID
	}
	known, err := v.secrecies(ctx, ids)
	if err != nil {
		return nil, nil, err
	}
	if err := v.refresh(ctx, known, updates); err != nil {
		return nil, nil, err
	}
	hidden = make([]run.Update, len(updates))
	var saved []func()
	for i, u := range updates {
		hidden[i] = u
		s := known[u.RunID]
		if s == nil {
			// The store passes over what is about no run of its own; should it have come by now, nothing is known of it.
			s = &secrecy{policy: redact.Everything()}
		}
		s.mu.Lock()
		hidden[i], err = v.hideUpdate(u, s)
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
				v.forget(u.RunID)
			}
		})
	}
	return hidden, func() {
		for _, done := range saved {
			done()
		}
	}, nil
}

// hideUpdate leaves the update as it is: whoever wrote it may write it again.
func (v *Vault) hideUpdate(u run.Update, s *secrecy) (run.Update, error) {
	s.unsaved = append(s.unsaved, s.taint.Add(u.Sensitive...)...)
	if !s.lookAll(u) && !s.taint.Any() && !s.policy.All() {
		return u, nil
	}
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
		if shown.Original, err = v.seal(u.RunID, run.OriginalStep, step.Number, plain); err != nil {
			return u, err
		}
		if &steps[0] == &u.Steps[0] {
			steps = slices.Clone(steps)
		}
		steps[i] = shown
	}
	u.Steps = steps
	if u.State != nil {
		state := *u.State
		var output, problem bool
		state.Output, output = s.value(redact.Place{Output: true}, state.Output)
		state.Error, problem = s.problem(state.Error)
		if output || problem {
			plain, err := json.Marshal(sealedEnd{u.State.Output, u.State.Error})
			if err != nil {
				return u, err //nolint:wrapcheck // a state is always JSON
			}
			if state.Original, err = v.seal(u.RunID, run.OriginalEnd, 0, plain); err != nil {
				return u, err
			}
			u.State = &state
		}
	}
	var err error
	u.Taint, err = v.sealTaint(u.RunID, s)
	return u, err
}

// lookAll notes what stands at sensitive places of an update: what is found late in it is looked for in all of it. It tells whether
// there is anything to hide.
func (s *secrecy) lookAll(u run.Update) bool {
	hide := false
	look := func(at redact.Place, value json.RawMessage) {
		shown, found := s.policy.Value(at, value, nil)
		hide = hide || changed(shown, value)
		s.unsaved = append(s.unsaved, s.taint.Add(found...)...)
	}
	for _, step := range u.Steps {
		look(redact.Place{Pointer: step.Pointer, Task: step.Task}, step.Input)
		look(redact.Place{Pointer: step.Pointer, Task: step.Task, Output: true}, step.Output)
		hide = hide || step.InputShown != nil || step.OutputShown != nil
	}
	if u.State != nil {
		look(redact.Place{Output: true}, u.State.Output)
	}
	return hide
}

// changed tells whether there are marks in what is shown: where there are none, it is the value itself.
func changed(shown, value json.RawMessage) bool {
	return len(shown) != len(value) || len(value) > 0 && &shown[0] != &value[0]
}

func (s *secrecy) value(at redact.Place, value json.RawMessage) (json.RawMessage, bool) {
	shown, _ := s.policy.Value(at, value, &s.taint)
	return shown, changed(shown, value)
}

func (s *secrecy) step(step run.Step) (run.Step, bool) {
	var changed, hidden bool
	if step.InputShown != nil {
		step.Input, hidden = step.InputShown, true
	}
	if step.OutputShown != nil {
		step.Output, hidden = step.OutputShown, true
	}
	step.InputShown, step.OutputShown = nil, nil
	step.Input, changed = s.value(redact.Place{Pointer: step.Pointer, Task: step.Task}, step.Input)
	hidden = hidden || changed
	step.Output, changed = s.value(redact.Place{Pointer: step.Pointer, Task: step.Task, Output: true}, step.Output)
	hidden = hidden || changed
	step.Error, changed = s.problem(step.Error)
	hidden = hidden || changed
	attempts := slices.Clone(step.Attempts)
	for i := range attempts {
		if attempts[i].Error, changed = s.problem(attempts[i].Error); changed {
			step.Attempts, hidden = attempts, true
		}
	}
	return step, hidden
}

// problem puts marks into the texts of a problem.
func (s *secrecy) problem(p *run.Problem) (*run.Problem, bool) {
	if p == nil {
		return nil, false
	}
	shown := *p
	shown.Type, _ = s.taint.Text(shown.Type) // names a kind of problem, whatever the values
	for _, text := range []*string{&shown.Title, &shown.Detail, &shown.Instance} {
		*text = s.text(*text)
	}
	return &shown, shown != *p
}

// says is text for one that does not hold the lock.
func (s *secrecy) says(text string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text(text)
}

// text puts marks into a text about the run.
func (s *secrecy) text(text string) string {
	if s.policy.All() && text != "" {
		return redact.Mark
	}
	clean, _ := s.taint.Text(text)
	return clean
}
