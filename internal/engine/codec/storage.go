package codec

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jellydator/ttlcache/v3"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/proto"

	"github.com/signalbox-dev/signalbox/internal/engine/contract"
	"github.com/signalbox-dev/signalbox/internal/loop"
)

const (
	// name is part of every reference, and driverType is part of what the SDK reports about itself. Neither ever
	// changes.
	name       = "signalbox"
	driverType = "signalbox.database"
	// Keys of a claim. They are part of recorded histories.
	claimRun    = "run"
	claimDigest = "sha256"
)

const (
	defaultMaxBytes   = 24 << 20
	defaultCacheBytes = 64 << 20
	defaultPatience   = 7 * time.Second
	// retryEvery is the time between two calls of an unavailable store.
	retryEvery = 250 * time.Millisecond
	// operations bounds the calls of the store that one client or worker has in flight, perMessage those for one message.
	operations, perMessage = 16, 8
	// large is the size from which a process writes one value at a time. Many at once would occupy the processors of
	// the process and of the store. If the write in progress takes longer than largeWait, the next one starts
	// nevertheless: largeWait and the patience together are less than the time after which Temporal gives the task to
	// another worker.
	large     = 256 << 10
	largeWait = 2 * time.Second
)

// Values stores values by run and digest.
type Values interface {
	// Put stores a value, unless it is stored already. An error may be temporary.
	Put(ctx context.Context, runID, digest string, value []byte) error
	// Get returns a value, and whether it exists. An error may be temporary.
	Get(ctx context.Context, runID, digest string) (value []byte, found bool, err error)
	// Writable returns an error while no value can be stored.
	Writable(ctx context.Context) error
	// Names returns the names of the stores that Get searches, for errors.
	Names() []string
}

// Options bound the storage; zero values are the defaults.
type Options struct {
	// MaxBytes is the largest size of a value: 24 MiB.
	MaxBytes int
	// CacheBytes bounds the cache: 64 MiB.
	CacheBytes uint64
	// Patience is the time for which a call is retried while the store is unavailable: 7 s. It is less than the 10 s
	// after which Temporal considers the worker of a workflow task lost.
	Patience time.Duration
}

// key identifies a value.
type key struct{ run, digest string }

func keyOf(c converter.StorageDriverClaim) key {
	return key{c.ClaimData[claimRun], c.ClaimData[claimDigest]}
}

// Storage stores the large payloads of one process. It is safe for concurrent use.
type Storage struct {
	values    Values
	cache     *ttlcache.Cache[key, []byte]
	patience  time.Duration
	maxBytes  int
	maxCached uint64 // a larger value is not cached: it would replace all others
	budget    *budget
	writing   chan struct{} // held while a large value is written
}

var (
	_ converter.StorageDriver         = (*Storage)(nil)
	_ converter.StorageDriverSelector = (*Storage)(nil)
)

// New returns a storage over values.
func New(values Values, o Options) *Storage {
	o.CacheBytes = cmp.Or(o.CacheBytes, defaultCacheBytes)
	weigh := func(item ttlcache.CostItem[key, []byte]) uint64 { return uint64(len(item.Value)) }
	return &Storage{
		values: values, cache: ttlcache.New(ttlcache.WithMaxCost(o.CacheBytes, weigh)), maxCached: o.CacheBytes,
		patience: cmp.Or(o.Patience, defaultPatience), maxBytes: cmp.Or(o.MaxBytes, defaultMaxBytes), budget: newBudget(),
		writing: make(chan struct{}, 1),
	}
}

// External returns the option for clients and replayers. It is empty for a nil storage.
func (s *Storage) External() converter.ExternalStorage {
	if s == nil {
		return converter.ExternalStorage{}
	}
	return converter.ExternalStorage{
		Drivers: []converter.StorageDriver{s}, DriverSelector: s, PayloadSizeThreshold: smallest,
		Concurrency: converter.ExternalStorageConcurrency{
			MaxDriverOperations: operations, MaxOperationsPerMessage: perMessage},
	}
}

// Name implements [converter.StorageDriver].
func (*Storage) Name() string { return name }

// Type implements [converter.StorageDriver].
func (*Storage) Type() string { return driverType }

// SelectDriver implements [converter.StorageDriverSelector]: it selects large payloads of runs.
func (s *Storage) SelectDriver(ctx converter.StorageDriverSelectContext,
	p *commonpb.Payload) (converter.StorageDriver, error) {
	target, ofRun := runOf(ctx.Target)
	if !ofRun {
		return nil, nil //nolint:nilnil // for the SDK: the payload stays in its message
	}
	if Inline(p) && proto.Size(p) < maxInline {
		return nil, nil //nolint:nilnil // as above
	}
	if size := proto.Size(p); size < Threshold && !s.budget.exceeded(target, size) {
		return nil, nil //nolint:nilnil // as above
	}
	return s, nil
}

// Writable returns an error while no values can be stored.
func (s *Storage) Writable(ctx context.Context) error {
	if err := s.values.Writable(ctx); err != nil {
		return fmt.Errorf("check that payloads can be stored: %w", err)
	}
	return nil
}

// runOf returns the run of a payload. Requests to signal a workflow do not carry its type.
func runOf(target converter.StorageDriverTargetInfo) (converter.StorageDriverWorkflowInfo, bool) {
	w, ok := target.(converter.StorageDriverWorkflowInfo)
	ok = ok && (w.WorkflowType == contract.RunWorkflow || w.WorkflowType == "" && contract.IsRunID(w.WorkflowID))
	return w, ok
}

