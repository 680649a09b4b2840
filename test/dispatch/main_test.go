// Package dispatch_test tests the promises about dispatchers on the platform: exactly one per project, owned by one
// worker at a time, whatever happens to workers, Redis and Temporal; no event lost, none delivered twice.
package dispatch_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/test/database"
	"github.com/signalbox-dev/signalbox/test/feed"
	"github.com/signalbox-dev/signalbox/test/platform"
	"github.com/signalbox-dev/signalbox/test/promise"
	"github.com/signalbox-dev/signalbox/test/succession"
)

func TestMain(m *testing.M) {
	os.Exit(platform.MainParallel(m, 3, func(s *platform.Suite) { shared = platform.Share(s, platform.StartTemporal) }))
}

// shared is the Temporal of all tests that do not break it. Each test has a namespace of its own there.
var shared *platform.Shared[*platform.Temporal]

const (
	soon = platform.Patience

	// dispatcherID is that of the project default, on every host (P-D1).
	dispatcherID = "dispatcher-default-signalbox-default"
	ownerKey     = "dispatcher:default:signalbox-default"
)

// environment is a platform of several processes: a Redis, a server with the API alone, which is never broken,
// and workers that a test starts, stops and breaks.
type environment struct {
	*platform.Server // of the API

	client  client.Client
	redis   *database.Redis
	options platform.ServerOptions // of a worker
	workers []*worker
}

// worker is a server with the worker role. It has the API too, which returns its server ID.
type worker struct {
	*platform.Server

	id string
}

// build starts a platform with the given number of workers, and waits until its dispatcher has an owner.
func build(t *testing.T, workers int, args ...string) *environment {
	t.Helper()
	x := prepare(t, args...)
	x.open(t)
	if workers > 0 {
		x.join(t, workers)
		x.waitForOwner(t)
	}
	return x
}

// prepare makes a platform in a namespace of its own, where only Redis and Temporal run yet.
func prepare(t *testing.T, args ...string) *environment {
	t.Helper()
	x := prepareAt(t, "", args...)
	temporal, namespace := shared.Get(t), fmt.Sprintf("n%08x", rand.Uint32())
	temporal.CreateNamespace(t, namespace)
	x.options.Temporal = temporal.Address
	x.options.Args = append(x.options.Args, "--temporal-namespace", namespace)
	x.client = platform.DialNamespace(t, temporal.Address, namespace)
	return x
}

// prepareAt is prepare with a Temporal that the test may break.
func prepareAt(t *testing.T, temporal string, args ...string) *environment {
	t.Helper()
	if !platform.HasPostgres() {
		t.Skipf("%s is not set; `make test` starts a Postgres", platform.PostgresVariable)
	}
	x := &environment{redis: database.StartRedis(t, t.Skip)}
	x.options = platform.ServerOptions{Temporal: temporal, Store: platform.Postgres(t), Redis: x.redis.URL(), Args: args}
	return x
}

// open starts the API.
func (x *environment) open(t *testing.T) {
	t.Helper()
	x.Server = platform.StartServer(t, x.apiOptions())
}

func (x *environment) apiOptions() platform.ServerOptions {
	o := x.options
	o.Roles = []string{platform.API}
	return o
}

// join starts workers at once, and waits until they are ready.
func (x *environment) join(t *testing.T, n int) []*worker {
	t.Helper()
	launched := make([]*platform.Server, n)
	for i := range launched {
		launched[i] = platform.LaunchServer(t, x.options)
	}
	joined := make([]*worker, n)
	for i, s := range launched {
		s.AwaitReady(t)
		joined[i] = &worker{Server: s, id: s.ID(t)}
	}
	x.workers = append(x.workers, joined...)
	return joined
}

// forget removes a worker from the list, whatever the state of its process.
func (x *environment) forget(w *worker) {
	x.workers = slices.DeleteFunc(x.workers, func(o *worker) bool { return o == w })
}

// key returns the name of a key in Redis.
func (x *environment) key(name string) string { return platform.RedisPrefix(x.options.Store) + name }

// dispatcher reads the dispatcher from the API.
func (x *environment) dispatcher(t *testing.T) (*signalboxv1.Dispatcher, error) {
	res, err := x.Dispatchers.GetDispatcher(t.Context(),
		connect.NewRequest(&signalboxv1.GetDispatcherRequest{Project: platform.DefaultProject}))
	if err != nil {
		return nil, err
	}
	return res.Msg.GetDispatcher(), nil
}

// waitForOwner waits until a live worker owns the dispatcher and the dispatcher has recorded it, and returns that
// worker.
func (x *environment) waitForOwner(t *testing.T) *worker {
	t.Helper()
	var owner *worker
	platform.Eventually(t, soon, func() string {
		d, err := x.dispatcher(t)
		if err != nil {
			return err.Error()
		}
		owner = nil
		id := d.GetLease().GetOwner().GetServerId()
		for _, w := range x.workers {
			if w.id == id {
				owner = w
			}
		}
		switch {
		case len(d.GetErrors()) > 0:
			return fmt.Sprint(d.GetErrors())
		case d.GetLease().GetState() != "held" || owner == nil:
			return fmt.Sprintf("the lease is %s by %s", d.GetLease().GetState(), id)
		case d.GetExecution().GetOwner().GetServerId() != id:
			return fmt.Sprintf("%s has the lease, and the dispatcher has the owner %s", id,
				d.GetExecution().GetOwner().GetServerId())
		case d.GetExecution().GetOwner().GetEpoch() != d.GetProgress().GetOwner().GetEpoch():
			return fmt.Sprintf("the dispatcher has epoch %d, and the inbox %d", d.GetExecution().GetOwner().GetEpoch(),
				d.GetProgress().GetOwner().GetEpoch())
		}
		return ""
	})
	return owner
}

