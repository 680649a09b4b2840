package storetest

import (
	"bytes"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/store/payloads"
)

func testPayloads(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	require.NoError(t, s.Payloads().Writable(ctx))
	large := bytes.Repeat([]byte{0, 1, 0xff}, 5<<20)
	require.NoError(t, s.Payloads().Put(ctx, "r1", "d1", large))
	require.NoError(t, s.Payloads().Put(ctx, "r1", "d2", []byte{}))
	require.NoError(t, s.Payloads().Put(ctx, "r1", "d1", []byte("another")), "the same digest is the same value")

	// Another process, or the same one after a restart, reads the stored values.
	for _, again := range []Store{s, open(t)} {
		value, found, err := again.Payloads().Get(ctx, "r1", "d1")
		require.NoError(t, err)
		require.True(t, found)
		require.True(t, bytes.Equal(large, value))
		value, found, err = again.Payloads().Get(ctx, "r1", "d2")
		require.NoError(t, err)
		require.True(t, found)
		require.Empty(t, value)
	}
	for _, missing := range [][2]string{{"r1", "d3"}, {"r2", "d1"}} {
		_, found, err := s.Payloads().Get(ctx, missing[0], missing[1])
		require.NoError(t, err)
		require.False(t, found, "a value belongs to its run")
	}

	require.NoError(t, s.Payloads().Put(ctx, "r1", "most", make([]byte, payloads.MaxBytes)))
	require.ErrorContains(t, s.Payloads().Put(ctx, "r1", "more", make([]byte, payloads.MaxBytes+1)), "more than the limit of 25165824")
	_, found, err := s.Payloads().Get(ctx, "r1", "more")
	require.NoError(t, err)
	require.False(t, found)
}

func testPayloadsAtOnce(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	var group sync.WaitGroup
	failures := make(chan error, 40)
	for n := range 40 {
		group.Go(func() {
			failures <- s.Payloads().Put(ctx, "r1", fmt.Sprint("d", n%4), bytes.Repeat([]byte{byte(n % 4)}, 20_000))
		})
	}
	group.Wait()
	close(failures)
	for err := range failures {
		require.NoError(t, err)
	}
	for n := range 4 {
		value, found, err := s.Payloads().Get(ctx, "r1", fmt.Sprint("d", n))
		require.NoError(t, err)
		require.True(t, found)
		require.Equal(t, bytes.Repeat([]byte{byte(n)}, 20_000), value)
	}
}

func testPayloadsWithoutARun(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	insert(t, s, newRun("with-row", 1))
	count := func(id string) (n int) {
		for i := range 45 {
			_, found, err := s.Payloads().Get(ctx, id, fmt.Sprint(i))
			require.NoError(t, err)
			if found {
				n++
			}
		}
		return n
	}
	for i := range 45 {
		for _, id := range []string{"gone-1", "gone-2", "with-row"} {
			require.NoError(t, s.Payloads().Put(ctx, id, fmt.Sprint(i), []byte("value")))
		}
	}
	deleted, next, err := s.DeleteOrphans(ctx, time.Hour, "", 100)
	require.NoError(t, err)
	require.Zero(t, deleted, "they are too young: their row may be written yet")
	require.Empty(t, next)

	// A page of two runs, then the rest. With a negative age, values of the future are included.
	deleted, next, err = s.DeleteOrphans(ctx, -time.Hour, "", 2)
	require.NoError(t, err)
	require.EqualValues(t, 90, deleted)
	require.Equal(t, "gone-2", next)
	deleted, next, err = s.DeleteOrphans(ctx, -time.Hour, next, 2)
	require.NoError(t, err)
	require.Zero(t, deleted)
	require.Empty(t, next)
	require.Zero(t, count("gone-1")+count("gone-2"))
	require.Equal(t, 45, count("with-row"), "a run that has a row keeps its values")
}
