package sealed

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/redact"
	"github.com/signalbox-dev/signalbox/internal/run"
)

// origin is the part of a replay's policy that it inherits from the replayed run. It is stored as an original of the
// kind [run.OriginalSecrets].
type origin struct {
	// Documents are the hashes of further documents with policies that apply. All hides everything.
	Documents []string `json:"documents,omitempty"`
	All       bool     `json:"all,omitempty"`
}

// inherit makes a replay hide what the replayed run hides.
func (sl *Sealer) inherit(ctx context.Context, s *runSecrets, replayed string) error {
	found, err := sl.runSecretsOf(ctx, []string{replayed})
	if err != nil {
		return err
	}
	first := found[replayed]
	if first == nil {
		return apperror.New(apperror.NotFound, apperror.RunNotFound, "run %q, which is to be replayed, no longer exists",
			replayed)
	}
	own, err := sl.policy(ctx, first.hash)
	if err != nil {
		return err
	}
	first.mu.Lock()
	also := origin{Documents: slices.Clone(first.origin.Documents), All: first.policy.All()}
	texts := first.secrets.Texts()
	first.mu.Unlock()
	if own.Any() {
		also.Documents = append(also.Documents, first.hash)
	}
	s.unsaved = append(s.unsaved, s.secrets.Add(texts...)...)
	return sl.addOrigin(ctx, s, also)
}

// addOrigin adds an origin to the policy of a run.
func (sl *Sealer) addOrigin(ctx context.Context, s *runSecrets, also origin) error {
	if also.All {
		s.policy, s.origin.All = redact.Everything(), true
	}
	for _, hash := range also.Documents {
		if hash == s.hash || slices.Contains(s.origin.Documents, hash) {
			continue
		}
		p, err := sl.policy(ctx, hash)
		if err != nil {
			return err
		}
		s.policy = s.policy.With(p)
		s.origin.Documents = append(s.origin.Documents, hash)
	}
	return nil
}

// inherited returns what is sensitive in a run in addition to what its document declares.
func (sl *Sealer) inherited(ctx context.Context, id string) (redact.Inherited, error) {
	found, err := sl.runSecretsOf(ctx, []string{id})
	if err != nil || found[id] == nil {
		return redact.Inherited{}, err
	}
	s := found[id]
	s.mu.Lock()
	defer s.mu.Unlock()
	return redact.Inherited{Texts: s.secrets.Texts(), Documents: slices.Clone(s.origin.Documents), All: s.policy.All()},
		nil
}

// Sensitive returns the secrets that occur in values of a run, including those that other processes have stored.
func (sl *Sealer) Sensitive(ctx context.Context, id string, values ...json.RawMessage) ([]string, error) {
	s, err := sl.reread(ctx, id)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.secrets.In(values...), nil
}

// reread returns the secrets of a run, including those that other processes have stored since; none for a run that does
// not exist.
func (sl *Sealer) reread(ctx context.Context, id string) (*runSecrets, error) {
	found, err := sl.rereadAll(ctx, []string{id})
	return found[id], err
}

// rereadAll is reread for several runs. An empty ID stands for no run.
func (sl *Sealer) rereadAll(ctx context.Context, ids []string) (map[string]*runSecrets, error) {
	found, err := sl.runSecretsOf(ctx, ids)
	if err == nil && len(found) > 0 {
		err = sl.reload(ctx, found, slices.Collect(maps.Keys(found)))
	}
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		if found[id] == nil {
			found[id] = &runSecrets{policy: &redact.Policy{}}
		}
	}
	return found, nil
}

// reload reads the stored secrets of runs again.
func (sl *Sealer) reload(ctx context.Context, known map[string]*runSecrets, ids []string) error {
	stored, err := sl.sealed.Secrecies(ctx, ids)
	if err != nil {
		return err
	}
	for _, one := range stored {
		s := known[one.RunID]
		s.mu.Lock()
		err := sl.load(ctx, s, one)
		s.mu.Unlock()
		if err != nil {
			return err
		}
	}
	return nil
}

// load adds the stored secrets of a run.
func (sl *Sealer) load(ctx context.Context, s *runSecrets, stored run.Secrecy) error {
	for _, o := range stored.Secrets {
		var texts []string
		var also origin
		plain, err := sl.open(owner{stored.Project, stored.RunID}, o)
		switch {
		case err == nil && json.Unmarshal(plain, &texts) == nil:
			s.secrets.Add(texts...)
		case err == nil && json.Unmarshal(plain, &also) == nil:
			if err := sl.addOrigin(ctx, s, also); err != nil {
				return err
			}
		default:
			// The key is missing: the secrets are unknown, so everything is hidden.
			s.policy = redact.Everything()
		}
	}
	return nil
}

// refresh reads the stored secrets again of runs with updates from another execution than the previous ones.
func (sl *Sealer) refresh(ctx context.Context, known map[string]*runSecrets, updates []run.Update) error {
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
	return sl.reload(ctx, known, stale)
}
