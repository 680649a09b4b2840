package dispatch_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/conn/conntest"
	"github.com/signalbox-dev/signalbox/test/counter"
	"github.com/signalbox-dev/signalbox/test/feed"
	"github.com/signalbox-dev/signalbox/test/platform"
	"github.com/signalbox-dev/signalbox/test/promise"
	"github.com/signalbox-dev/signalbox/test/succession"
)

// Temporal is down while all servers start: events are accepted, and delivered once it is up.
func TestStartWithoutTemporal(t *testing.T) {
	t.Parallel()
	temporal := platform.ReserveTemporal(t)
	x := prepareAt(t, temporal.Address)
	x.Server = platform.LaunchServer(t, x.apiOptions())
	x.AwaitAPI(t)
	workers := []*platform.Server{platform.LaunchServer(t, x.options), platform.LaunchServer(t, x.options)}
	f := x.startTraffic(t)
	waitFor(t, promise.Length(5*time.Second, time.Minute))
	require.NotEmpty(t, f.Accepted(), "events are accepted without Temporal")
	temporal.Restart(t)
	began := time.Now()
	x.client = platform.DialTemporal(t, temporal.Address)
	for _, s := range workers {
		s.AwaitReady(t)
		x.workers = append(x.workers, &worker{Server: s, id: s.ID(t)})
	}
	x.waitForOwner(t)
	took := time.Since(began)
	f.verify(t, x)
	line := x.executions(t)
	require.Len(t, line, 1)
	x.history(t, line)
	promise.Record(t, promise.Figure{Promise: "P-D4", What: "Temporal away at boot, under events: from its return until " +
		"the dispatcher had an owner", Trials: 1, Aim: "none lost, none twice", Figure: promise.Times{took}.String()})
}

// Temporal crashes under load and is restarted after a while.
func TestNoEventIsLostAcrossTemporalCrash(t *testing.T) {
	t.Parallel()
	temporal := platform.StartTemporal(t)
	x := prepareAt(t, temporal.Address)
	x.client = platform.DialTemporal(t, temporal.Address)
	x.open(t)
	x.join(t, 2)
	x.waitForOwner(t)
	f := x.startTraffic(t)
	for range promise.Trials(1, 10) {
		waitFor(t, time.Second)
		temporal.Kill()
		waitFor(t, promise.Length(3*time.Second, 30*time.Second))
		temporal = temporal.Restart(t)
		x.waitForOwner(t)
	}
	v := f.verify(t, x)
	line := x.executions(t)
	require.Zero(t, succession.Terminated(line))
	promise.Record(t, promise.Figure{Promise: "P-D4", What: "Temporal killed and started again, under events; the " +
		"longest that one waited", Trials: promise.Trials(1, 10),
		Aim: "none lost, none twice", Figure: f.String() + "; " + promise.Times{longestWait(v)}.String()})
}

// Thousands of events arrive in one burst, while the owner changes. The history of the dispatcher does not grow with
// them.
func TestBurstDuringHandover(t *testing.T) {
	t.Parallel()
	x := build(t, 2)
	const batch = 500
	all, kept := 5000, promise.Trials(500, 5000) // how many one run is woken with: it takes them one after another
	kind := "io.example.burst"
	f := feed.New(feed.Options{Type: kind, Servers: []*platform.Server{x.Server}})
	others := feed.New(feed.Options{Type: kind + ".others", Servers: []*platform.Server{x.Server}})
	run := x.Start(t, x.Publish(t, feed.Collector("collects", kind)), "")
	x.Await(t, run.GetId(), soon, "waiting")
	var starts []string
	if promise.Full() {
		starts = []string{x.Publish(t, feed.Starter("starts", kind))}
	}
	began := time.Now()
	for n := 0; n < all; n += batch {
		to := others
		if n < kept {
			to = f
		}
		require.Len(t, to.Send(t.Context(), n, batch), batch)
	}
	accepted := time.Since(began)
	r := x.CLI(t, "dispatcher", "handover", platform.DefaultProject, "--reason", "burst")
	require.Zero(t, r.Code, r)
	end := feed.New(feed.Options{Type: kind + ".end", Servers: []*platform.Server{x.Server}})
	end.Send(t.Context(), 0, 1)
	feed.Judge(t, feed.Evidence{
		Feed: f, Server: x.Server, Starts: starts, Wakes: []string{run.GetId()}, Limit: 5 * time.Minute})
	took := time.Since(began)
	line := x.executions(t)
	require.Zero(t, succession.Terminated(line))
	for _, e := range line {
		require.Less(t, e.Events, 200, "the history of a dispatcher does not grow with events")
	}
	promise.Record(t, promise.Figure{Promise: "P-D4", What: fmt.Sprintf("a burst of %d events, %d of them for one run, "+
		"with a handover in the middle: until accepted; until all were delivered", all, kept), Trials: all,
		Aim: "none lost, none twice", Figure: promise.Round(accepted).String() + "; " + promise.Round(took).String()})
}

