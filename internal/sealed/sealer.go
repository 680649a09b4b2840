// Package sealed replaces the sensitive values of runs by marks before they are stored, and stores the originals
// encrypted ("sealed").
//
//	sealer := sealed.New(keys, store.Originals(), documents)
//	rows := sealer.Rows(store)        // for all writers of runs: stored rows have marks, with sealed originals
//	engine := sealer.Engine(engine)   // for all starts of runs: a started run has its original input
//	events := sealer.Events(events)   // the same for events: stored events have marks, delivered ones have none
//	input, err := sealer.Input(ctx, r)
//
// All readers get the stored rows: lists, exports, events and logs cannot show more than these contain. Administrators
// get originals from [Viewer]. Texts found at sensitive locations of a run (its secrets, [redact.SecretSet]) are
// replaced in everything that is written about the run from then on. The secrets are stored sealed with the originals,
// so that every process that continues the run has them.
package sealed

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"sync"

	"github.com/jellydator/ttlcache/v3"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/keyring"
	"github.com/signalbox-dev/signalbox/internal/redact"
	"github.com/signalbox-dev/signalbox/internal/run"
)

const (
	// maxKnown is how many runs are cached, and maxPolicies how many documents. Others are read again.
	maxKnown    = 20_000
	maxPolicies = 1_000
)

// Sealer redacts values, and seals and opens their originals. It is safe for concurrent use.
type Sealer struct {
	keys      *keyring.Ring
	sealed    run.SealedStore
	documents run.Documents
	policies  *ttlcache.Cache[string, *redact.Policy]
	known     *ttlcache.Cache[string, *runSecrets]
	opened    *ttlcache.Cache[string, json.RawMessage] // the values that listeners expect, by the stored text
}

// runSecrets determines how the values of a run are redacted.
type runSecrets struct {
	mu      sync.Mutex
	project string
	policy  *redact.Policy
	secrets redact.SecretSet
	// hash is that of the run's own document; origin is the rest of its policy.
	hash   string
	origin origin
	// execution is the ID of the execution that wrote last: when it changes, the run may have been in another process
	// meanwhile.
	execution string
	// unsaved are the secrets that are not stored yet.
	unsaved []string
}

// New returns a sealer over a store of originals.
func New(keys *keyring.Ring, sealed run.SealedStore, documents run.Documents) *Sealer {
	return &Sealer{
		keys: keys, sealed: sealed, documents: documents,
		policies: ttlcache.New(ttlcache.WithCapacity[string, *redact.Policy](maxPolicies)),
		known:    ttlcache.New(ttlcache.WithCapacity[string, *runSecrets](maxKnown)),
		opened:   ttlcache.New(ttlcache.WithCapacity[string, json.RawMessage](maxKnown)),
	}
}

// policy returns the policy of a document. Where the document does not exist, everything is sensitive. An imported run
// never had a document here (hash is empty): only values under usual names of secrets are sensitive.
func (sl *Sealer) policy(ctx context.Context, hash string) (*redact.Policy, error) {
	if hash == "" {
		return &redact.Policy{}, nil
	}
	if cached := sl.policies.Get(hash); cached != nil {
		return cached.Value(), nil
	}
	doc, err := sl.documents.Document(ctx, hash)
	if f, ok := apperror.From(err); ok && f.Class == apperror.NotFound {
		return redact.Everything(), nil
	}
	if err != nil {
		return nil, err
	}
	return sl.policies.Set(hash, redact.For(doc), ttlcache.NoTTL).Value(), nil
}

// remember caches the secrets of a run. It returns the cached ones where there are some: they may have more secrets.
func (sl *Sealer) remember(id string, s *runSecrets) *runSecrets {
	cached, _ := sl.known.GetOrSet(id, s)
	return cached.Value()
}

// runSecretsOf returns the secrets of runs, by ID. A run that the store does not have is omitted.
func (sl *Sealer) runSecretsOf(ctx context.Context, ids []string) (map[string]*runSecrets, error) {
	found := make(map[string]*runSecrets, len(ids))
	var missing []string
	for _, id := range ids {
		if cached := sl.known.Get(id); cached != nil {
			found[id] = cached.Value()
		} else {
			missing = append(missing, id)
		}
	}
	if len(missing) == 0 {
		return found, nil
	}
	stored, err := sl.sealed.Secrecies(ctx, missing)
	if err != nil {
		return nil, err
	}
	for _, one := range stored {
		s := &runSecrets{project: one.Project, hash: one.DocumentHash}
		if s.policy, err = sl.policy(ctx, one.DocumentHash); err != nil {
			return nil, err
		}
		if err := sl.load(ctx, s, one); err != nil {
			return nil, err
		}
		found[one.RunID] = sl.remember(one.RunID, s)
	}
	return found, nil
}

// owner is the run of an original. A row that is moved to another project, run or number does not open there.
type owner struct{ project, id string }

// about returns what an original is authenticated with.
func (o owner) about(what string, number int64) []string {
	return []string{"run", o.project, o.id, what, fmt.Sprint(number)}
}

