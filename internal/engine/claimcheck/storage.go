package claimcheck

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/proto"

	"github.com/signalbox-dev/signalbox/internal/engine/contract"
	"github.com/signalbox-dev/signalbox/internal/engine/payload"
	"github.com/signalbox-dev/signalbox/internal/lru"
	"github.com/signalbox-dev/signalbox/internal/pause"
)

const (
	// name is in every reference, and type in what the SDK reports about itself; neither ever changes.
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
	// retryEvery is the time between two calls of a database that is away.
	retryEvery = 250 * time.Millisecond
	// operations bounds the calls of the database that one client or worker has in flight, perMessage those for one message.
	operations, perMessage = 16, 8
)

// Values keeps values by run and digest.
type Values interface {
	// Put keeps a value; one that is there already stays. An error may be temporary.
	Put(ctx context.Context, runID, digest string, value []byte) error
	// Get returns a value, and whether there is one. An error may be temporary.
	Get(ctx context.Context, runID, digest string) (value []byte, found bool, err error)
	// Writable returns an error while nothing can be kept.
	Writable(ctx context.Context) error
}

// Options bound the storage; zero values are the defaults.
type Options struct {
	// MaxBytes is the largest value that is kept: 24 MiB.
	MaxBytes int
	// CacheBytes bounds the cache: 64 MiB.
	CacheBytes int
	// Patience is how long a call is repeated while the database is away: 7 s, less than the 10 s after which Temporal takes the worker of a
	// workflow task for lost.
	Patience time.Duration
}

// key names a value.
type key struct{ run, digest string }

// Storage is the storage of one process. It is safe for concurrent use.
type Storage struct {
	values   Values
	cache    *lru.Cache[key, []byte]
	patience time.Duration
	maxBytes int
	budget   *budget
}

var (
	_ converter.StorageDriver         = (*Storage)(nil)
	_ converter.StorageDriverSelector = (*Storage)(nil)
)

// New returns a storage over values.
func New(values Values, o Options) *Storage {
	return &Storage{
		values: values, cache: lru.New[key](cmp.Or(o.CacheBytes, defaultCacheBytes), func(value []byte) int { return len(value) }),
		patience: cmp.Or(o.Patience, defaultPatience), maxBytes: cmp.Or(o.MaxBytes, defaultMaxBytes), budget: newBudget(),
	}
}

// External is what clients and replayers are to have. Of a nil storage it is none.
func (s *Storage) External() converter.ExternalStorage {
	if s == nil {
		return converter.ExternalStorage{}
	}
	return converter.ExternalStorage{
		Drivers: []converter.StorageDriver{s}, DriverSelector: s, PayloadSizeThreshold: smallest,
		Concurrency: converter.ExternalStorageConcurrency{MaxDriverOperations: operations, MaxOperationsPerMessage: perMessage},
	}
}

// Name implements [converter.StorageDriver].
func (*Storage) Name() string { return name }

// Type implements [converter.StorageDriver].
func (*Storage) Type() string { return driverType }

// SelectDriver implements [converter.StorageDriverSelector]: it selects large payloads of runs.
func (s *Storage) SelectDriver(ctx converter.StorageDriverSelectContext, p *commonpb.Payload) (converter.StorageDriver, error) {
	target, ofRun := runOf(ctx.Target)
	if !ofRun {
		return nil, nil //nolint:nilnil // the SDK's way to say that the payload stays where it is
	}
	if payload.Inline(p) && proto.Size(p) < maxInline {
		return nil, nil //nolint:nilnil // as above
	}
	if size := proto.Size(p); size < Threshold && !s.budget.exceeded(target, size) {
		return nil, nil //nolint:nilnil // as above
	}
	return s, nil
}

// Writable returns an error while the database keeps no values.
func (s *Storage) Writable(ctx context.Context) error {
	if err := s.values.Writable(ctx); err != nil {
		return fmt.Errorf("ask whether payloads can be kept: %w", err)
	}
	return nil
}