// Store implements [converter.StorageDriver].
func (s *Storage) Store(ctx converter.StorageDriverStoreContext,
	payloads []*commonpb.Payload) ([]converter.StorageDriverClaim, error) {
	target, ofRun := runOf(ctx.Target)
	if !ofRun {
		return nil, fmt.Errorf("store a payload of %+v: not a run", ctx.Target)
	}
	claims := make([]converter.StorageDriverClaim, len(payloads))
	for i, p := range payloads {
		k, err := s.keep(ctx, target.WorkflowID, p)
		if err != nil {
			return nil, err
		}
		claims[i] = converter.StorageDriverClaim{ClaimData: map[string]string{claimRun: k.run, claimDigest: k.digest}}
	}
	return claims, nil
}

// keep stores one payload of a run.
func (s *Storage) keep(ctx converter.StorageDriverStoreContext, runID string, p *commonpb.Payload) (key, error) {
	defer s.turn(ctx.Context, proto.Size(p))()
	value, err := proto.MarshalOptions{Deterministic: true}.Marshal(p)
	if err != nil {
		return key{}, fmt.Errorf("store a payload of run %q: %w", runID, err)
	}
	if len(value) > s.maxBytes {
		return key{}, fmt.Errorf("store a payload of run %q: it has %d bytes, more than the limit of %d", runID, len(value),
			s.maxBytes)
	}
	k := key{runID, digest(value)}
	err = ctx.GetLimiter().Permit(ctx.Context, p, func() error {
		return s.retry(ctx.Context, func(ctx context.Context) error { return s.values.Put(ctx, k.run, k.digest, value) })
	})
	if err != nil {
		return key{}, fmt.Errorf("%s a payload of %d bytes of run %q: %w", contract.PayloadsUnkept, len(value), k.run, err)
	}
	s.remember(k, value)
	return k, nil
}

// turn waits, for a large value, until no other large value is being written. It returns the function that ends the
// turn.
func (s *Storage) turn(ctx context.Context, size int) (end func()) {
	if size < large {
		return func() {}
	}
	timer := time.NewTimer(largeWait)
	defer timer.Stop()
	select {
	case s.writing <- struct{}{}:
		return func() { <-s.writing }
	case <-timer.C:
	case <-ctx.Done():
	}
	return func() {}
}

// Retrieve implements [converter.StorageDriver].
func (s *Storage) Retrieve(ctx converter.StorageDriverRetrieveContext,
	claims []converter.StorageDriverClaim) ([]*commonpb.Payload, error) {
	out := make([]*commonpb.Payload, len(claims))
	for i, claim := range claims {
		k := keyOf(claim)
		var value []byte
		err := ctx.GetLimiter().Permit(ctx.Context, claim, func() (err error) {
			value, err = s.read(ctx.Context, k)
			return err
		})
		if err != nil {
			return nil, err
		}
		out[i] = &commonpb.Payload{}
		if err := proto.Unmarshal(value, out[i]); err != nil {
			return nil, fmt.Errorf("read payload %s of run %q: %w", k.digest, k.run, err)
		}
	}
	return out, nil
}

// read returns a value from the cache or from the stores. It verifies the digest of a stored value.
func (s *Storage) read(ctx context.Context, k key) (value []byte, err error) {
	if cached := s.cache.Get(k); cached != nil {
		return cached.Value(), nil
	}
	found := false
	err = s.retry(ctx, func(ctx context.Context) (err error) {
		value, found, err = s.values.Get(ctx, k.run, k.digest)
		return err
	})
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s payload %s of run %q: %w", contract.PayloadsUnread, k.digest, k.run, err)
	case !found:
		return nil, fmt.Errorf("payload %s of run %q: %w", k.digest, k.run, missing(s.values.Names()))
	case digest(value) != k.digest:
		return nil, fmt.Errorf("payload %s of run %q: %w", k.digest, k.run, ErrDamaged)
	}
	s.remember(k, value)
	return value, nil
}

func (s *Storage) remember(k key, value []byte) {
	if uint64(len(value)) <= s.maxCached {
		s.cache.Set(k, value, ttlcache.NoTTL)
	}
}

// Errors of values that a retry does not resolve.
var (
	ErrMissing = errors.New(contract.PayloadMissing)
	ErrDamaged = errors.New("the stored value is damaged: its digest differs")
)

// missing returns [ErrMissing] with the stores that do not have the value.
func missing(stores []string) error {
	if len(stores) == 1 {
		return fmt.Errorf("it is not in %s: %w %s was restored from a backup that is older than it", stores[0], ErrMissing,
			stores[0])
	}
	return fmt.Errorf("it is in none of %s: %w one of them was restored from a backup that is older than it",
		strings.Join(stores, ", "), ErrMissing)
}

// retry calls f until it succeeds or the patience is exhausted. Without it, a short outage of the store would fail a
// task.
func (s *Storage) retry(ctx context.Context, f func(ctx context.Context) error) error {
	limited, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	for {
		err := f(limited)
		if err == nil || !loop.Sleep(limited, retryEvery) {
			return err
		}
	}
}

func digest(value []byte) string {
	sum := sha256.Sum256(value)
	return hex.EncodeToString(sum[:])
}
