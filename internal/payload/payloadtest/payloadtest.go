// Package payloadtest is the suite that every store of payloads passes.
//
//	payloadtest.Run(t, func(t *testing.T) func() payload.Store { … })
//
// Each test gets an empty store. It is opened more than once, as several processes would open it.
package payloadtest

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/payload"
)

// Open opens one store; it is closed when the test ends.
type Open func() payload.Store

// Run runs the suite. newStore creates an empty store for one test.
func Run(t *testing.T, newStore func(t *testing.T) Open) {
	t.Helper()
	for _, tt := range []struct {
		name string
		test func(t *testing.T, open Open)
	}{
		{"put and get", testPutAndGet},
		{"limit", testLimit},
		{"any run ID", testAnyRunID},
		{"at once", testAtOnce},
		{"writable", testWritable},
		{"stale runs by page", testStale},
		{"delete a run", testDelete},
		{"delete while values are put", testDeleteAtOnce},
		{"canceled", testCanceled},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.test(t, newStore(t))
		})
	}
}

// digest returns the form of a digest with a number.
func digest(n int) string { return fmt.Sprintf("%064x", n) }

func get(t *testing.T, s payload.Store, runID, digest string) (value []byte, found bool) {
	t.Helper()
	value, found, err := s.Get(t.Context(), runID, digest)
	require.NoError(t, err)
	return value, found
}

func testPutAndGet(t *testing.T, open Open) {
	s, ctx := open(), t.Context()
	large := bytes.Repeat([]byte{0, 1, 0xff}, 1<<20)
	for range 2 { // again: nothing changes
		require.NoError(t, s.Put(ctx, "r1", digest(1), large))
		require.NoError(t, s.Put(ctx, "r1", digest(2), []byte{}))
	}
	for _, each := range []payload.Store{s, open()} {
		value, found := get(t, each, "r1", digest(1))
		require.True(t, found)
		require.True(t, bytes.Equal(large, value))
		value, found = get(t, each, "r1", digest(2))
		require.True(t, found)
		require.Empty(t, value)
	}
	for _, missing := range [][2]string{{"r1", digest(3)}, {"r2", digest(1)}, {"r", digest(1)}, {"r1", "0"}} {
		_, found := get(t, s, missing[0], missing[1])
		require.False(t, found, "a value belongs to its run: %v", missing)
	}
	require.NotEmpty(t, s.String())
}

func testLimit(t *testing.T, open Open) {
	s := open()
	require.NoError(t, s.Put(t.Context(), "r1", digest(1), make([]byte, payload.MaxBytes)))
	value, found := get(t, s, "r1", digest(1))
	require.True(t, found)
	require.Len(t, value, payload.MaxBytes)
	require.ErrorContains(t, s.Put(t.Context(), "r1", digest(2), make([]byte, payload.MaxBytes+1)),
		"more than the limit of 25165824")
	_, found = get(t, s, "r1", digest(2))
	require.False(t, found)
}

// The workflow ID of an execution, which anyone can start in Temporal, is not always a UUID.
func testAnyRunID(t *testing.T, open Open) {
	s := open()
	ids := []string{"3f2504e0-4f89-11d3-9a0c-0305e82c3301", "a/b", "../../etc", "..", ".", "A", "a", "a b%2F", "größe",
		"x'y\"z\\", strings.Repeat("r", 200)}
	for i, id := range ids {
		require.NoError(t, s.Put(t.Context(), id, digest(1), []byte{byte(i)}), "%q", id)
	}
	for i, id := range ids {
		value, found := get(t, s, id, digest(1))
		require.True(t, found, "%q", id)
		require.Equal(t, []byte{byte(i)}, value, "%q", id)
	}
	stale, _, err := s.Stale(t.Context(), -time.Hour, "", len(ids)+1)
	require.NoError(t, err)
	require.ElementsMatch(t, ids, stale)
}

func testAtOnce(t *testing.T, open Open) {
	stores := []payload.Store{open(), open()}
	var group sync.WaitGroup
	failures := make(chan error, 40)
	for n := range cap(failures) {
		group.Go(func() {
			failures <- stores[n%2].Put(t.Context(), "r1", digest(n%4), bytes.Repeat([]byte{byte(n % 4)}, 20_000))
		})
	}
	group.Wait()
	close(failures)
	for err := range failures {
		require.NoError(t, err)
	}
	for n := range 4 {
		value, found := get(t, stores[0], "r1", digest(n))
		require.True(t, found)
		require.Equal(t, bytes.Repeat([]byte{byte(n)}, 20_000), value)
	}
}

