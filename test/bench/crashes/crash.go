package crashes

import (
	"fmt"
	"sync"
	"time"

	"connectrpc.com/connect"
	"go.temporal.io/sdk/client"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/test/platform"
	"github.com/signalbox-dev/signalbox/test/promise"
	"github.com/signalbox-dev/signalbox/test/succession"
)

const (
	healed = 2 * time.Minute
	side   = "side"
)

// crashEnvironment is a platform of several processes in which workers crash.
type crashEnvironment struct {
	options platform.ServerOptions
	server  *platform.Server // never killed
	client  client.Client
	workers map[string]*platform.Server // by their IDs
}

// repeat makes crashes in several environments in parallel, and returns how long each took to recover.
func repeat(t platform.T, p Plan, crash func(platform.T, *crashEnvironment) time.Duration) promise.Times {
	scope := platform.NewScope(t.Context(), t.Name())
	defer scope.Close()
	var mu sync.Mutex
	var times promise.Times
	var group sync.WaitGroup
	failures := make(chan error, p.Places)
	for range p.Places {
		group.Go(func() {
			failures <- platform.Try(func() {
				x := newCrashEnvironment(scope)
				for range p.Crashes {
					took := crash(scope, x)
					mu.Lock()
					times = append(times, took)
					mu.Unlock()
				}
			})
		})
	}
	group.Wait()
	for range p.Places {
		if err := <-failures; err != nil {
			t.Fatalf("%v", err)
		}
	}
	return times
}

func newCrashEnvironment(t platform.T) *crashEnvironment {
	temporal := platform.StartTemporal(t)
	x := &crashEnvironment{
		options: platform.ServerOptions{Temporal: temporal.Address, Store: platform.Postgres(t)},
		client:  platform.DialTemporal(t, temporal.Address), workers: map[string]*platform.Server{},
	}
	api := x.options
	api.Roles = []string{platform.API}
	x.server = platform.StartServer(t, api)
	if _, err := x.server.Projects.CreateProject(t.Context(),
		connect.NewRequest(&signalboxv1.CreateProjectRequest{Name: side})); err != nil {
		t.Fatalf("make a project: %v", err)
	}
	x.join(t, platform.DefaultProject)
	return x
}

// join starts a worker of a project.
func (x *crashEnvironment) join(t platform.T, project string) *platform.Server {
	o := x.options
	o.Args = append(o.Args, "--projects", project)
	s := platform.StartServer(t, o)
	x.workers[s.ID(t)] = s
	return s
}

// owner waits until a live worker other than not owns a project's dispatcher, and returns its ID and the execution.
func (x *crashEnvironment) owner(t platform.T, project, not string) (id, runID string) {
	platform.Eventually(t, healed, func() string {
		res, err := x.server.Dispatchers.GetDispatcher(t.Context(),
			connect.NewRequest(&signalboxv1.GetDispatcherRequest{Project: project}))
		if err != nil {
			return err.Error()
		}
		d := res.Msg.GetDispatcher()
		id, runID = d.GetExecution().GetOwner().GetServerId(), d.GetExecution().GetRunId()
		if d.GetLease().GetState() != "held" || d.GetLease().GetOwner().GetServerId() != id || id == not {
			return fmt.Sprintf("the dispatcher has the owner %q, and %q the lease", id, d.GetLease().GetOwner().GetServerId())
		}
		return ""
	})
	return id, runID
}

// takeover kills the owner of a dispatcher while another worker runs.
func takeover(t platform.T, x *crashEnvironment) time.Duration {
	for len(x.workers) < 2 {
		x.join(t, platform.DefaultProject)
	}
	old, _ := x.owner(t, platform.DefaultProject, "")
	began := time.Now()
	x.workers[old].Kill()
	delete(x.workers, old)
	x.owner(t, platform.DefaultProject, old)
	return time.Since(began)
}

// cleanup kills the only worker of a project.
func cleanup(t platform.T, x *crashEnvironment) time.Duration {
	s := x.join(t, side)
	id, run := x.owner(t, side, "")
	began := time.Now()
	s.Kill()
	delete(x.workers, id)
	var end time.Time
	platform.Eventually(t, healed, func() string {
		for _, e := range succession.Read(t, x.client, "dispatcher-side-signalbox-side") {
			if e.RunID == run && !e.Open() {
				end = e.Close
				return ""
			}
		}
		return "the dispatcher is open still"
	})
	return end.Sub(began)
}
