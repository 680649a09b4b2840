package dispatch_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"golang.org/x/time/rate"

	"github.com/signalbox-dev/signalbox/dispatch/dispatchtype"
	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/dispatch/internal/heartbeat"
	"github.com/signalbox-dev/signalbox/dispatch/internal/overview"
	"github.com/signalbox-dev/signalbox/dispatch/internal/plan"
	"github.com/signalbox-dev/signalbox/dispatch/internal/supervisor"
	"github.com/signalbox-dev/signalbox/dispatch/internal/wire"
	"github.com/signalbox-dev/signalbox/internal/freeport"
	"github.com/signalbox-dev/signalbox/lease"
	"github.com/signalbox-dev/signalbox/lease/redislease"
)

// deadWorkers is the number of expired heartbeats, aliveWorkers that of current ones.
const (
	deadWorkers  = 10_000
	aliveWorkers = 4
)

// crowd is a separate Redis with the heartbeats of many dead and a few live workers, and the components that read them.
// The dispatchers are open, have rows in the inbox, and have owners.
type crowd struct {
	admin       *redis.Client
	store       *redislease.Store
	workers     *heartbeat.Workers
	supervisor  *supervisor.Supervisor
	sources     overview.Sources
	dispatchers []inbox.Name
	heartbeats  []lease.Entry // of the workers that live
}

// Progress implements the inbox of the supervisor and the overview.
func (c *crowd) Progress(_ context.Context, names ...inbox.Name) ([]inbox.Progress, error) {
	if len(names) == 0 {
		names = c.dispatchers
	}
	rows := make([]inbox.Progress, len(names))
	for i, name := range names {
		rows[i] = inbox.Progress{
			Name: name, Owner: inbox.Owner{Epoch: 1, Holder: "alive-0"}, SinceProgress: time.Hour, Parked: true}
	}
	return rows, nil
}

func (c *crowd) List(context.Context) ([]supervisor.Listed, error) {
	open := make([]supervisor.Listed, len(c.dispatchers))
	for i, name := range c.dispatchers {
		open[i].Execution = wire.Execution{
			WorkflowID: name.DispatcherID(), RunID: name.DispatcherID(), Type: wire.WorkflowType, TaskQueue: name.TaskQueue,
			Memo: &wire.Memo{Name: name, Owner: "alive-0", Epoch: 1, Interpreter: 1},
		}
	}
	return open, nil
}

func (c *crowd) Describe(context.Context, string, string) (*supervisor.Listed, error) {
	return nil, nil
}

func (c *crowd) State(_ context.Context, _, _ string) (dispatchtype.State, error) {
	return dispatchtype.State{Workers: []dispatchtype.RegisteredWorker{{ServerID: "alive-0"}, {ServerID: "alive-1"}}}, nil
}

func (c *crowd) Ask(context.Context, string, string) plan.Answer { return plan.Answered }

func (c *crowd) Terminate(context.Context, string, string, string) error { return nil }

func (c *crowd) Terminated(dispatchtype.Termination, error) {}

func (c *crowd) Cleaned(inbox.Name, time.Duration) {}

func (c *crowd) CleanupFailed(inbox.Name) {}

func (c *crowd) Cycled(supervisor.Cycle) {}