// waitForSuccessor waits until another worker owns the dispatcher, and returns it and the time that took.
func (x *environment) waitForSuccessor(t *testing.T, old *worker) (*worker, time.Duration) {
	t.Helper()
	began := time.Now()
	var owner *worker
	platform.Eventually(t, soon, func() string {
		if owner = x.waitForOwner(t); owner == old {
			return fmt.Sprintf("%s still owns the dispatcher", old.id)
		}
		return ""
	})
	return owner, time.Since(began)
}

// executions returns the dispatcher's executions so far, and requires that they violate no rule.
func (x *environment) executions(t *testing.T) []succession.Execution {
	t.Helper()
	line := succession.ReadAll(t, x.client)
	succession.Judge(t, line)
	for _, e := range line {
		require.Equal(t, dispatcherID, e.ID)
	}
	return line
}

// history returns the platform's own record of owners, oldest first, and requires that it agrees with Temporal's.
func (x *environment) history(t *testing.T, line []succession.Execution) []*signalboxv1.OwnerChange {
	t.Helper()
	var changes []*signalboxv1.OwnerChange
	platform.Eventually(t, soon, func() string {
		d, err := x.dispatcher(t)
		if err != nil {
			return err.Error()
		}
		changes = slices.Clone(d.GetOwners())
		slices.Reverse(changes)
		newest := line[len(line)-1].Owner()
		if len(changes) == 0 || changes[len(changes)-1].GetOwner().GetEpoch() < newest.Epoch {
			return fmt.Sprintf("the history of owners ends with %v, and the dispatcher has %v", changes, newest)
		}
		return ""
	})
	byRun := map[string]succession.Execution{}
	for _, e := range line {
		byRun[e.RunID] = e
	}
	var epoch int64
	for _, c := range changes {
		require.Greater(t, c.GetOwner().GetEpoch(), epoch, "%v", changes)
		epoch = c.GetOwner().GetEpoch()
		require.Contains(t, byRun, c.GetRunId(), "%v", c)
		ended := c.GetEndedRunId()
		require.Equal(t, c.GetHow() == "takeover", ended != "", "%v", c)
		if ended != "" {
			require.Contains(t, byRun, ended, "%v", c)
			require.False(t, byRun[ended].Close.After(byRun[c.GetRunId()].Start), "%s was to end before %s began", ended,
				c.GetRunId())
		}
	}
	return changes
}

// wanted is the number of events per second that start a run and wake one, in tests that do not measure the load.
const wanted = 4

// traffic is a feed of which every event starts a run and wakes another, beside a feed of events without a target.
type traffic struct {
	*feed.Feed

	noise    *feed.Feed // nil: none
	starts   string     // the workflow of the runs that are started
	collects string     // the workflow of the runs that are woken
	wakes    []string
}

// startTraffic starts events. Without a worker there is no run to wake.
func (x *environment) startTraffic(t *testing.T) *traffic {
	t.Helper()
	return x.startTrafficAt(t, wanted, 0)
}

// startTrafficAt starts the given numbers of wanted and unwanted events per second.
func (x *environment) startTrafficAt(t *testing.T, wanted, unwanted int) *traffic {
	t.Helper()
	f := &traffic{}
	kind := fmt.Sprintf("io.example.%x", time.Now().UnixNano())
	f.starts = x.Publish(t, feed.Starter("starts", kind))
	if len(x.workers) > 0 {
		f.collects = x.Publish(t, feed.Collector("collects", kind))
		f.wakes = []string{x.Start(t, f.collects, "").GetId()}
		x.Await(t, f.wakes[0], soon, "waiting")
	}
	servers := []*platform.Server{x.Server}
	f.Feed = feed.Start(t, feed.Options{Type: kind, PerSecond: wanted, Servers: servers})
	if unwanted > 0 {
		f.noise = feed.Start(t, feed.Options{Type: kind + ".unwanted", PerSecond: unwanted, Servers: servers})
	}
	return f
}

// verify stops the traffic and requires that every event has started one run, and woken the other in order.
func (f *traffic) verify(t *testing.T, x *environment) feed.Verdict {
	t.Helper()
	f.Stop(t)
	if f.noise != nil {
		f.noise.Stop(t)
	}
	end := feed.New(feed.Options{Type: f.Type + ".end", Servers: []*platform.Server{x.Server}})
	require.Len(t, end.Send(t.Context(), 0, 1), 1)
	return feed.Judge(t, feed.Evidence{Feed: f.Feed, Server: x.Server, Starts: []string{f.starts}, Wakes: f.wakes,
		Limit: promise.Length(soon, 15*time.Minute)})
}

// longestWait returns the longest time that an event waited for its run.
func longestWait(v feed.Verdict) time.Duration { return promise.Times(v.Latency).Worst() }

// waitFor waits for the duration of an outage.
func waitFor(t *testing.T, d time.Duration) {
	t.Helper()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-t.Context().Done():
	}
}
