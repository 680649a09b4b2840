package dispatch_test

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/conn/conntest"
	"github.com/signalbox-dev/signalbox/test/database"
	"github.com/signalbox-dev/signalbox/test/picture"
	"github.com/signalbox-dev/signalbox/test/platform"
	"github.com/signalbox-dev/signalbox/test/promise"
)

// brokenPlatform is a platform of an API server and two workers, of which a test breaks a part.
type brokenPlatform struct {
	*environment

	temporal *platform.Temporal
	postgres *database.Postgres
	// frontend is between the servers and Temporal, for faults that need one.
	frontend *conntest.Frontend
	// run is due to continue, and cannot while no worker executes it.
	run string
	// feed publishes continuously.
	feed *traffic
	// asked are the servers that must show the fault; none: all.
	asked []*platform.Server
}

// fault is a failure and its expected effects on each server's output.
type fault struct {
	// args are for each server. behind puts a frontend between the servers and Temporal. secure does the same with client
	// certificates that end after that time.
	args   []string
	behind bool
	secure time.Duration
	breaks func(*testing.T, *brokenPlatform)
	// wrong returns an effect that a server does not show yet for a project, the default one if that is empty; "" for
	// none.
	wrong   func(*brokenPlatform, picture.Picture) string
	project string
	// always is set for the faults that `make test` tries, too.
	always bool
}

// The test breaks one part after another, and requires that all outputs of each server soon agree with each other and
// with the real state.
func TestAllViewsAgreeUnderFaults(t *testing.T) {
	t.Parallel()
	// Its outputs take longest, so it starts first.
	const slowest = "Temporal over its limits"
	all := faults()
	names := slices.DeleteFunc(slices.Collect(maps.Keys(all)), func(name string) bool { return name == slowest })
	for _, name := range append([]string{slowest}, names...) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := all[name]
			if !f.always {
				promise.OnlyFull(t.Skip, "the parts of the platform are killed or frozen, each in one way")
			}
			b := f.build(t)
			f.breaks(t, b)
			if b.asked == nil {
				b.asked = b.all()
			}
			project := cmp.Or(f.project, platform.DefaultProject)
			for _, s := range b.asked {
				picture.Await(t, soon, s, project, func(p picture.Picture) string { return f.wrong(b, p) })
			}
		})
	}
}

// all returns the servers that run.
func (b *brokenPlatform) all() []*platform.Server {
	all := []*platform.Server{b.Server}
	for _, w := range b.workers {
		all = append(all, w.Server)
	}
	return all
}

// build starts the platform, with a run that is due soon and a steady feed of events.
func (f fault) build(t *testing.T) *brokenPlatform {
	t.Helper()
	b := &brokenPlatform{temporal: platform.StartTemporal(t), postgres: database.StartPostgres(t, t.Skip)}
	b.environment = prepareAt(t, b.temporal.Address, append([]string{"--runs-stuck-after", "5s"}, f.args...)...)
	b.options.Store = b.postgres.Store()
	b.client = platform.DialTemporal(t, b.temporal.Address)
	if f.behind || f.secure > 0 {
		b.frontend = conntest.Run(t, conntest.Options{Upstream: b.temporal.Address})
		b.options.Temporal = b.frontend.Addr()
	}
	if f.secure > 0 {
		b.options.Env = certified(t, b.frontend, f.secure)
	}
	b.open(t)
	b.join(t, 2)
	b.waitForOwner(t)
	b.waitForRegistered(t, soon)
	b.run = b.Start(t, b.Publish(t, platform.Document("waits", "  - wait:\n      wait: {seconds: 10}\n")), "").GetId()
	b.Await(t, b.run, soon, "waiting")
	b.feed = b.startTraffic(t)
	return b
}

// certified makes a frontend require client certificates, and returns the environment of a server that has one.
func certified(t *testing.T, f *conntest.Frontend, lasts time.Duration) []string {
	t.Helper()
	folder := t.TempDir()
	a, err := conntest.NewAuthority()
	require.NoError(t, err)
	ca, err := a.Write(folder, "ca")
	require.NoError(t, err)
	client, err := a.Client("signalbox", time.Now().Add(lasts))
	require.NoError(t, err)
	cert, key, err := client.Write(folder, "client")
	require.NoError(t, err)
	server, err := a.Server()
	require.NoError(t, err)
	f.SetTLS(a.ServerConfig(server, true))
	return []string{"SIGNALBOX_TEMPORAL_TLS_CA_FILE=" + ca, "SIGNALBOX_TEMPORAL_TLS_CERT_FILE=" + cert,
		"SIGNALBOX_TEMPORAL_TLS_KEY_FILE=" + key}
}

