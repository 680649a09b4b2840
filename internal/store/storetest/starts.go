package storetest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/quota"
	"github.com/signalbox-dev/signalbox/internal/run"
)

// testStartsAtOnce starts many runs at once, some of which cannot be inserted: each call has its own outcome.
func testStartsAtOnce(t *testing.T, open Opener) {
	for _, limit := range []int64{0, 7} {
		t.Run(fmt.Sprint("limit ", limit), func(t *testing.T) { startAtOnce(t, open(t), limit) })
	}
}

func startAtOnce(t *testing.T, s Store, limit int64) {
	t.Helper()
	const plain, each = 30, 4
	ctx := t.Context()
	name := func(kind string, i int) string { return fmt.Sprintf("%s-%d-%02d", kind, limit, i) }
	if limit > 0 {
		setQuota(t, s, quota.Quota{ConcurrentRuns: limit + plain + 3}) // the runs that were started without a limit
	} else {
		insert(t, s, newRun("earlier", 1))
		insert(t, s, newRun("parent", 1))
		_, err := s.MarkCancelRequested(ctx, here, "parent", "enough", entry(audit.RunCancel, here, "parent"))
		require.NoError(t, err)
	}
	canceled, cancel := context.WithCancel(ctx)
	cancel()
	type outcome struct {
		run  run.Run
		made bool
		err  error
	}
	var callers sync.WaitGroup
	var mu sync.Mutex
	outcomes := map[string]outcome{}
	call := func(ctx context.Context, r run.Run) {
		callers.Go(func() {
			stored, made, err := s.InsertRun(ctx, r, entry(audit.RunStart, r.Project, r.ID))
			mu.Lock()
			defer mu.Unlock()
			outcomes[r.ID+" "+r.RequestID] = outcome{stored, made, err}
		})
	}
	for i := range plain {
		r := newRun(name("plain", i), i)
		r.Labels = map[string]string{"number": fmt.Sprint(i), "quote": `"'` + "\u00e9"}
		call(ctx, r)
	}
	for i := range each {
		duplicate := newRun(name("duplicate", i), i)
		duplicate.RequestID = "request-earlier"
		call(ctx, duplicate)
		rival := newRun(name("rival", i), i)
		rival.RequestID = name("rivals", 0)
		call(ctx, rival)
		conflict := newRun("earlier", i)
		conflict.RequestID = name("conflict", i)
		call(ctx, conflict)
		child := newRun(name("child", i), i)
		child.Trigger, child.Parent = run.TriggerParent, run.Parent{RunID: "parent", Path: "/do/0/a", Depth: 1}
		call(ctx, child)
		lost := newRun(name("lost", i), i)
		lost.Project = "none"
		call(ctx, lost)
		call(canceled, newRun(name("canceled", i), i))
		odd := newRun(name("odd", i), i)
		odd.Input = []byte("\"\x00\"")
		call(ctx, odd)
	}
	callers.Wait()
	var placed, queued, rivals int
	positions := map[int64]bool{}
	for key, o := range outcomes {
		id, _, _ := strings.Cut(key, " ")
		switch kind, _, _ := strings.Cut(key, "-"); kind {
		case "plain", "rival":
			require.NoError(t, o.err, key)
			if kind == "rival" {
				require.Contains(t, o.run.ID, "rival")
				if !o.made {
					continue
				}
				rivals++
			}
			require.True(t, o.made, key)
			require.Equal(t, id, o.run.ID)
			if o.run.QueuedReason == run.QueuedAdmission {
				queued++
				positions[o.run.QueuePosition] = true
			} else {
				placed++
			}
			require.Len(t, audited(t, s, id), 1, key)
			read := get(t, s, id)
			require.Equal(t, o.run.Labels, read.Labels, key)
			require.Equal(t, o.run.QueuedReason, read.QueuedReason, key)
		case "duplicate":
			require.NoError(t, o.err, key)
			require.False(t, o.made)
			require.Equal(t, "earlier", o.run.ID)
		case "child":
			require.ErrorIs(t, o.err, run.ErrAncestorCanceled, key)
		case "lost":
			requireError(t, o.err, apperror.NotFound, apperror.ProjectNotFound, "none")
		case "canceled":
			require.ErrorIs(t, o.err, context.Canceled, key)
			_, err := s.GetRun(ctx, here, id)
			require.True(t, apperror.Is(err, apperror.RunNotFound), key)
		case "odd":
			require.True(t, apperror.Is(o.err, apperror.InvalidArgument), key)
		default:
			require.Contains(t, key, "earlier conflict")
			require.Error(t, o.err, key)
			require.NotErrorIs(t, o.err, context.Canceled)
		}
		if o.err != nil || !o.made {
			require.Len(t, audited(t, s, id), map[bool]int{true: 1}[id == "earlier"], key)
		}
	}
	require.Equal(t, 1, rivals)
	if limit == 0 {
		require.Equal(t, plain+1, placed)
		return
	}
	require.EqualValues(t, limit, placed)
	require.Len(t, positions, queued, "each has its own position")
	for position := range positions {
		require.LessOrEqual(t, position, int64(queued))
	}
}
