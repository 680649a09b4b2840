package claimcheck_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/proto"

	"github.com/signalbox-dev/signalbox/internal/engine/claimcheck"
	"github.com/signalbox-dev/signalbox/internal/engine/contract"
	"github.com/signalbox-dev/signalbox/internal/engine/payload"
	"github.com/signalbox-dev/signalbox/internal/seal"
)

const runID = "01990000-0000-7000-8000-000000000000"

// values is a database that can be away, and whose answers can be damaged.
type values struct {
	mu    sync.Mutex
	kept  map[string][]byte
	away  error
	calls int
}

func (v *values) Put(ctx context.Context, run, digest string, value []byte) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.calls++
	if v.away != nil || ctx.Err() != nil {
		return errors.Join(v.away, ctx.Err())
	}
	v.kept[run+" "+digest] = bytes.Clone(value)
	return nil
}

func (v *values) Get(ctx context.Context, run, digest string) ([]byte, bool, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.calls++
	if v.away != nil || ctx.Err() != nil {
		return nil, false, errors.Join(v.away, ctx.Err())
	}
	value, found := v.kept[run+" "+digest]
	return value, found, nil
}

func (v *values) Writable(context.Context) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.away
}

func (v *values) be(away error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.away = away
}

func newValues() *values { return &values{kept: map[string][]byte{}} }

func ofRun() converter.StorageDriverWorkflowInfo {
	return converter.StorageDriverWorkflowInfo{WorkflowID: runID, RunID: "x1", WorkflowType: contract.RunWorkflow}
}

func text(n int) *commonpb.Payload {
	return &commonpb.Payload{Metadata: map[string][]byte{"encoding": []byte("json/plain")}, Data: []byte(`"` + strings.Repeat("a", n) + `"`)}
}

func store(t *testing.T, s *claimcheck.Storage, p ...*commonpb.Payload) []converter.StorageDriverClaim {
	t.Helper()
	claims, err := s.Store(converter.StorageDriverStoreContext{Context: t.Context(), Target: ofRun()}, p)
	require.NoError(t, err)
	return claims
}

func retrieve(t *testing.T, s *claimcheck.Storage, claims []converter.StorageDriverClaim) ([]*commonpb.Payload, error) {
	t.Helper()
	return s.Retrieve(converter.StorageDriverRetrieveContext{Context: t.Context()}, claims)
}

func TestValuesAreReadByTheirClaims(t *testing.T) {
	t.Parallel()
	kept := newValues()
	s := claimcheck.New(kept, claimcheck.Options{})
	first, second := text(20_000), text(30_000)
	claims := store(t, s, first, second)
	require.Equal(t, runID, claims[0].ClaimData["run"])
	for _, reader := range []*claimcheck.Storage{s, claimcheck.New(kept, claimcheck.Options{})} {
		got, err := retrieve(t, reader, claims)
		require.NoError(t, err)
		require.True(t, proto.Equal(first, got[0]))
		require.True(t, proto.Equal(second, got[1]))
	}
	require.Equal(t, claims, store(t, s, first, second), "the same value is kept once")
	require.Len(t, kept.kept, 2)
}

func TestCacheIsBoundedInBytes(t *testing.T) {
	t.Parallel()
	kept := newValues()
	s := claimcheck.New(kept, claimcheck.Options{CacheBytes: 50_000})
	older, newer, large := store(t, s, text(20_000)), store(t, s, text(20_001)), store(t, s, text(60_000))
	kept.calls = 0
	read := func(claims []converter.StorageDriverClaim, calls int) {
		t.Helper()
		before := kept.calls
		_, err := retrieve(t, s, claims)
		require.NoError(t, err)
		require.Equal(t, calls, kept.calls-before)
	}
	read(older, 0)
	read(newer, 0)
	read(large, 1)
	read(large, 1)
	read(older, 0)
	store(t, s, text(20_002))
	read(newer, 1)
	read(newer, 0)
}