// runOf returns the run for which a payload is. Requests to signal a workflow do not name its type.
func runOf(target converter.StorageDriverTargetInfo) (converter.StorageDriverWorkflowInfo, bool) {
	w, ok := target.(converter.StorageDriverWorkflowInfo)
	ok = ok && (w.WorkflowType == contract.RunWorkflow || w.WorkflowType == "" && contract.IsRunID(w.WorkflowID))
	return w, ok
}

// Store implements [converter.StorageDriver].
func (s *Storage) Store(ctx converter.StorageDriverStoreContext, payloads []*commonpb.Payload) ([]converter.StorageDriverClaim, error) {
	target, ofRun := runOf(ctx.Target)
	if !ofRun {
		return nil, fmt.Errorf("keep a payload of %+v: it is no run", ctx.Target)
	}
	claims := make([]converter.StorageDriverClaim, len(payloads))
	for i, p := range payloads {
		value, err := proto.MarshalOptions{Deterministic: true}.Marshal(p)
		if err != nil {
			return nil, fmt.Errorf("keep a payload of run %q: %w", target.WorkflowID, err)
		}
		if len(value) > s.maxBytes {
			return nil, fmt.Errorf("keep a payload of run %q: it has %d bytes, more than the limit of %d", target.WorkflowID, len(value), s.maxBytes)
		}
		k := key{target.WorkflowID, digest(value)}
		err = ctx.GetLimiter().Permit(ctx.Context, p, func() error {
			return s.repeat(ctx.Context, func(ctx context.Context) error { return s.values.Put(ctx, k.run, k.digest, value) })
		})
		if err != nil {
			return nil, fmt.Errorf("%s a payload of %d bytes of run %q: %w", contract.PayloadsUnkept, len(value), k.run, err)
		}
		s.cache.Put(k, value)
		claims[i] = converter.StorageDriverClaim{ClaimData: map[string]string{claimRun: k.run, claimDigest: k.digest}}
	}
	return claims, nil
}

// Retrieve implements [converter.StorageDriver].
func (s *Storage) Retrieve(ctx converter.StorageDriverRetrieveContext, claims []converter.StorageDriverClaim) ([]*commonpb.Payload, error) {
	out := make([]*commonpb.Payload, len(claims))
	for i, claim := range claims {
		k := key{claim.ClaimData[claimRun], claim.ClaimData[claimDigest]}
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

// read reads a value from the cache, or from the database, whose answer has to have the digest.
func (s *Storage) read(ctx context.Context, k key) (value []byte, err error) {
	if value, found := s.cache.Get(k); found {
		return value, nil
	}
	found := false
	err = s.repeat(ctx, func(ctx context.Context) (err error) {
		value, found, err = s.values.Get(ctx, k.run, k.digest)
		return err
	})
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s payload %s of run %q: %w", contract.PayloadsUnread, k.digest, k.run, err)
	case !found:
		return nil, fmt.Errorf("payload %s of run %q: %w", k.digest, k.run, ErrMissing)
	case digest(value) != k.digest:
		return nil, fmt.Errorf("payload %s of run %q: %w", k.digest, k.run, ErrDamaged)
	}
	s.cache.Put(k, value)
	return value, nil
}

// Errors about values that no repetition heals.
var (
	ErrMissing = errors.New("it is not in the database: its run was deleted, or the database was restored from a backup that is older than it")
	ErrDamaged = errors.New("what the database holds is not what was kept: its digest is another one")
)

// repeat calls f until it succeeds, for as long as the storage has patience. Without it a moment without database would fail a task.
func (s *Storage) repeat(ctx context.Context, f func(ctx context.Context) error) error {
	limited, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	for {
		err := f(limited)
		if err == nil || !pause.For(limited, retryEvery) {
			return err
		}
	}
}

func digest(value []byte) string {
	sum := sha256.Sum256(value)
	return hex.EncodeToString(sum[:])
}