func testWritable(t *testing.T, open Open) {
	s := open()
	for range 2 {
		require.NoError(t, s.Writable(t.Context()))
		require.NoError(t, s.Put(t.Context(), "r1", digest(1), []byte("value")))
	}
	ids, next, err := s.Stale(t.Context(), -time.Hour, "", 10)
	require.NoError(t, err)
	require.Equal(t, []string{"r1"}, ids, "it leaves no value behind")
	require.Empty(t, next)
}

func testStale(t *testing.T, open Open) {
	s, ctx := open(), t.Context()
	var all []string
	for n := range 7 {
		all = append(all, fmt.Sprint("run-", n))
		for d := range 3 {
			require.NoError(t, s.Put(ctx, all[n], digest(d), []byte("value")))
		}
	}
	ids, next, err := s.Stale(ctx, time.Hour, "", 100)
	require.NoError(t, err)
	require.Empty(t, ids, "they are too young")
	require.Empty(t, next)

	// With a negative age, values of the future are included.
	for _, limit := range []int{1, 3, 7, 100} {
		var found []string
		for after, pages := "", 0; ; pages++ {
			require.Less(t, pages, 10, "limit %d", limit)
			ids, next, err := s.Stale(ctx, -time.Hour, after, limit)
			require.NoError(t, err)
			require.LessOrEqual(t, len(ids), limit)
			found = append(found, ids...)
			if after = next; next == "" {
				break
			}
		}
		require.ElementsMatch(t, all, found, "each run once, limit %d", limit)
	}
}

func testDelete(t *testing.T, open Open) {
	s, ctx := open(), t.Context()
	for n := range 45 {
		for _, id := range []string{"gone", "gone-too", "kept"} {
			require.NoError(t, s.Put(ctx, id, digest(n), []byte("value")))
		}
	}
	deleted, err := s.DeleteRun(ctx, "gone")
	require.NoError(t, err)
	require.EqualValues(t, 45, deleted)
	deleted, err = s.DeleteRun(ctx, "gone")
	require.NoError(t, err)
	require.Zero(t, deleted)
	ids, _, err := s.Stale(ctx, -time.Hour, "", 10)
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"gone-too", "kept"}, ids)
	for n := range 45 {
		_, found := get(t, s, "gone", digest(n))
		require.False(t, found)
		_, found = get(t, s, "kept", digest(n))
		require.True(t, found)
	}
	require.NoError(t, s.Put(ctx, "gone", digest(1), []byte("again")))
	value, found := get(t, s, "gone", digest(1))
	require.True(t, found)
	require.Equal(t, "again", string(value))
}

// A value that was put is found, or was deleted as a whole; a put that fails may be repeated.
func testDeleteAtOnce(t *testing.T, open Open) {
	s, ctx := open(), t.Context()
	var group sync.WaitGroup
	group.Go(func() {
		for range 20 {
			_, _ = s.DeleteRun(ctx, "r1") // it may lose a race against a put
		}
	})
	for n := range 20 {
		group.Go(func() { _ = s.Put(ctx, "r1", digest(n), []byte("value")) })
	}
	group.Wait()
	for n := range 20 {
		if value, found := get(t, s, "r1", digest(n)); found {
			require.Equal(t, "value", string(value))
		}
	}
	require.NoError(t, s.Put(ctx, "r1", digest(1), []byte("value")))
	deleted, err := s.DeleteRun(ctx, "r1")
	require.NoError(t, err)
	require.Positive(t, deleted)
}

func testCanceled(t *testing.T, open Open) {
	s := open()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, getErr := s.Get(ctx, "r1", digest(1))
	_, _, staleErr := s.Stale(ctx, -time.Hour, "", 10)
	_, deleteErr := s.DeleteRun(ctx, "r1")
	for i, err := range []error{
		s.Put(ctx, "r1", digest(1), []byte("value")), getErr, staleErr, deleteErr, s.Writable(ctx)} {
		require.ErrorIs(t, err, context.Canceled, "operation %d", i)
	}
	require.NoError(t, s.Put(t.Context(), "r1", digest(1), []byte("value")))
	ids, _, err := s.Stale(t.Context(), -time.Hour, "", 10)
	require.NoError(t, err)
	require.True(t, slices.Equal([]string{"r1"}, ids), ids)
}