func TestMissingAndDamagedValuesAreNamed(t *testing.T) {
	t.Parallel()
	kept := newValues()
	claims := store(t, claimcheck.New(kept, claimcheck.Options{}), text(20_000))
	for key := range kept.kept {
		kept.kept[key][100]++
	}
	_, err := retrieve(t, claimcheck.New(kept, claimcheck.Options{}), claims)
	require.ErrorIs(t, err, claimcheck.ErrDamaged)
	require.ErrorContains(t, err, runID)
	_, err = retrieve(t, claimcheck.New(newValues(), claimcheck.Options{}), claims)
	require.ErrorIs(t, err, claimcheck.ErrMissing)
	require.NotContains(t, err.Error(), contract.PayloadsAway, "no repetition heals it")
	_, err = claimcheck.New(kept, claimcheck.Options{MaxBytes: 1000}).Store(
		converter.StorageDriverStoreContext{Context: t.Context(), Target: ofRun()}, []*commonpb.Payload{text(1000)})
	require.ErrorContains(t, err, "more than the limit of 1000")
}

func TestMomentWithoutDatabaseIsWaitedFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		kept := newValues()
		s := claimcheck.New(kept, claimcheck.Options{})
		kept.be(errors.New("away"))
		time.AfterFunc(3*time.Second, func() { kept.be(nil) })
		claims := store(t, s, text(20_000))

		kept.be(errors.New("away"))
		begun := time.Now()
		_, err := s.Store(converter.StorageDriverStoreContext{Context: t.Context(), Target: ofRun()}, []*commonpb.Payload{text(20_001)})
		require.ErrorContains(t, err, contract.PayloadsAway)
		require.Less(t, time.Since(begun), 10*time.Second, "the time of a workflow task")
		_, err = retrieve(t, claimcheck.New(kept, claimcheck.Options{}), claims)
		require.ErrorContains(t, err, contract.PayloadsAway)
		_, err = retrieve(t, s, claims)
		require.NoError(t, err, "the cache needs no database")
	})
}

func TestOnlyLargePayloadsOfRunsAreSelected(t *testing.T) {
	t.Parallel()
	s := claimcheck.New(newValues(), claimcheck.Options{})
	selected := func(target converter.StorageDriverTargetInfo, p *commonpb.Payload) bool {
		driver, err := s.SelectDriver(converter.StorageDriverSelectContext{Context: t.Context(), Target: target}, p)
		require.NoError(t, err)
		return driver != nil
	}
	signal, dispatcher := converter.StorageDriverWorkflowInfo{WorkflowID: runID}, converter.StorageDriverWorkflowInfo{WorkflowID: "dispatcher-default"}
	require.True(t, selected(ofRun(), text(claimcheck.Threshold)))
	require.True(t, selected(signal, text(claimcheck.Threshold)))
	require.False(t, selected(dispatcher, text(claimcheck.Threshold)))
	require.False(t, selected(converter.StorageDriverWorkflowInfo{WorkflowID: runID, WorkflowType: "other"}, text(claimcheck.Threshold)))
	require.False(t, selected(converter.StorageDriverActivityInfo{ActivityID: "a"}, text(claimcheck.Threshold)))

	// Of payloads of a moderate size, the first of an execution stay.
	inline := 0
	for range 100 {
		if !selected(ofRun(), text(10_000)) {
			inline++
		}
	}
	require.Equal(t, 13, inline)
	other := ofRun()
	other.RunID = "x2"
	require.False(t, selected(other, text(10_000)), "each execution has its own history")

	// The message of a failure stays, as it is read where no storage is.
	for _, size := range []int{100_000, 2_000_000} {
		failure := payload.FailureConverter(seal.Random("k")).ErrorToFailure(errors.New(strings.Repeat("e", size)))
		require.NotNil(t, failure.GetEncodedAttributes())
		require.Equal(t, size > 1<<20, selected(ofRun(), failure.GetEncodedAttributes()), fmt.Sprint(size))
	}
}
