// Package projects measures what projects in which nothing happens cost a server, and how soon a parked one executes a
// run again.
package projects

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"sync/atomic"
	"time"

	"connectrpc.com/connect"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/test/database"
	"github.com/signalbox-dev/signalbox/test/platform"
	"github.com/signalbox-dev/signalbox/test/promise"
)

const (
	// creators is how many projects are created at a time.
	creators = 8
	// patience bounds the wait for one state of all projects.
	patience = 10 * time.Minute
	// scrapes is how often the metrics are read.
	scrapes = 10
)

// Settings of worker.park_after.
const (
	soon  = "5s"
	late  = "1h"
	never = "0s"
)

// The aims: the first is the cost of all parked projects, as a multiple of that of few; the others are for all served.
const (
	parkedAim = 2
	seriesAim = 8000
	scrapeAim = 150 * time.Millisecond
	wakeAim   = time.Second
)

// Plan sets the amount of measurement.
type Plan struct {
	// Few and Parked are numbers of projects that are parked, Served is a number between them that is not.
	Few, Served, Parked int
	// Length is how long each state is observed, after Settle.
	Settle, Length time.Duration
	Wakes          int
}

// Full is the plan for the page.
func Full() Plan {
	return Plan{
		Few: 10, Served: 200, Parked: 1000, Settle: 90 * time.Second, Length: time.Minute, Wakes: 30,
	}
}

// Short is the plan for a quick check.
func Short() Plan {
	return Plan{Few: 2, Served: 4, Parked: 8, Settle: time.Second, Length: 3 * time.Second, Wakes: 2}
}

// cost is what a server used in a minute.
type cost struct {
	state string
	// The first ones are per minute: seconds of processor time of the server and of Temporal, requests to Temporal,
	// transactions of Postgres, commands of Redis. Memory is in MB.
	cpu, temporalCPU, temporal, postgres, redis float64
	memory, series                              float64
	scrape                                      time.Duration
}

// Report has all measurements.
type Report struct {
	plan                Plan
	few, served, parked cost
	wakes               promise.Times
}

// environment is a platform whose server is started anew for each measurement, so that it holds nothing from the
// creation of the projects.
type environment struct {
	plan     Plan
	options  platform.ServerOptions
	temporal *platform.Temporal
	redis    *database.Redis
	session  *database.Session
	created  atomic.Int64
}

// Measure executes a plan. It calls progress with the name of each part that begins. Without Postgres and Redis it
// returns an empty report.
func Measure(t platform.T, p Plan, progress func(string)) Report {
	if !platform.HasPostgres() || !platform.HasRedis() {
		return Report{}
	}
	scope := platform.NewScope(t.Context(), t.Name())
	defer scope.Close()
	e := &environment{
		plan: p, temporal: platform.StartTemporal(scope),
		redis: database.StartRedis(scope, func(args ...any) { scope.Fatalf("%s", fmt.Sprint(args...)) }),
	}
	e.options = platform.ServerOptions{
		Temporal: e.temporal.Address, Store: platform.Postgres(scope), Redis: e.redis.URL(),
	}
	e.session = database.Connect(scope, e.options.Store.DSN)
	e.created.Store(1) // the project default

	progress(fmt.Sprintf("%d parked projects", p.Few))
	e.park(scope, p.Few)
	r := Report{plan: p, few: e.observe(scope, late, fmt.Sprintf("%d, parked", p.Few))}
	progress(fmt.Sprintf("%d projects that are served", p.Served))
	e.park(scope, p.Served)
	r.served = e.observe(scope, never, fmt.Sprintf("%d, served", p.Served))
	progress(fmt.Sprintf("%d parked projects", p.Parked))
	e.park(scope, p.Parked)
	r.parked = e.observe(scope, late, fmt.Sprintf("%d, parked", p.Parked))
	progress("parked projects that are woken")
	r.wakes = e.wake(scope)
	return r
}

// during runs use with a server that parks projects after an idle time.
func (e *environment) during(t platform.T, after string, use func(platform.T, *platform.Server)) {
	scope := platform.NewScope(t.Context(), t.Name())
	defer scope.Close()
	o := e.options
	o.Env = []string{"SIGNALBOX_WORKER_PARK_AFTER=" + after}
	use(scope, platform.StartServer(scope, o))
}

// park creates projects, each with a workflow, until there are as many, and waits until all are parked.
func (e *environment) park(t platform.T, projects int) {
	e.during(t, soon, func(t platform.T, s *platform.Server) {
		create := func() error {
			name := project(int(e.created.Add(1)))
			_, err := s.Projects.CreateProject(t.Context(), connect.NewRequest(&signalboxv1.CreateProjectRequest{Name: name}))
			if err != nil {
				return err
			}
			_, err = s.Workflows.PublishWorkflow(t.Context(), connect.NewRequest(&signalboxv1.PublishWorkflowRequest{
				Project: name, Source: document,
			}))
			return err
		}
		if err := platform.Concurrently(projects-int(e.created.Load()), creators, create); err != nil {
			t.Fatalf("create projects: %v", err)
		}
		e.await(t, "parked_at IS NULL")
	})
}