func (sl *Sealer) seal(of owner, what string, number int64, plain []byte) (*run.Original, error) {
	sealed, err := sl.keys.Seal(plain, of.about(what, number)...)
	if err != nil {
		return nil, fmt.Errorf("sealing the %s of run %s: %w", what, of.id, err)
	}
	return &run.Original{What: what, Number: number, KeyID: sl.keys.Active(), Sealed: sealed}, nil
}

func (sl *Sealer) open(of owner, o run.Original) ([]byte, error) {
	plain, err := sl.keys.Open(o.Sealed, of.about(o.What, o.Number)...)
	if err != nil {
		return nil, apperror.New(apperror.Refused, apperror.OriginalSealed, "the %s of run %s cannot be opened: %v", o.What,
			of.id, err).WithCause(err)
	}
	return plain, nil
}

// gone returns the error of a value whose marks stand for an original that the database does not have any more.
func gone(id, what string) error {
	return apperror.New(apperror.Refused, apperror.OriginalGone,
		"the original of the %s of run %s is gone: the database has only the marks", what, id)
}

// sealSecrets seals the secrets that are not stored yet; nil where there are none.
func (sl *Sealer) sealSecrets(of owner, s *runSecrets) (*run.Original, error) {
	if len(s.unsaved) == 0 {
		return nil, nil //nolint:nilnil // nil means nothing to store
	}
	return sl.sealBeside(of, s.unsaved)
}

// sealBeside seals secrets or an [origin].
func (sl *Sealer) sealBeside(of owner, what any) (*run.Original, error) {
	plain, err := json.Marshal(what)
	if err != nil {
		return nil, fmt.Errorf("sealing what is sensitive in run %s: %w", of.id, err)
	}
	// The number is random, so that two processes that find secrets at the same time do not replace each other's.
	var random [8]byte
	_, _ = rand.Read(random[:]) // never fails, according to its documentation
	return sl.seal(of, run.OriginalSecrets, int64(binary.BigEndian.Uint64(random[:])&math.MaxInt64), plain)
}

// openOne opens the only original of a kind.
func (sl *Sealer) openOne(ctx context.Context, of owner, what string) ([]byte, error) {
	list, err := sl.sealed.SealedOf(ctx, of.id, what, -1, 0)
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, gone(of.id, what)
	}
	return sl.open(of, list[0])
}

// Input implements [control.Originals].
func (sl *Sealer) Input(ctx context.Context, r run.Run) (json.RawMessage, error) {
	if !r.InputRedacted {
		return r.Input, nil
	}
	return sl.openOne(ctx, owner{r.Project, r.ID}, run.OriginalInput)
}

// sealedEnd is the content of a [run.OriginalEnd].
type sealedEnd struct {
	Output json.RawMessage `json:"output,omitempty"`
	Error  *run.Error      `json:"error,omitempty"`
}

// sealedStep is the content of a [run.OriginalStep].
type sealedStep struct {
	Input    json.RawMessage `json:"input,omitempty"`
	Output   json.RawMessage `json:"output,omitempty"`
	Error    *run.Error      `json:"error,omitempty"`
	Attempts []run.Attempt   `json:"attempts,omitempty"`
}

// Open returns a run with its original values.
func (sl *Sealer) Open(ctx context.Context, r run.Run) (run.Run, error) {
	if !r.Redacted {
		return r, nil
	}
	var err error
	if r.Input, err = sl.Input(ctx, r); err != nil {
		return run.Run{}, err
	}
	if r.EndRedacted {
		plain, err := sl.openOne(ctx, owner{r.Project, r.ID}, run.OriginalEnd)
		if err != nil {
			return run.Run{}, err
		}
		var end sealedEnd
		if err := json.Unmarshal(plain, &end); err != nil {
			return run.Run{}, fmt.Errorf("reading the original output of run %s: %w", r.ID, err)
		}
		r.Output, r.Error = end.Output, end.Error
	}
	r.Redacted = false
	return r, nil
}

// OpenSteps returns steps of a run with their original values, in place. The steps must be in order of their numbers,
// ascending or descending.
func (sl *Sealer) OpenSteps(ctx context.Context, project, id string, steps []run.Step) ([]run.Step, error) {
	if len(steps) == 0 {
		return steps, nil
	}
	first, last := steps[0].Number, steps[len(steps)-1].Number
	list, err := sl.sealed.SealedOf(ctx, id, run.OriginalStep, min(first, last)-1, max(first, last))
	if err != nil {
		return nil, err
	}
	originals := make(map[int64]run.Original, len(list))
	for _, o := range list {
		originals[o.Number] = o
	}
	for i := range steps {
		if !steps[i].Redacted {
			continue
		}
		o, kept := originals[steps[i].Number]
		if !kept {
			return nil, gone(id, fmt.Sprintf("step %d", steps[i].Number))
		}
		plain, err := sl.open(owner{project, id}, o)
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

// Text replaces the secrets of a run in a text about it.
func (sl *Sealer) Text(ctx context.Context, id, text string) (string, error) {
	if text == "" {
		return "", nil
	}
	s, err := sl.reread(ctx, id)
	if err != nil {
		return "", err
	}
	return s.redact(text), nil
}