// newCrowd starts a Redis that ends with the test and fills it.
func newCrowd(t testing.TB, dispatchers int) *crowd {
	t.Helper()
	url := startRedis(t)
	options, err := redis.ParseURL(url)
	require.NoError(t, err)
	c := &crowd{admin: redis.NewClient(options)}
	t.Cleanup(func() { require.NoError(t, c.admin.Close()) })
	c.store, err = redislease.Open(redislease.Options{URL: url, Timeout: time.Minute})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.store.Close()) })

	timing := dispatchtype.Timing{}.WithDefaults()
	long := lease.Lifetime{TTL: time.Hour, Retention: time.Hour}
	for i := range dispatchers {
		name := inbox.Name{Project: fmt.Sprintf("p%d", i), TaskQueue: "q"}
		c.dispatchers = append(c.dispatchers, name)
		claim, err := json.Marshal(wire.Claim{ServerID: "alive-0", Epoch: 1})
		require.NoError(t, err)
		_, _, err = c.store.Acquire(t.Context(), wire.OwnerKey(name), "alive-0", claim, long)
		require.NoError(t, err)
	}
	for i := range aliveWorkers {
		server := fmt.Sprintf("alive-%d", i)
		got, _, err := c.store.Acquire(t.Context(), wire.WorkerKey(server), server, c.beat(t, server), long)
		require.NoError(t, err)
		c.heartbeats = append(c.heartbeats, got)
	}
	c.writeDeadHeartbeats(t)

	rules := plan.Rules{StaleAfter: timing.StaleAfter, Retention: timing.Retention, MaxActions: 20}
	c.workers = heartbeat.NewWorkers(c.store, time.Minute)
	c.supervisor = supervisor.New(supervisor.Options{
		ServerID: "alive-0", Leases: c.store, Inbox: c, Temporal: c, Heartbeats: c.workers.Entries, Listed: c.workers.Listed,
		Ready: func() error {
			return nil
		}, Rules: supervisor.Rules{Rules: rules, Interval: time.Minute, Confirm: time.Second},
		Guard: timing.Owner(), Pace: rate.NewLimiter(rate.Inf, 0), Record: c, Log: slog.New(slog.DiscardHandler),
	})
	c.sources = overview.Sources{Leases: c.store, Inbox: c, Temporal: c, Rules: rules}
	return c
}

func (c *crowd) beat(t testing.TB, server string) []byte {
	t.Helper()
	beat := dispatchtype.Heartbeat{
		ServerID: server, Build: "1.2.3", Interpreter: wire.Interpreter, StartedAt: time.Now(), Serves: len(c.dispatchers)}
	for _, name := range c.dispatchers {
		beat.Projects = append(beat.Projects, name.Project)
	}
	text, err := wire.EncodeHeartbeat(beat)
	require.NoError(t, err)
	return text
}

// writeDeadHeartbeats writes heartbeats that expired five minutes ago, in the layout that package redislease documents.
func (c *crowd) writeDeadHeartbeats(t testing.TB) {
	t.Helper()
	renewed := time.Now().Add(-5 * time.Minute)
	pipe := c.admin.Pipeline()
	for i := range deadWorkers {
		server := fmt.Sprintf("dead-%d", i)
		key := redislease.DefaultPrefix + wire.WorkerKey(server)
		pipe.HSet(t.Context(), key, "holder", server, "token", lease.NewToken(), "value", c.beat(t, server), "revision",
			renewed.UnixMicro(),
			"acquired", renewed.Add(-time.Minute).UnixMicro(), "renewed", renewed.UnixMicro(), "expires",
			renewed.Add(20*time.Second).UnixMicro(),
			"retention", time.Hour.Milliseconds(), "resigned", 0)
		pipe.Expire(t.Context(), key, time.Hour)
	}
	_, err := pipe.Exec(t.Context())
	require.NoError(t, err)
}

// cost is the number of commands that Redis executed, including those of scripts, the number of scripts, and the
// duration.
type cost struct {
	commands, scripts int
	took              time.Duration
}

func (c *crowd) measure(t testing.TB, do func()) cost {
	t.Helper()
	require.NoError(t, c.admin.ConfigResetStat(t.Context()).Err())
	began := time.Now()
	do()
	found := cost{took: time.Since(began)}
	stats, err := c.admin.Info(t.Context(), "commandstats").Result()
	require.NoError(t, err)
	for line := range strings.Lines(stats) {
		name, figures, ok := strings.Cut(strings.TrimSpace(line), ":calls=")
		if !ok || strings.HasPrefix(name, "cmdstat_config") || name == "cmdstat_info" {
			continue
		}
		calls, _, _ := strings.Cut(figures, ",")
		n, err := strconv.Atoi(calls)
		require.NoError(t, err)
		found.commands += n
		if name == "cmdstat_eval" || name == "cmdstat_evalsha" {
			found.scripts += n
		}
	}
	return found
}

