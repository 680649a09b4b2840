// Package vault keeps the sensitive values of runs out of what is shown, and gives them back to whom they belong.
//
//	v := vault.New(keys, store.Originals(), documents)
//	rows := v.Rows(store)        // for everything that writes runs: what it writes has marks, and sealed originals beside them
//	engine := v.Engine(engine)   // for everything that starts them: what is started has the original input
//	events := v.Events(events)   // the same for events: what is kept has marks, what is delivered has none
//	input, err := v.Input(ctx, r)
//
// Rows are the one form that every reader gets: lists, exports, events and logs cannot show more than is in them. Who may see more
// asks [Viewer]. What has stood at a sensitive place of a run (its taint) is looked for in everything that is written about it from
// then on; the taint is kept sealed beside the originals, so that any process that takes the run over knows it.
package vault

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"sync"

	"github.com/signalbox-dev/signalbox/internal/fault"
	"github.com/signalbox-dev/signalbox/internal/redact"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/seal"
)

const (
	// maxKnown is how many runs are remembered, and maxPolicies how many documents. Beyond it the memory starts afresh: both can be
	// found out again.
	maxKnown    = 20_000
	maxPolicies = 1_000
)

// Vault redacts, seals and opens.
type Vault struct {
	keys      *seal.Ring
	sealed    run.SealedStore
	documents run.Documents

	mu       sync.Mutex
	policies map[string]*redact.Policy
	known    map[string]*secrecy
	opened   map[string]json.RawMessage // what listeners expect, by what is kept
}

// secrecy is what decides how the values of a run are shown.
type secrecy struct {
	mu     sync.Mutex
	policy *redact.Policy
	taint  redact.Taint
	// hash is the run's own document; origin is what else its policy is of.
	hash   string
	origin origin
	// execution is the one that last wrote: when it is another, the run may have been in another process meanwhile.
	execution string
	// unsaved is what of the taint the store does not have yet.
	unsaved []string
}

var _ run.Originals = (*Vault)(nil)

// New returns a vault over a store of originals.
func New(keys *seal.Ring, sealed run.SealedStore, documents run.Documents) *Vault {
	return &Vault{keys: keys, sealed: sealed, documents: documents, policies: map[string]*redact.Policy{}, known: map[string]*secrecy{},
		opened: map[string]json.RawMessage{}}
}

// policy returns that of a document. Of a document that is not there, everything is sensitive; of an imported run, which never had one
// here, what usually is.
func (v *Vault) policy(ctx context.Context, hash string) (*redact.Policy, error) {
	if hash == "" {
		return &redact.Policy{}, nil
	}
	v.mu.Lock()
	p := v.policies[hash]
	v.mu.Unlock()
	if p != nil {
		return p, nil
	}
	doc, err := v.documents.Document(ctx, hash)
	if f, ok := fault.From(err); ok && f.Class == fault.NotFound {
		return redact.Everything(), nil
	}
	if err != nil {
		return nil, err
	}
	p = redact.For(doc)
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.policies) >= maxPolicies {
		v.policies = map[string]*redact.Policy{}
	}
	v.policies[hash] = p
	return p, nil
}

// remember returns what is known of a run already, if anything is: what was found since must not get lost.
func (v *Vault) remember(id string, s *secrecy) *secrecy {
	v.mu.Lock()
	defer v.mu.Unlock()
	if first := v.known[id]; first != nil {
		return first
	}
	if len(v.known) >= maxKnown {
		v.known = map[string]*secrecy{}
	}
	v.known[id] = s
	return s
}

func (v *Vault) forget(id string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.known, id)
}

// secrecies returns those of the runs; of those that the store does not have there is none.
func (v *Vault) secrecies(ctx context.Context, ids []string) (map[string]*secrecy, error) {
	found := make(map[string]*secrecy, len(ids))
	var missing []string
	v.mu.Lock()
	for _, id := range ids {
		if s := v.known[id]; s != nil {
			found[id] = s
		} else {
			missing = append(missing, id)
		}
	}
	v.mu.Unlock()
	if len(missing) == 0 {
		return found, nil
	}
	stored, err := v.sealed.Secrecies(ctx, missing)
	if err != nil {
		return nil, err
	}
	for _, one := range stored {
		s := &secrecy{hash: one.DocumentHash}
		if s.policy, err = v.policy(ctx, one.DocumentHash); err != nil {
			return nil, err
		}
		if err := v.learn(ctx, s, one); err != nil {
			return nil, err
		}
		found[one.RunID] = v.remember(one.RunID, s)
	}
	return found, nil
}

// about is what an original is authenticated with.
func about(id, what string, number int64) []string {
	return []string{"run", id, what, fmt.Sprint(number)}
}

