// Package payload defines the stores of large values, to which Temporal's histories refer.
//
//	stores := payload.NewStores(bucket, table) // writes into the bucket, reads from both
//	err := stores.Put(ctx, runID, digest, value)
//	value, found, err := stores.Get(ctx, runID, digest)
//
// A value belongs to the run with the history that refers to it, and its digest identifies it there: the same run and
// digest always have the same value, so that putting it again changes nothing.
//
// [Folder] stores values as files, package bucket as objects, package store/payloads in a table. All pass the suite
// payloadtest. They neither seal values nor compare digests; their callers do. They do not know which runs exist:
// package retention decides what is deleted.
package payload

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/signalbox-dev/signalbox/internal/apperror"
)

// MaxBytes is the maximum size of a value: a value of a run at its limit of 16 MiB with its request, or a state that is
// carried over to the next execution in base64, both sealed.
const MaxBytes = 24 << 20

const (
	// CallTimeout bounds one operation of a store.
	CallTimeout = 5 * time.Second
	// retryAfter is the delay that callers receive while a store is unavailable.
	retryAfter = 2 * time.Second
)

// Store stores values. It is safe for concurrent use, also by several processes.
type Store interface {
	// Put stores a value of a run. A value over [MaxBytes] is refused.
	Put(ctx context.Context, runID, digest string, value []byte) error
	// Get returns a value of a run, and whether it exists.
	Get(ctx context.Context, runID, digest string) (value []byte, found bool, err error)
	// Writable returns an error while no value can be stored. It leaves no value behind.
	Writable(ctx context.Context) error
	// Stale examines the next limit runs after a position, which is empty at first, and returns those that have a value
	// older than age. next is the position after which the next call continues: empty when there are no more runs.
	Stale(ctx context.Context, age time.Duration, after string, limit int) (runIDs []string, next string, err error)
	// DeleteRun deletes the values of a run, and returns how many.
	DeleteRun(ctx context.Context, runID string) (int64, error)
	// String names the store for people, without credentials, such as: folder "/srv/payloads".
	String() string
}

// Stores reads values from several stores, and writes them into the first one. So values that were written before the
// store was changed are still found.
type Stores struct {
	current Store
	earlier []Store
}

// NewStores returns a store that writes into current, and reads from current and then from earlier ones.
func NewStores(current Store, earlier ...Store) *Stores { return &Stores{current, earlier} }

// All returns the stores, the current one first.
func (s *Stores) All() []Store { return append([]Store{s.current}, s.earlier...) }

// Names returns the names of the stores that Get searches.
func (s *Stores) Names() []string {
	var names []string
	for _, each := range s.All() {
		names = append(names, each.String())
	}
	return names
}

// Put stores a value in the current store.
func (s *Stores) Put(ctx context.Context, runID, digest string, value []byte) error {
	return s.current.Put(ctx, runID, digest, value)
}

// Writable returns an error while the current store accepts no values.
func (s *Stores) Writable(ctx context.Context) error { return s.current.Writable(ctx) }

// Get returns a value from the first store that has it. It reports a value as not found only when every store has
// answered.
func (s *Stores) Get(ctx context.Context, runID, digest string) (value []byte, found bool, err error) {
	for _, each := range s.All() {
		value, found, failed := each.Get(ctx, runID, digest)
		if failed == nil && found {
			return value, true, nil
		}
		err = errors.Join(err, failed)
	}
	return nil, false, err
}

// TooLarge returns an error for a value over [MaxBytes].
func TooLarge(runID string, value []byte) error {
	if len(value) <= MaxBytes {
		return nil
	}
	return fmt.Errorf("keep a payload of run %q: it has %d bytes, more than the limit of %d", runID, len(value), MaxBytes)
}

// Unavailable returns the error of an operation that a store did not carry out, as one that may succeed later. It
// returns the end of caller, the context that was passed to the operation, as it is.
func Unavailable(caller context.Context, doing string, store fmt.Stringer, err error) error {
	switch {
	case err == nil:
		return nil
	case caller.Err() != nil:
		return fmt.Errorf("%s: %w", doing, caller.Err())
	case errors.Is(err, context.DeadlineExceeded):
		return apperror.New(apperror.Unavailable, apperror.StoreUnavailable,
			"%s: the store of payloads did not answer in time", doing).
			WithDetail("%s", store).WithCause(err).WithRetry(retryAfter)
	}
	return apperror.New(apperror.Unavailable, apperror.StoreUnavailable, "%s: the store of payloads failed",
		doing).WithDetail("%s: %v", store, err).WithCause(err).WithRetry(retryAfter)
}
