package codec_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/proto"

	"github.com/signalbox-dev/signalbox/internal/engine/codec"
	"github.com/signalbox-dev/signalbox/internal/engine/contract"
	"github.com/signalbox-dev/signalbox/internal/keyring"
)

const runID = "01990000-0000-7000-8000-000000000000"

// values is a store that can be unavailable, and that can return damaged values.
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

func (*values) Names() []string { return []string{"the database"} }

func (v *values) set(away error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.away = away
}

func newValues() *values { return &values{kept: map[string][]byte{}} }

func ofRun() converter.StorageDriverWorkflowInfo {
	return converter.StorageDriverWorkflowInfo{WorkflowID: runID, RunID: "x1", WorkflowType: contract.RunWorkflow}
}

func longText(n int) *commonpb.Payload {
	return &commonpb.Payload{
		Metadata: map[string][]byte{"encoding": []byte("json/plain")}, Data: []byte(`"` + strings.Repeat("a", n) + `"`)}
}

func store(t *testing.T, s *codec.Storage, p ...*commonpb.Payload) []converter.StorageDriverClaim {
	t.Helper()
	claims, err := s.Store(converter.StorageDriverStoreContext{Context: t.Context(), Target: ofRun()}, p)
	require.NoError(t, err)
	return claims
}

func retrieve(t *testing.T, s *codec.Storage, claims []converter.StorageDriverClaim) ([]*commonpb.Payload, error) {
	t.Helper()
	return s.Retrieve(converter.StorageDriverRetrieveContext{Context: t.Context()}, claims)
}

func TestValuesAreReadByTheirClaims(t *testing.T) {
	t.Parallel()
	kept := newValues()
	s := codec.New(kept, codec.Options{})
	first, second := longText(20_000), longText(30_000)
	claims := store(t, s, first, second)
	require.Equal(t, runID, claims[0].ClaimData["run"])
	for _, reader := range []*codec.Storage{s, codec.New(kept, codec.Options{})} {
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
	s := codec.New(kept, codec.Options{CacheBytes: 50_000})
	older, newer, large := store(t, s, longText(20_000)), store(t, s, longText(20_001)), store(t, s, longText(60_000))
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
	store(t, s, longText(20_002))
	read(newer, 1)
	read(newer, 0)
}

func TestMissingAndDamagedValuesAreNamed(t *testing.T) {
	t.Parallel()
	kept := newValues()
	claims := store(t, codec.New(kept, codec.Options{}), longText(20_000))
	for key := range kept.kept {
		kept.kept[key][100]++
	}
	_, err := retrieve(t, codec.New(kept, codec.Options{}), claims)
	require.ErrorIs(t, err, codec.ErrDamaged)
	require.ErrorContains(t, err, runID)
	_, err = retrieve(t, codec.New(newValues(), codec.Options{}), claims)
	require.ErrorIs(t, err, codec.ErrMissing)
	require.ErrorContains(t, err,
		"it is not in the database: its run was deleted, or the database was restored from a backup that is older than it")
	require.NotContains(t, err.Error(), contract.PayloadsAway, "a retry does not help")
	_, err = codec.New(kept, codec.Options{MaxBytes: 1000}).Store(
		converter.StorageDriverStoreContext{Context: t.Context(), Target: ofRun()}, []*commonpb.Payload{longText(1000)})
	require.ErrorContains(t, err, "more than the limit of 1000")
}

func TestShortOutageOfTheDatabaseIsBridged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		kept := newValues()
		s := codec.New(kept, codec.Options{})
		kept.set(errors.New("away"))
		time.AfterFunc(3*time.Second, func() { kept.set(nil) })
		claims := store(t, s, longText(20_000))

		kept.set(errors.New("away"))
		begun := time.Now()
		_, err := s.Store(converter.StorageDriverStoreContext{Context: t.Context(), Target: ofRun()},
			[]*commonpb.Payload{longText(20_001)})
		require.ErrorContains(t, err, contract.PayloadsAway)
		require.Less(t, time.Since(begun), 10*time.Second, "the time of a workflow task")
		_, err = retrieve(t, codec.New(kept, codec.Options{}), claims)
		require.ErrorContains(t, err, contract.PayloadsAway)
		_, err = retrieve(t, s, claims)
		require.NoError(t, err, "the cache requires no database")
	})
}

// slow is a database with slow writes.
type slow struct {
	*values

	takes       time.Duration
	large, most atomic.Int32 // values being written
}

func (s *slow) Put(ctx context.Context, run, digest string, value []byte) error {
	if len(value) >= 256<<10 {
		s.most.Store(max(s.most.Load(), s.large.Add(1)))
		defer s.large.Add(-1)
		<-time.After(s.takes) // the clock of synctest
	}
	return s.values.Put(ctx, run, digest, value)
}

func TestLargeValuesAreWrittenOneByOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		kept := &slow{values: newValues(), takes: 100 * time.Millisecond}
		s := codec.New(kept, codec.Options{})
		begun := time.Now()
		var writes sync.WaitGroup
		for i := range 10 {
			writes.Go(func() { store(t, s, longText(300_000+i)) })
		}
		synctest.Wait()
		store(t, s, longText(20_000))
		require.Equal(t, begun, time.Now(), "a value that is not large waits for none")
		writes.Wait()
		require.EqualValues(t, 1, kept.most.Load())
		require.Equal(t, time.Second, time.Since(begun))
		require.Len(t, kept.kept, 11)
	})
}

func TestWaitForALargeValueIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		kept := &slow{values: newValues(), takes: 5 * time.Second}
		s := codec.New(kept, codec.Options{})
		begun := time.Now()
		var writes sync.WaitGroup
		for i := range 10 {
			writes.Go(func() { store(t, s, longText(300_000+i)) })
		}
		writes.Wait()
		require.Equal(t, 7*time.Second, time.Since(begun))
	})
}

func TestOnlyLargePayloadsOfRunsAreSelected(t *testing.T) {
	t.Parallel()
	s := codec.New(newValues(), codec.Options{})
	selected := func(target converter.StorageDriverTargetInfo, p *commonpb.Payload) bool {
		driver, err := s.SelectDriver(converter.StorageDriverSelectContext{Context: t.Context(), Target: target}, p)
		require.NoError(t, err)
		return driver != nil
	}
	signal, dispatcher := converter.StorageDriverWorkflowInfo{WorkflowID: runID},
		converter.StorageDriverWorkflowInfo{WorkflowID: "dispatcher-default"}
	require.True(t, selected(ofRun(), longText(codec.Threshold)))
	require.True(t, selected(signal, longText(codec.Threshold)))
	require.False(t, selected(dispatcher, longText(codec.Threshold)))
	require.False(t, selected(converter.StorageDriverWorkflowInfo{WorkflowID: runID, WorkflowType: "other"},
		longText(codec.Threshold)))
	require.False(t, selected(converter.StorageDriverActivityInfo{ActivityID: "a"}, longText(codec.Threshold)))

	// Of medium payloads, the first of an execution stay.
	inline := 0
	for range 100 {
		if !selected(ofRun(), longText(10_000)) {
			inline++
		}
	}
	require.Equal(t, 13, inline)
	other := ofRun()
	other.RunID = "x2"
	require.False(t, selected(other, longText(10_000)), "each execution has its own history")

	// The message of a failure stays, because it is read where the storage is not available.
	for _, size := range []int{100_000, 2_000_000} {
		failure := codec.FailureConverter(keyring.Random("k")).ErrorToFailure(errors.New(strings.Repeat("e", size)))
		require.NotNil(t, failure.GetEncodedAttributes())
		require.Equal(t, size > 1<<20, selected(ofRun(), failure.GetEncodedAttributes()), fmt.Sprint(size))
	}
}

// twoStores are values in a folder, before which they were in the database.
type twoStores struct{ *values }

func (twoStores) Names() []string { return []string{`folder "/srv"`, "the database"} }

// inlined is a value that stays in its message.
type inlined struct {
	Text string `json:"text"`
}

func (inlined) StaysInline() {}

func TestInlinedValuesStayInTheirMessage(t *testing.T) {
	t.Parallel()
	s := codec.New(newValues(), codec.Options{})
	for name, ring := range map[string]*keyring.Ring{
		"sealed": keyring.Random("k"), "plain": keyring.Random("k").Opening()} {
		c := codec.For(ring, runID)
		for _, value := range []any{inlined{strings.Repeat("x", 500_000)}, struct{ Text string }{strings.Repeat("x", 500_000)}} {
			p, err := c.ToPayload(value)
			require.NoError(t, err)
			driver, err := s.SelectDriver(converter.StorageDriverSelectContext{Context: t.Context(), Target: ofRun()}, p)
			require.NoError(t, err)
			_, stays := value.(codec.Inlined)
			require.Equal(t, stays, driver == nil, name)
			var back inlined
			require.NoError(t, c.FromPayload(p, &back))
			require.Len(t, back.Text, 500_000)
		}
	}
}

func TestMissingPayloadNamesEachStore(t *testing.T) {
	t.Parallel()
	claims := store(t, codec.New(newValues(), codec.Options{}), longText(codec.Threshold))
	_, err := retrieve(t, codec.New(twoStores{newValues()}, codec.Options{}), claims)
	require.ErrorContains(t, err,
		`it is in none of folder "/srv", the database: its run was deleted, or one of them was restored`)
	require.ErrorIs(t, err, codec.ErrMissing)
}