// document is the workflow of each project.
const document = `document: {dsl: '1.0.3', namespace: bench, name: one, version: '1.0.0'}
schedule: {on: {one: {with: {type: wake}}}}
do:
  - note: {set: {noted: true}}
`

func project(i int) string { return fmt.Sprintf("project-%d", i) }

// await waits until no project satisfies a condition.
func (e *environment) await(t platform.T, condition string) {
	platform.Eventually(t, patience, func() string {
		if left := e.read(t, "SELECT COUNT(*) FROM projects WHERE "+condition); left > 0 {
			return fmt.Sprintf("%s is true of %.0f projects", condition, left)
		}
		return ""
	})
}

// read reads one number from the database.
func (e *environment) read(t platform.T, query string) (n float64) {
	if err := e.session.QueryRow(t.Context(), query).Scan(&n); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return n
}

// observe starts a server on the projects, and returns what it uses while nothing happens.
func (e *environment) observe(t platform.T, after, state string) (c cost) {
	e.during(t, after, func(t platform.T, s *platform.Server) {
		if after == never {
			e.await(t, "parked_at IS NOT NULL")
		}
		pause(t, e.plan.Settle)
		before, began := e.counters(t, s), time.Now()
		pause(t, e.plan.Length)
		c = e.counters(t, s).minus(before, time.Since(began).Minutes())
		c.state, c.memory = state, s.Memory(t)
		var took promise.Times
		for range scrapes {
			began := time.Now()
			page := metrics(t, s)
			took = append(took, time.Since(began))
			c.series = float64(len(series.FindAllString(page, -1)))
		}
		c.scrape = took.At(.5)
	})
	return c
}

// counters returns what the server has used so far.
func (e *environment) counters(t platform.T, s *platform.Server) cost {
	c := cost{
		cpu: s.CPU(t).Seconds(), temporalCPU: e.temporal.CPU(t).Seconds(),
		// Sessions publish their statistics about once per second.
		postgres: e.read(t, "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = current_database()"),
	}
	for _, found := range requests.FindAllStringSubmatch(metrics(t, s), -1) {
		c.temporal += number(t, found[1])
	}
	info, err := e.redis.Client.Info(t.Context(), "commandstats").Result()
	if err != nil {
		t.Fatalf("read the statistics of Redis: %v", err)
	}
	for _, found := range commands.FindAllStringSubmatch(info, -1) {
		c.redis += number(t, found[1])
	}
	return c
}

var (
	series   = regexp.MustCompile(`(?m)^[a-z]`)
	requests = regexp.MustCompile(`(?m)^temporal_(?:long_)?request_total\{.*\} (\S+)$`)
	commands = regexp.MustCompile(`cmdstat_[^:]+:calls=(\d+)`)
)

func metrics(t platform.T, s *platform.Server) string {
	_, page, err := s.Get(t.Context(), "/metrics")
	if err != nil {
		t.Fatalf("read the metrics: %v", err)
	}
	return page
}

func number(t platform.T, text string) float64 {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatalf("read a statistic: %v", err)
	}
	return n
}

// minus returns what was used per minute since an earlier moment.
func (c cost) minus(before cost, minutes float64) cost {
	return cost{
		cpu: (c.cpu - before.cpu) / minutes, temporalCPU: (c.temporalCPU - before.temporalCPU) / minutes,
		temporal: (c.temporal - before.temporal) / minutes, postgres: (c.postgres - before.postgres) / minutes,
		redis: (c.redis - before.redis) / minutes,
	}
}

// pause lets time pass.
func pause(t platform.T, length time.Duration) {
	platform.Throughout(t, length, func() string { return "" })
}

// wake starts a run in one parked project after the other, half of them by an event, and returns the times from the
// request to the end of the run.
func (e *environment) wake(t platform.T) (took promise.Times) {
	e.during(t, late, func(t platform.T, s *platform.Server) {
		pause(t, e.plan.Settle)
		for i := range e.plan.Wakes {
			name, began := project(2+i), time.Now()
			if err := begin(t.Context(), s, name, i%2 == 0); err != nil {
				t.Fatalf("begin a run in %s: %v", name, err)
			}
			platform.Eventually(t, patience, func() string {
				res, err := s.Runs.ListRuns(t.Context(), connect.NewRequest(&signalboxv1.ListRunsRequest{
					Project: name, Filter: &signalboxv1.RunFilter{Statuses: []string{"completed"}},
				}))
				if err != nil {
					return err.Error()
				}
				for _, r := range res.Msg.GetRuns() {
					took = append(took, r.GetEndTime().AsTime().Sub(began))
					return ""
				}
				return "no run has ended in " + name
			})
		}
	})
	return took
}

// begin starts a run, by an event or by a request.
func begin(ctx context.Context, s *platform.Server, project string, event bool) error {
	if event {
		_, err := s.Events.PublishEvents(ctx, connect.NewRequest(&signalboxv1.PublishEventsRequest{
			Project: project, Events: []*signalboxv1.CloudEvent{{Id: project, Source: "/bench", Type: "wake"}},
		}))
		return err
	}
	_, err := s.Runs.StartRun(ctx, connect.NewRequest(&signalboxv1.StartRunRequest{Project: project, Workflow: "bench/one"}))
	return err
}