// Temporal serves all requests but one kind. Operators see which, and Temporal's answer, in the commands that the
// runbooks name.
func TestRefusedRequestsAreNamed(t *testing.T) {
	t.Parallel()
	x := prepare(t)
	f := conntest.Run(t, conntest.Options{Upstream: x.options.Temporal})
	x.options.Temporal = f.Addr()
	x.open(t)
	x.join(t, 1)
	x.waitForOwner(t)

	t.Run("lists", func(t *testing.T) {
		f.Fail("ListWorkflowExecutions", serviceerror.NewInternal("visibility store"))
		defer f.Clear("ListWorkflowExecutions")
		_, err := x.Dispatchers.ReconcileDispatchers(t.Context(),
			connect.NewRequest(&signalboxv1.ReconcileDispatchersRequest{DryRun: true}))
		reason, code := platform.Reason(err)
		require.Equal(t, []any{"ENGINE_LIST_FAILED", connect.CodeUnavailable}, []any{reason, code})
		r := x.CLI(t, "dispatcher", "reconcile", "--dry-run")
		require.Equal(t, platform.ExitUnavailable, r.Code, r)
		require.Contains(t, r.Stderr, "temporal did not list the open dispatchers: visibility store")
		r = x.CLI(t, "dispatcher", "list")
		require.Contains(t, r.Stdout+r.Stderr,
			"Temporal does not answer the list of open dispatchers, which its visibility store serves")
		f.Clear("ListWorkflowExecutions")
		r = x.CLI(t, "dispatcher", "reconcile", "--dry-run")
		require.Equal(t, platform.ExitOK, r.Code, r)
	})
	t.Run("signals", func(t *testing.T) {
		kind := "io.example.refused"
		run := x.Start(t, x.Publish(t, feed.Collector("collects", kind)), "")
		x.Await(t, run.GetId(), soon, "waiting")
		sent := 0
		send := func(source string) {
			sent++
			require.Equal(t, platform.ExitOK,
				x.CLI(t, "event", "send", "--type", kind, "--source", source, "--id", strconv.Itoa(sent)).Code)
		}
		platform.Eventually(t, soon, func() string {
			list := x.CLI(t, "event", "list", "--retrying")
			if !strings.Contains(list.Stdout, "/refused") {
				// A parked dispatcher needs a signal, too: an event that is delivered keeps it awake for a while.
				f.Clear()
				send("/earlier")
				platform.Eventually(t, soon, func() string {
					event := x.CLI(t, "event", "show", strconv.Itoa(sent))
					if !strings.Contains(event.Stdout, "done") {
						return event.String()
					}
					return ""
				})
				f.Fail("SignalWorkflowExecution", serviceerror.NewPermissionDenied("signals are not allowed", ""))
				send("/refused")
				return list.String()
			}
			event := x.CLI(t, "event", "show", strconv.Itoa(sent))
			lag, _, err := counter.Metric(t.Context(), x.Server, "dispatcher_inbox_lag_seconds", `project="default"`)
			switch {
			case err != nil:
				return err.Error()
			case !strings.Contains(event.Stdout, "signals are not allowed"):
				return event.String()
			case lag < 3:
				return fmt.Sprintf("the lag is %v: a delivery that is retried waits", lag)
			}
			return ""
		})
		require.NotContains(t, x.CLI(t, "event", "list", "--dead").Stdout, "/refused")
		f.Clear()
		platform.Eventually(t, soon, func() string {
			lag, _, err := counter.Metric(t.Context(), x.Server, "dispatcher_inbox_lag_seconds", `project="default"`)
			if err != nil || lag > 0 {
				return fmt.Sprintf("the lag is %v: %v", lag, err)
			}
			return ""
		})
		require.NotContains(t, x.CLI(t, "event", "list", "--retrying").Stdout, "/refused")
	})
}
