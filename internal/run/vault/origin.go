package vault

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/signalbox-dev/signalbox/internal/fault"
	"github.com/signalbox-dev/signalbox/internal/redact"
	"github.com/signalbox-dev/signalbox/internal/run"
)

// origin is what the policy of a replay is of, beside its own document: what the run hides that it replays. It is kept as a taint.
type origin struct {
	// Documents are the hashes of those whose policies apply too; All hides everything.
	Documents []string `json:"documents,omitempty"`
	All       bool     `json:"all,omitempty"`
}

// inherit makes a replay hide what the run hides that it replays.
func (v *Vault) inherit(ctx context.Context, s *secrecy, replayed string) error {
	found, err := v.secrecies(ctx, []string{replayed})
	if err != nil {
		return err
	}
	first := found[replayed]
	if first == nil {
		return fault.New(fault.NotFound, fault.RunNotFound, "run %q, which is to be replayed, is gone", replayed)
	}
	own, err := v.policy(ctx, first.hash)
	if err != nil {
		return err
	}
	first.mu.Lock()
	also := origin{Documents: slices.Clone(first.origin.Documents), All: first.policy.All()}
	texts := first.taint.Texts()
	first.mu.Unlock()
	if own.Any() {
		also.Documents = append(also.Documents, first.hash)
	}
	s.unsaved = append(s.unsaved, s.taint.Add(texts...)...)
	return v.follow(ctx, s, also)
}

// follow makes a policy hide what the origin of a run hides.
func (v *Vault) follow(ctx context.Context, s *secrecy, also origin) error {
	if also.All {
		s.policy, s.origin.All = redact.Everything(), true
	}
	for _, hash := range also.Documents {
		if hash == s.hash || slices.Contains(s.origin.Documents, hash) {
			continue
		}
		p, err := v.policy(ctx, hash)
		if err != nil {
			return err
		}
		s.policy = s.policy.With(p)
		s.origin.Documents = append(s.origin.Documents, hash)
	}
	return nil
}

// inherited is what is sensitive in a run beside what its document says.
func (v *Vault) inherited(ctx context.Context, id string) (redact.Inherited, error) {
	found, err := v.secrecies(ctx, []string{id})
	if err != nil || found[id] == nil {
		return redact.Inherited{}, err
	}
	s := found[id]
	s.mu.Lock()
	defer s.mu.Unlock()
	return redact.Inherited{Texts: s.taint.Texts(), Documents: slices.Clone(s.origin.Documents), All: s.policy.All()}, nil
}

// Sensitive returns the texts that are to be hidden in values of a run, by what the store knows of it now.
func (v *Vault) Sensitive(ctx context.Context, id string, values ...json.RawMessage) ([]string, error) {
	s, err := v.reread(ctx, id)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.taint.In(values...), nil
}

// reread returns the secrecy of a run with what other processes have found since; an empty one for a run that is not there.
func (v *Vault) reread(ctx context.Context, id string) (*secrecy, error) {
	found, err := v.rereadAll(ctx, []string{id})
	return found[id], err
}

// rereadAll is reread for several runs; the empty ID is that of none.
func (v *Vault) rereadAll(ctx context.Context, ids []string) (map[string]*secrecy, error) {
	found, err := v.secrecies(ctx, ids)
	if err == nil && len(found) > 0 {
		err = v.relearn(ctx, found, slices.Collect(maps.Keys(found)))
	}
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		if found[id] == nil {
			found[id] = &secrecy{policy: &redact.Policy{}}
		}
	}
	return found, nil
}

// relearn reads the taint of runs again.
func (v *Vault) relearn(ctx context.Context, known map[string]*secrecy, ids []string) error {
	stored, err := v.sealed.Secrecies(ctx, ids)
	if err != nil {
		return err
	}
	for _, one := range stored {
		s := known[one.RunID]
		s.mu.Lock()
		err := v.learn(ctx, s, one)
		s.mu.Unlock()
		if err != nil {
			return err
		}
	}
	return nil
}

// learn adds what the store has of a run's taint.
func (v *Vault) learn(ctx context.Context, s *secrecy, stored run.Secrecy) error {
	for _, o := range stored.Taint {
		var texts []string
		var also origin
		plain, err := v.open(stored.RunID, o)
		switch {
		case err == nil && json.Unmarshal(plain, &texts) == nil:
			s.taint.Add(texts...)
		case err == nil && json.Unmarshal(plain, &also) == nil:
			if err := v.follow(ctx, s, also); err != nil {
				return err
			}
		default:
			// Its key is gone: what is to be hidden cannot be known.
			s.policy = redact.Everything()
		}
	}
	return nil
}

// refresh reads the taint of runs again whose updates come from another execution than the last.
func (v *Vault) refresh(ctx context.Context, known map[string]*secrecy, updates []run.Update) error {
	var stale []string
	for _, u := range updates {
		if s := known[u.RunID]; s != nil && u.ExecutionID != "" {
			s.mu.Lock()
			if s.execution != u.ExecutionID {
				stale = append(stale, u.RunID)
			}
			s.mu.Unlock()
		}
	}
	if len(stale) == 0 {
		return nil
	}
	return v.relearn(ctx, known, stale)
}
