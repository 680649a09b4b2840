package problem_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dispatch/dispatchtype"
	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/internal/dispatcher"
	"github.com/signalbox-dev/signalbox/internal/health"
	"github.com/signalbox-dev/signalbox/internal/problem"
)

// TestDispatchersOfOtherProblemsAreNone has dispatchers that do not route while another problem says so, and the same
// ones without that problem.
func TestDispatchersOfOtherProblemsAreNone(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	state := func(name string, status dispatchtype.Status, detail string, unread ...string) dispatcher.Dispatcher {
		return dispatcher.Dispatcher{Dispatcher: dispatchtype.Dispatcher{
			Name: inbox.Name{Project: name, TaskQueue: "q"}, Status: status}, Detail: detail, Unread: unread}
	}
	const unknown = "platform.shop.DISPATCHER_UNKNOWN"
	b.dispatchers = []dispatcher.Dispatcher{
		state(shop, dispatchtype.Unknown, "", "no owner", "no workers"), state("deleted", dispatchtype.Stale, "why"),
	}
	b.now = b.now.Add(15*time.Second - 1)
	require.Empty(t, b.list(admin(t), t, problem.Query{}), "the process has just started")
	b.now = b.now.Add(1)
	require.Equal(t, []string{unknown + " open"}, b.list(admin(t), t, problem.Query{}), "a deleted project has none")
	require.Equal(t, "no owner; no workers", b.get(t, unknown).Detail)

	for dependency, hidden := range map[string]bool{"leases": true, "store": false} {
		b.now = b.now.Add(time.Minute)
		b.report = health.Report{Dependencies: []health.DependencyState{{Name: dependency, State: health.Down}}}
		listed := slices.Contains(b.list(admin(t), t, problem.Query{}), unknown+" open")
		require.Equal(t, !hidden, listed, "%s is down", dependency)
	}

	// A stuck run says that the project has no worker. A failed run of it, or a stuck run of another project, does not.
	const idle = "platform.bank.DISPATCHER_NO_WORKERS"
	b.now, b.report = b.now.Add(time.Minute), health.Report{}
	b.dispatchers = []dispatcher.Dispatcher{state("bank", dispatchtype.NoWorkers, "why", "no heartbeat")}
	b.insert(t, "open", "bank")
	b.stick(t, "s1", shop)
	b.fail(t, "f1", "bank", "no answer")
	require.Contains(t, b.list(admin(t), t, problem.Query{}), idle+" open")
	require.Equal(t, "why", b.get(t, idle).Detail)
	b.stick(t, "s2", "bank")
	require.NotContains(t, b.list(admin(t), t, problem.Query{}), idle+" open")
}