func (v *Vault) seal(id, what string, number int64, plain []byte) (*run.Original, error) {
	sealed, err := v.keys.Seal(plain, about(id, what, number)...)
	if err != nil {
		return nil, fmt.Errorf("sealing the %s of run %s: %w", what, id, err)
	}
	return &run.Original{What: what, Number: number, KeyID: v.keys.Active(), Sealed: sealed}, nil
}

func (v *Vault) open(id string, o run.Original) ([]byte, error) {
	plain, err := v.keys.Open(o.Sealed, about(id, o.What, o.Number)...)
	if err != nil {
		return nil, fault.New(fault.Refused, fault.OriginalSealed, "the %s of run %s cannot be opened: %v", o.What, id, err).WithCause(err)
	}
	return plain, nil
}

// sealTaint seals what the store does not have yet; nil where it has all.
func (v *Vault) sealTaint(id string, s *secrecy) (*run.Original, error) {
	if len(s.unsaved) == 0 {
		return nil, nil //nolint:nilnil // nothing to keep is an answer here
	}
	return v.sealBeside(id, s.unsaved)
}

// sealBeside seals taint or an [origin].
func (v *Vault) sealBeside(id string, what any) (*run.Original, error) {
	plain, err := json.Marshal(what)
	if err != nil {
		return nil, fmt.Errorf("sealing what is sensitive in run %s: %w", id, err)
	}
	// Two processes may find something at a time; neither replaces what the other has found.
	var random [8]byte
	_, _ = rand.Read(random[:]) // never fails, says the package
	return v.seal(id, run.OriginalTaint, int64(binary.BigEndian.Uint64(random[:])&math.MaxInt64), plain)
}

// sealedOne opens the only original of a kind; nil where there is none.
func (v *Vault) sealedOne(ctx context.Context, id, what string) ([]byte, error) {
	list, err := v.sealed.SealedOf(ctx, id, what, -1, 0)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	return v.open(id, list[0])
}

// Input implements [run.Originals].
func (v *Vault) Input(ctx context.Context, r run.Run) (json.RawMessage, error) {
	if !r.Redacted {
		return r.Input, nil
	}
	plain, err := v.sealedOne(ctx, r.ID, run.OriginalInput)
	if err != nil {
		return nil, err
	}
	if plain == nil {
		return r.Input, nil
	}
	return plain, nil
}

// sealedEnd is what a [run.OriginalEnd] holds.
type sealedEnd struct {
	Output json.RawMessage `json:"output,omitempty"`
	Error  *run.Problem    `json:"error,omitempty"`
}

// sealedStep is what a [run.OriginalStep] holds.
type sealedStep struct {
	Input    json.RawMessage `json:"input,omitempty"`
	Output   json.RawMessage `json:"output,omitempty"`
	Error    *run.Problem    `json:"error,omitempty"`
	Attempts []run.Attempt   `json:"attempts,omitempty"`
}

// Open gives a run back as it was before marks were put in.
func (v *Vault) Open(ctx context.Context, r run.Run) (run.Run, error) {
	if !r.Redacted {
		return r, nil
	}
	var err error
	if r.Input, err = v.Input(ctx, r); err != nil {
		return run.Run{}, err
	}
	plain, err := v.sealedOne(ctx, r.ID, run.OriginalEnd)
	if err != nil {
		return run.Run{}, err
	}
	if plain != nil {
		var end sealedEnd
		if err := json.Unmarshal(plain, &end); err != nil {
			return run.Run{}, fmt.Errorf("reading the original output of run %s: %w", r.ID, err)
		}
		r.Output, r.Error = end.Output, end.Error
	}
	r.Redacted = false
	return r, nil
}

// OpenSteps gives steps of a run, in order of their numbers, back as they were.
func (v *Vault) OpenSteps(ctx context.Context, id string, steps []run.Step) ([]run.Step, error) {
	if len(steps) == 0 {
		return steps, nil
	}
	list, err := v.sealed.SealedOf(ctx, id, run.OriginalStep, steps[0].Number-1, steps[len(steps)-1].Number)
	if err != nil {
		return nil, err
	}
	originals := make(map[int64]run.Original, len(list))
	for _, o := range list {
		originals[o.Number] = o
	}
	for i := range steps {
		o, hidden := originals[steps[i].Number]
		if !hidden {
			continue
		}
		plain, err := v.open(id, o)
		if err != nil {
			return nil, err
		}
		var original sealedStep
		if err := json.Unmarshal(plain, &original); err != nil {
			return nil, fmt.Errorf("reading the original of step %d of run %s: %w", o.Number, id, err)
		}
		s := &steps[i]
		s.Input, s.Output, s.Error, s.Attempts = original.Input, original.Output, original.Error, original.Attempts
	}
	return steps, nil
}

// Text puts marks into a text about a run: what is known to be sensitive in it.
func (v *Vault) Text(ctx context.Context, id, text string) (string, error) {
	if text == "" {
		return "", nil
	}
	s, err := v.reread(ctx, id)
	if err != nil {
		return "", err
	}
	return s.says(text), nil
}