// readers are the readers of heartbeats, by name.
func (c *crowd) readers(t testing.TB) map[string]func() {
	return map[string]func(){
		"supervisor cycle": func() {
			report, err := c.supervisor.Reconcile(t.Context(), false)
			require.NoError(t, err)
			require.Equal(t, len(c.dispatchers), report.Healthy)
		},
		"list of dispatchers": func() {
			list, err := c.sources.List(t.Context())
			require.NoError(t, err)
			require.Len(t, list, len(c.dispatchers))
			for i := range list {
				require.Equal(t, dispatchtype.Parked, list[i].Status, list[i].Reason)
			}
		},
		"list of workers": func() {
			workers, errs, err := c.sources.Workers(t.Context())
			require.NoError(t, err)
			require.Empty(t, errs)
			require.Len(t, workers, deadWorkers+aliveWorkers)
		},
		// One supervisor cycle and twelve heartbeats, after each of which the process reads those of the others.
		"minute of a process": func() {
			_, err := c.supervisor.Reconcile(t.Context(), false)
			require.NoError(t, err)
			for range 12 {
				_, err := c.store.Renew(t.Context(), c.heartbeats[0].Key, c.heartbeats[0].Token, nil,
					lease.Lifetime{TTL: time.Hour, Retention: time.Hour})
				require.NoError(t, err)
				lives, err := c.workers.Processes(t.Context())
				require.NoError(t, err)
				require.Len(t, lives, deadWorkers+aliveWorkers)
			}
		},
	}
}

// TestCostOfDeadWorkers: a list, a supervisor cycle and a minute of a process read each heartbeat once, in pages, for
// any number of dispatchers.
func TestCostOfDeadWorkers(t *testing.T) {
	t.Parallel()
	const dispatchers = 26
	c := newCrowd(t, dispatchers)
	keys := deadWorkers + aliveWorkers + dispatchers
	for name, do := range c.readers(t) {
		got := c.measure(t, do)
		t.Logf("%s: %d commands, %d of them scripts, in %s", name, got.commands, got.scripts,
			got.took.Round(time.Millisecond))
		require.Less(t, got.commands, keys+keys/10, name)
		require.Less(t, got.scripts, 20*(dispatchers+aliveWorkers), name)
	}
}

// BenchmarkDeadWorkers measures the readers.
func BenchmarkDeadWorkers(b *testing.B) {
	for _, dispatchers := range []int{1, 26, 200} {
		c := newCrowd(b, dispatchers)
		readers := c.readers(b)
		for _, name := range slices.Sorted(maps.Keys(readers)) {
			do := readers[name]
			b.Run(fmt.Sprintf("%s/dispatchers=%d", name, dispatchers), func(b *testing.B) {
				var commands, scripts int
				for b.Loop() {
					got := c.measure(b, do)
					commands, scripts = commands+got.commands, scripts+got.scripts
				}
				b.ReportMetric(float64(commands)/float64(b.N), "commands/op")
				b.ReportMetric(float64(scripts)/float64(b.N), "scripts/op")
			})
		}
	}
}

// startRedis starts a Redis for this test only, and returns its URL.
func startRedis(t testing.TB) string {
	t.Helper()
	if _, err := exec.LookPath("redis-server"); err != nil {
		t.Skip("redis-server not found; scripts/services.sh install installs it")
	}
	port, release, err := freeport.Claim(t.Context())
	require.NoError(t, err)
	t.Cleanup(release)
	server := exec.Command("redis-server", "--bind", "127.0.0.1", "--port", strconv.Itoa(port), "--dir", t.TempDir(),
		"--save", "", "--appendonly", "no")
	output, err := server.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, server.Start())
	t.Cleanup(func() {
		require.NoError(t, server.Process.Kill())
		_ = server.Wait()
	})
	lines := bufio.NewScanner(output)
	for lines.Scan() && !strings.Contains(lines.Text(), "Ready to accept connections") {
	}
	require.NoError(t, lines.Err())
	return "redis://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
}