// faults returns all faults, by name.
func faults() map[string]fault {
	return map[string]fault{
		"nothing": {always: true, breaks: func(*testing.T, *brokenPlatform) {},
			wrong: func(_ *brokenPlatform, p picture.Picture) string {
				switch {
				case p.Status.Connection.State != "connected", p.Ready != http.StatusOK:
					return "the platform is not healthy"
				case p.Listed.State != "routing" && p.Listed.State != "parked":
					return "the dispatcher is " + p.Listed.State
				case len(p.Status.Workers) != 2, p.WorkersIn("alive") != 2, len(p.Listed.Errors) > 0:
					return "the number of live workers is not 2"
				}
				return ""
			}},
		"Temporal killed": {always: true, breaks: func(_ *testing.T, b *brokenPlatform) {
			b.temporal.Kill()
		}, wrong: func(b *brokenPlatform, p picture.Picture) string {
			switch {
			case p.Status.Connection.State != "down" || p.Status.Connection.Kind != "unreachable":
				return fmt.Sprint(p.Status.Connection)
			case p.Listed.State != "unknown", !p.Unknown("Temporal does not answer"):
				return fmt.Sprintf("the dispatcher is %s, unknown: %v", p.Listed.State, p.Listed.Errors)
			case p.Value("dispatcher_active") != 0:
				return "dispatcher_active is not 0"
			case !p.Backlog():
				return "no backlog"
			case len(p.Status.Workers) != 2, p.WorkersIn("alive") != 2:
				return "the number of live workers is not 2"
			case p.Stuck[b.run] != "ENGINE_DISCONNECTED":
				return fmt.Sprintf("the run is stuck with %q", p.Stuck[b.run])
			case !strings.Contains(p.Log, "Temporal connection unhealthy"):
				return "the log line is missing"
			}
			return ""
		}},
		"Temporal frozen": {breaks: func(t *testing.T, b *brokenPlatform) {
			b.temporal.Freeze()
			t.Cleanup(b.temporal.Thaw)
		}, wrong: func(b *brokenPlatform, p picture.Picture) string {
			switch {
			case p.Status.Connection.State != "down" || p.Status.Connection.Kind != "hung":
				return fmt.Sprint(p.Status.Connection)
			case p.Listed.State != "unknown", !p.Unknown("Temporal does not answer"):
				return fmt.Sprintf("the dispatcher is %s, unknown: %v", p.Listed.State, p.Listed.Errors)
			case p.Value("dispatcher_active") != 0:
				return "dispatcher_active is not 0"
			case !p.Backlog():
				return "no backlog"
			case p.WorkersIn("alive") != 2:
				return "the number of live workers is not 2"
			case p.Stuck[b.run] != "ENGINE_DISCONNECTED":
				return fmt.Sprintf("the run is stuck with %q", p.Stuck[b.run])
			}
			return ""
		}},
		"the owner frozen": {breaks: func(t *testing.T, b *brokenPlatform) {
			owner := b.waitForOwner(t)
			owner.Freeze()
			t.Cleanup(owner.Thaw)
			b.forget(owner)
		}, wrong: func(b *brokenPlatform, p picture.Picture) string {
			switch {
			case p.Listed.State != "routing" && p.Listed.State != "parked":
				return "the dispatcher is " + p.Listed.State
			case p.Listed.Lease.Owner.ServerID != b.workers[0].id:
				return fmt.Sprintf("its owner is %q", p.Listed.Lease.Owner.ServerID)
			case p.Workers[b.workers[0].id] != "alive", p.WorkersIn("alive") != 1:
				return fmt.Sprint(p.Workers)
			case len(p.Status.Workers) != 1:
				return fmt.Sprintf("the live workers are %v", p.Status.Workers)
			case len(p.Stuck) > 0:
				return fmt.Sprintf("stuck runs: %v", p.Stuck)
			}
			return ""
		}},
		"its ID taken by another workflow": {breaks: func(t *testing.T, b *brokenPlatform) {
			for len(b.workers) > 0 {
				b.stop(t, b.workers[0])
			}
			require.NoError(t, b.client.TerminateWorkflow(t.Context(), dispatcherID, "", "its ID is taken next"))
			b.startForeignDispatcher(t, dispatcherID, "elsewhere", map[string]any{
				"project": "default-signalbox", "task_queue": "default", "owner": "somebody", "epoch": 7, "interpreter": 1,
			})
			b.join(t, 1)
		}, wrong: func(_ *brokenPlatform, p picture.Picture) string {
			switch {
			case p.Listed.State != "foreign":
				return "the dispatcher is " + p.Listed.State
			case p.Value("dispatcher_active") != 0:
				return "dispatcher_active is not 0"
			case !p.Backlog():
				return "no backlog"
			case p.Status.Connection.State != "connected", p.Ready != http.StatusOK:
				return "Temporal is not connected"
			}
			return ""
		}},
		"Redis killed": {always: true, breaks: func(_ *testing.T, b *brokenPlatform) {
			b.redis.Kill()
		}, wrong: func(_ *brokenPlatform, p picture.Picture) string {
			switch {
			case p.Needs["leases"] != "down", p.Ready != http.StatusOK:
				return fmt.Sprint(p.Needs)
			case p.Listed.Lease.State != "", !p.Unknown("Redis, which has the leases, does not answer"):
				return fmt.Sprintf("the lease is %q, unknown: %v", p.Listed.Lease.State, p.Listed.Errors)
			case p.WorkersIn("unknown") != 2:
				return fmt.Sprint(p.Workers)
			case len(p.Stuck) > 0:
				return fmt.Sprintf("stuck runs: %v", p.Stuck)
			case p.Value("dispatcher_active") != 0:
				return "dispatcher_active is not 0"
			}
			return ""
		}},
		"all workers killed": {always: true, breaks: func(_ *testing.T, b *brokenPlatform) {
			for _, w := range b.workers {
				w.Kill()
			}
			b.workers = nil
		}, wrong: func(b *brokenPlatform, p picture.Picture) string {
			switch {
			case p.Listed.State != "no_workers":
				return "the dispatcher is " + p.Listed.State
			case len(p.Status.Workers) > 0 || p.Status.WorkersError != "":
				return "a worker is alive"
			case p.WorkersIn("late")+p.WorkersIn("dead") != 2:
				return fmt.Sprint(p.Workers)
			case p.Stuck[b.run] != "POLLER_STALE":
				return fmt.Sprintf("the run is stuck with %q", p.Stuck[b.run])
			case !p.Backlog():
				return "no backlog"
			case p.Value("dispatcher_active") != 0:
				return "dispatcher_active is not 0 at the API"
			}
			return ""
		}},
		"all workers stopped": {breaks: func(t *testing.T, b *brokenPlatform) {
			for len(b.workers) > 0 {
				b.stop(t, b.workers[0])
			}
		}, wrong: func(b *brokenPlatform, p picture.Picture) string {
			switch {
			case p.Listed.State != "no_workers":
				return "the dispatcher is " + p.Listed.State
			case len(p.Status.Workers) > 0 || p.Status.WorkersError != "":
				return "a worker is alive"
			case p.WorkersIn("stopped") != 2:
				return fmt.Sprint(p.Workers)
			case p.Stuck[b.run] != "POLLER_STALE" && p.Stuck[b.run] != "NO_POLLER":
				return fmt.Sprintf("the run is stuck with %q", p.Stuck[b.run])
			}
			return ""
		}},
		"the database frozen": {always: true, breaks: func(t *testing.T, b *brokenPlatform) {
			b.asked = []*platform.Server{b.Server} // each answer takes as long as the servers wait for the database
			b.feed.Stop(t)
			b.postgres.Freeze()
			t.Cleanup(b.postgres.Thaw)
		}, wrong: func(_ *brokenPlatform, p picture.Picture) string {
			switch {
			case p.Needs["store"] != "down", p.Ready != http.StatusServiceUnavailable:
				return fmt.Sprint(p.Needs)
			case p.Status.WorkersError == "":
				return "the live workers are reported"
			case p.Stuck != nil, p.Shown != nil, p.Listed.Progress != nil:
				return "unreadable data is shown"
			case !p.Unknown("the database does not answer"):
				return fmt.Sprint(p.Listed.Errors)
			case p.WorkersIn("alive") != 2:
				return "Redis reports live workers"
			}
			return ""
		}},
		"a dispatcher that its owner cannot end": {behind: true, breaks: func(t *testing.T, b *brokenPlatform) {
			for len(b.workers) > 0 {
				b.stop(t, b.workers[0])
			}
			require.NoError(t, b.client.TerminateWorkflow(t.Context(), dispatcherID, "",
				"one of an older program is put in its place"))
			b.startForeignDispatcher(t, dispatcherID, "signalbox-default", nil)
			b.frontend.Fail("TerminateWorkflowExecution", serviceerror.NewPermissionDenied("not allowed", ""))
			b.join(t, 1)
		}, wrong: func(b *brokenPlatform, p picture.Picture) string {
			switch {
			case p.Listed.State != "stale", p.Value("dispatcher_stale") != 1, p.Value("dispatcher_duplicates") != 0:
				return "the dispatcher is " + p.Listed.State
			case p.Listed.Lease.Owner.ServerID != b.workers[0].id:
				return fmt.Sprintf("its owner is %q", p.Listed.Lease.Owner.ServerID)
			case !p.Backlog():
				return "no backlog"
			case p.IsWorker() != strings.Contains(p.Log, "Dispatcher could not be terminated"),
				p.IsWorker() != (p.Value("dispatcher_terminate_errors_total") > 0):
				return "the refused termination is not shown"
			}
			return ""
		}},
		"a dispatcher of an older scheme that cannot be ended": {
			behind: true, args: []string{"--supervisor-legacy-ids", "dispatcher-{project}-host-*"},
			breaks: func(t *testing.T, b *brokenPlatform) {
				b.frontend.Fail("TerminateWorkflowExecution", serviceerror.NewPermissionDenied("not allowed", ""))
				b.startForeignDispatcher(t, "dispatcher-default-host-a-4711", "signalbox-default", map[string]any{
					"project": "default", "task_queue": "signalbox-default", "owner": "host-a", "epoch": 3, "interpreter": 1,
				})
			}, wrong: func(_ *brokenPlatform, p picture.Picture) string {
				const older = `also open under an older ID: "dispatcher-default-host-a-4711"`
				switch {
				case p.Value("dispatcher_duplicates") != 1, p.Value("dispatcher_stale") != 1:
					return "no duplicate is counted"
				case !strings.Contains(p.Listed.Detail, older), !strings.Contains(p.Shown.Detail, older):
					return fmt.Sprintf("the details are %q and %q", p.Listed.Detail, p.Shown.Detail)
				case p.Listed.State != "routing" && p.Listed.State != "parked":
					return "the dispatcher is " + p.Listed.State
				}
				return ""
			},
		},
		"a connection that flaps": {behind: true, breaks: func(t *testing.T, b *brokenPlatform) {
			require.NoError(t, b.frontend.Flap(t.Context(), 2*time.Second, 2*time.Second, 4))
		}, wrong: func(_ *brokenPlatform, p picture.Picture) string {
			outages := strings.Count(p.Log, "Temporal connection unhealthy")
			switch {
			case p.Status.Connection.State != "connected", p.Ready != http.StatusOK:
				return fmt.Sprint(p.Status.Connection)
			case outages < 3 || p.Status.Connection.Statistics.Outages.String() != fmt.Sprint(outages):
				return fmt.Sprintf("the log has %d outages, and the status %s", outages, p.Status.Connection.Statistics.Outages)
			case p.WorkersIn("alive") != 2:
				return fmt.Sprint(p.Workers)
			}
			return ""
		}},
		"the breaker open": {args: []string{"--temporal-breaker-failures", "2", "--temporal-breaker-interval", "10m"},
			breaks: func(_ *testing.T, b *brokenPlatform) {
				b.temporal.Kill()
			}, wrong: func(b *brokenPlatform, p picture.Picture) string {
				switch {
				case p.Status.Connection.State != "down", p.Status.Connection.Breaker.State != "open":
					return fmt.Sprint(p.Status.Connection)
				case p.Listed.State != "unknown", !p.Unknown("Temporal does not answer"):
					return fmt.Sprintf("the dispatcher is %s, unknown: %v", p.Listed.State, p.Listed.Errors)
				case p.Stuck[b.run] != "ENGINE_DISCONNECTED":
					return fmt.Sprintf("the run is stuck with %q", p.Stuck[b.run])
				}
				return ""
			}},
		"Temporal over its limits": {behind: true, breaks: func(_ *testing.T, b *brokenPlatform) {
			// requests are retried for seconds before an answer omits Temporal's part
			b.asked = []*platform.Server{b.Server, b.workers[0].Server}
			b.frontend.Fail("", serviceerror.NewResourceExhausted(enums.RESOURCE_EXHAUSTED_CAUSE_RPS_LIMIT,
				"namespace rate limit exceeded"))
			for _, check := range []string{"DescribeNamespace", "GetSystemInfo", "/grpc.health.v1.Health/Check"} {
				b.frontend.Fail(check, nil)
			}
		}, wrong: func(_ *brokenPlatform, p picture.Picture) string {
			switch {
			case p.Status.Connection.State != "degraded", p.Status.Connection.Kind != "limited",
				p.Needs["temporal"] != "impaired":
				return fmt.Sprint(p.Status.Connection)
			case !strings.Contains(p.Status.Connection.LastError, "namespace rate limit exceeded"):
				return p.Status.Connection.LastError
			case p.Listed.State != "unknown", !p.Unknown("Temporal does not answer"):
				return fmt.Sprintf("the dispatcher is %s, unknown: %v", p.Listed.State, p.Listed.Errors)
			case !strings.Contains(p.Log, "Temporal connection degraded"):
				return "the log line is missing"
			}
			return ""
		}},
		"a client certificate that Temporal rejects": {
			secure: 30 * 24 * time.Hour, breaks: func(t *testing.T, b *brokenPlatform) {
				certified(t, b.frontend, time.Hour) // of another authority
				b.frontend.CutConnections()
			}, wrong: func(b *brokenPlatform, p picture.Picture) string {
				switch {
				case p.Status.Connection.State != "down" || p.Status.Connection.Kind != "tls_error":
					return fmt.Sprint(p.Status.Connection)
				case p.Needs["certificate"] != "up":
					return "the certificate does not end soon"
				case p.Listed.State != "unknown", !p.Unknown("Temporal does not answer"):
					return fmt.Sprintf("the dispatcher is %s, unknown: %v", p.Listed.State, p.Listed.Errors)
				case p.Stuck[b.run] != "ENGINE_DISCONNECTED":
					return fmt.Sprintf("the run is stuck with %q", p.Stuck[b.run])
				case !strings.Contains(p.Log, "tls_error"):
					return "the log line is missing"
				}
				return ""
			}},
		"a client certificate that is about to end": {
			secure: 10 * time.Minute, breaks: func(*testing.T, *brokenPlatform) {},
			wrong: func(_ *brokenPlatform, p picture.Picture) string {
				switch {
				case p.Needs["certificate"] != "impaired", p.Ready != http.StatusOK:
					return fmt.Sprint(p.Needs)
				case p.Status.Connection.State != "connected":
					return "Temporal is not connected"
				case strings.Count(p.Log, "Temporal client certificate needs to be renewed") != 1:
					return "the log line does not occur once"
				}
				return ""
			}},
		"servers at two Temporals": {breaks: func(t *testing.T, b *brokenPlatform) {
			o := b.options
			o.Temporal = platform.StartTemporal(t).Address
			b.asked = append(b.all(), platform.StartServer(t, o))
		}, wrong: func(_ *brokenPlatform, p picture.Picture) string {
			switch {
			case p.Needs["placement"] != "down", p.Ready != http.StatusOK:
				return fmt.Sprint(p.Needs)
			case p.Value("signalbox_temporal_mismatch") != 1:
				return "the metric does not show the mismatch"
			case strings.Count(p.Log, "Processes on this database use different Temporals") != 1:
				return "the log line does not occur once"
			}
			return ""
		}},
		"runs queued while Temporal is away": {
			args: []string{"--runs-queue-when-unavailable-enabled=true"}, breaks: func(t *testing.T, b *brokenPlatform) {
				workflow := b.Publish(t, platform.Document("queued", "  - greet:\n      set: {message: hello}\n"))
				b.temporal.Kill()
				picture.Await(t, soon, b.Server, platform.DefaultProject, func(p picture.Picture) string {
					if p.Status.Connection.State != "down" {
						return p.Status.Connection.State
					}
					return ""
				})
				for range 3 {
					require.Equal(t, "engine", b.Start(t, workflow, "").GetQueuedReason())
				}
			}, wrong: func(_ *brokenPlatform, p picture.Picture) string {
				waiting, err := p.Status.QueueMode.Runs.Int64()
				if err != nil {
					return fmt.Sprintf("the number of queued runs: %v", err)
				}
				if waiting < 3 { // and those that events have started meanwhile
					return fmt.Sprintf("%d runs wait", waiting)
				}
				if shown := p.Value("signalbox_queue_mode_runs"); shown != float64(waiting) {
					return fmt.Sprintf("the metric shows %v queued runs, the status %d", shown, waiting)
				}
				return ""
			}},
		"a project that no worker serves": {
			args: []string{"--projects", platform.DefaultProject}, project: "side",
			breaks: func(t *testing.T, b *brokenPlatform) {
				_, err := b.Projects.CreateProject(t.Context(), connect.NewRequest(&signalboxv1.CreateProjectRequest{Name: "side"}))
				require.NoError(t, err)
				_, err = b.Workflows.PublishWorkflow(t.Context(), connect.NewRequest(&signalboxv1.PublishWorkflowRequest{
					Project: "side", Source: platform.Document("side", "  - greet:\n      set: {message: hello}\n"),
				}))
				require.NoError(t, err)
				refused := b.CLI(t, "run", "start", "side", "--project", "side")
				require.Equal(t, platform.ExitUnavailable, refused.Code, refused)
				require.Contains(t, refused.Stderr, "NO_WORKER_FOR_PROJECT")
			}, wrong: func(_ *brokenPlatform, p picture.Picture) string {
				switch {
				case p.Listed.State != "no_workers", !strings.Contains(p.Listed.Detail, `no live worker serves project "side"`):
					return fmt.Sprintf("the dispatcher is %s: %s", p.Listed.State, p.Listed.Detail)
				case p.WorkersIn("alive") != 2:
					return "workers of other projects are alive"
				}
				return ""
			}},
		"the only worker of a project killed": {args: []string{
			"--dispatch-ttl", "5s", "--dispatch-renew", "1s", "--dispatch-heartbeat", "1s", "--dispatch-stale-after", "6s",
			"--projects", platform.DefaultProject,
		}, behind: true, project: "side", breaks: func(t *testing.T, b *brokenPlatform) {
			_, err := b.Projects.CreateProject(t.Context(), connect.NewRequest(&signalboxv1.CreateProjectRequest{Name: "side"}))
			require.NoError(t, err)
			o := b.options
			o.Args = append(slices.Clone(o.Args[:len(o.Args)-1]), "side")
			s := platform.StartServer(t, o)
			picture.Await(t, soon, b.Server, "side", func(p picture.Picture) string {
				if p.Listed.State != "routing" && p.Listed.State != "parked" {
					return "the dispatcher is " + p.Listed.State
				}
				return ""
			})
			b.frontend.Fail("TerminateWorkflowExecution", serviceerror.NewPermissionDenied("not allowed", ""))
			s.Kill()
		}, wrong: func(_ *brokenPlatform, p picture.Picture) string {
			switch {
			case p.Listed.State != "stale", p.Value("dispatcher_stale", `project="side"`) != 1:
				return fmt.Sprintf("the dispatcher is %s: %s", p.Listed.State, p.Listed.Detail)
			case len(p.Status.Workers) != 2, p.WorkersIn("alive") != 2, p.WorkersIn("late")+p.WorkersIn("dead") != 1:
				return fmt.Sprint(p.Workers)
			}
			return ""
		}},
		"the memory limit reached": {breaks: func(t *testing.T, b *brokenPlatform) {
			o := b.apiOptions()
			o.Env = append(o.Env, "GOMEMLIMIT=16MiB") // less than a server without load needs
			s := platform.LaunchServer(t, o)
			s.AwaitAPI(t)
			b.asked = []*platform.Server{s}
			platform.Eventually(t, soon, func() string {
				if refused := s.CLI(t, "run", "start", "waits"); !strings.Contains(refused.Stderr, "MEMORY_EXHAUSTED") {
					return refused.String()
				}
				return ""
			})
		}, wrong: func(_ *brokenPlatform, p picture.Picture) string {
			switch {
			case p.Needs["memory"] != "down":
				return fmt.Sprintf("memory is %q", p.Needs["memory"])
			case p.Value("signalbox_memory_used_bytes") < .8*p.Value("signalbox_memory_limit_bytes"):
				return "memory is not exhausted"
			}
			return ""
		}},
	}
}
