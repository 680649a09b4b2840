package chaos_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/test/database"
	"github.com/signalbox-dev/signalbox/test/load"
	"github.com/signalbox-dev/signalbox/test/origin"
	"github.com/signalbox-dev/signalbox/test/platform"
)

const (
	// restoreEvery is the interval of the starts of the most frequent workflow, where ages are simulated.
	restoreEvery = 250 * time.Millisecond
	// most bounds the starts of one load, for schedules in real time.
	most = 400
	// before is how long the load lasts before the oldest backup, and again after the restore.
	before = 3 * time.Second
	// checkLimit is how long it may take until the check is complete, and then until no run is open that should not be.
	checkLimit = 3 * time.Minute
	// large is the length of values that Temporal has a reference to, in place of the value.
	large = 20 << 10
)

// answer is the type of the events that runs wait for.
const answer = "io.example.chaos.restored"

const callOnce = "  - ask:\n      call: http\n      with: {method: post, endpoint: 'ORIGIN/calls', body: {key: '${ " +
	"$workflow.input.key }'}}\n"

const awaitAnswer = "  - hear:\n      listen: {to: {one: {with: {type: " + answer +
	"}, correlate: {key: {from: .data.key, expect: '${ $workflow.input.key }'}}}}}\n"

// Names of the workflows.
const (
	short  = "short"  // calls the origin
	waits  = "waits"  // calls the origin and waits for an event
	values = "values" // has a large input, gets a large value from the origin, waits for an event and needs both
	late   = "late"   // as short; published after the backup of the database
)

// tasks returns the tasks of a workflow.
func tasks(name, origin string) string {
	text := callOnce
	switch name {
	case waits:
		text += awaitAnswer
	case values:
		text += "  - fetch: {call: http, with: {method: get, endpoint: 'ORIGIN/large'}, export: {as: '${ {fetched: .} " +
			"}'}}\n" + awaitAnswer +
			"  - sum: {set: '${ {given: ($workflow.input.v | length), fetched: ($context.fetched | length)} }'}\n"
	}
	return strings.ReplaceAll(text, "ORIGIN", origin)
}

// input is the input of a request. The origin and the events identify a run by the ID of its request.
func input(id string, _ int) string { return fmt.Sprintf(`{"key":%q}`, id) }

func largeInput(id string, _ int) string {
	return fmt.Sprintf(`{"key":%q,"v":%q}`, id, strings.Repeat("v", large))
}

// installation is a platform that is killed and restored.
type installation struct {
	t        *testing.T
	plan     restorePlan
	store    platform.Store
	redis    *database.Redis
	temporal *platform.Temporal
	options  platform.ServerOptions
	server   *platform.Server
	origin   *origin.Origin
	sources  map[string]string // of the workflows, by name
	loads    map[string]*load.Load
	sent     map[string]bool // request IDs whose event was accepted
	every    time.Duration

	dump, copied string    // the backups
	oldest       time.Time // when the older one was made
}

// playRestore executes a schedule and verifies the outcome. The time between the older backup and the loss takes span.
// Where that is shorter than the age in the plan, the age is simulated, see [installation.age].
func playRestore(t *testing.T, p restorePlan, span time.Duration) string {
	t.Helper()
	t.Logf("seed %d: %s", p.seed, p)
	x := &installation{t: t, plan: p, origin: origin.New(t), sources: map[string]string{}, loads: map[string]*load.Load{},
		sent: map[string]bool{}}
	x.every = max(restoreEvery, span/most)
	x.origin.Answer("POST /calls", 200, `{}`)
	x.origin.Answer("GET /large", 200, `"`+strings.Repeat("w", large)+`"`)
	x.start()
	x.load(before)
	x.backUp(span)
	x.killAll()

	e := &restoreEvidence{plan: p, requests: x.requests(), repeats: map[string]load.Request{},
		workflows: map[string]string{}}
	e.left = x.restore(span)
	x.agree(e.left)
	var mu sync.Mutex
	x.repeat(func(r, again load.Request) {
		mu.Lock()
		defer mu.Unlock()
		e.repeats[r.ID] = again
	})
	old := maps.Clone(x.loads)
	x.startLoads(x.names()...)
	x.load(before)
	for key, l := range x.loads {
		l.Stop()
		name, _, _ := strings.Cut(key, " ")
		for _, r := range l.Requests() {
			e.workflows[r.ID] = name
			if old[key] == nil {
				e.after = append(e.after, r)
			}
		}
	}
	return x.judge(e)
}

// start starts everything, publishes the workflows and waits for a first comparison, from which a restore is detected
// later.
func (x *installation) start() {
	x.store, x.redis = restoreStore(x.t, x.plan)
	x.temporal = platform.StartTemporal(x.t)
	x.options = platform.ServerOptions{
		Temporal: x.temporal.Address, Store: x.store, Port: platform.FreePort(x.t),
		Env: []string{"SIGNALBOX_RUNS_STUCK_AFTER=5s"}, // shows a lost value as soon as it is missed
	}
	if x.redis != nil {
		x.options.Redis = x.redis.URL()
	}
	if x.plan.apart {
		x.options.Env = append(x.options.Env, "SIGNALBOX_PAYLOADS_STORE=folder", "SIGNALBOX_PAYLOADS_FOLDER="+x.t.TempDir())
	}
	x.server = platform.StartServer(x.t, x.options)
	x.reconcile()
	for _, name := range []string{short, waits, values} {
		x.publish(name)
	}
	x.startLoads(x.names()...)
}

func (x *installation) reconcile(args ...string) {
	x.t.Helper()
	platform.Eventually(x.t, checkLimit, func() string {
		if r := x.server.CLI(x.t, append([]string{"system", "reconcile"}, args...)...); r.Code != platform.ExitOK {
			return r.String()
		}
		return ""
	})
}

// publish publishes a workflow, with the same text each time.
func (x *installation) publish(name string) string {
	x.t.Helper()
	if x.sources[name] == "" {
		x.sources[name] = platform.Document(name, tasks(name, x.origin.URL))
	}
	return x.server.Publish(x.t, x.sources[name])
}

func (x *installation) names() []string {
	names := []string{short, waits, values}
	if x.sources[late] != "" {
		names = append(names, late)
	}
	return names
}

// startLoads starts loads of workflows, in addition to those that have been stopped. Each is known by its name and
// number.
func (x *installation) startLoads(names ...string) {
	x.t.Helper()
	for _, name := range names {
		of, every := input, x.every
		switch name {
		case waits, late:
			every = 2 * x.every
		case values:
			of, every = largeInput, 4*x.every
		}
		workflow := x.publish(name)
		x.loads[fmt.Sprintf("%s %d", name, len(x.loads))] = load.StartWith(x.t, x.server, workflow, every, of)
	}
}

// load lets the loads run for a time, and sends the events for half of the runs that wait, some seconds after their
// starts.
func (x *installation) load(d time.Duration) {
	x.t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); wait(x.t, min(500*time.Millisecond, max(time.Until(end), 0))) {
		var keys []string
		for _, r := range x.requests(waits, values) {
			if delay := time.Duration(r.N%5) * time.Second; r.Outcome == load.Accepted && r.N%2 == 0 && !x.sent[r.ID] &&
				time.Since(r.At) > delay {
				keys = append(keys, r.ID)
			}
		}
		if x.send("go", keys) == nil {
			for _, key := range keys {
				x.sent[key] = true
			}
		}
	}
}

// requests returns the requests of workflows; of all without a name.
func (x *installation) requests(names ...string) (out []load.Request) {
	for key, l := range x.loads {
		if name, _, _ := strings.Cut(key, " "); len(names) == 0 || slices.Contains(names, name) {
			out = append(out, l.Requests()...)
		}
	}
	return out
}

// send sends an event for each of the request IDs. The events of a prefix have the same IDs each time.
func (x *installation) send(prefix string, keys []string) error {
	const batch = 100
	for part := range slices.Chunk(keys, batch) {
		events := make([]string, len(part))
		for i, key := range part {
			events[i] = fmt.Sprintf(`{"specversion":"1.0","id":"%s-%s","source":"/chaos","type":"%s","data":{"key":"%s"}}`,
				prefix, key, answer, key)
		}
		status, body, err := x.server.Do(x.t.Context(), "POST", "/v1/projects/default/events",
			map[string][]string{"Content-Type": {"application/cloudevents-batch+json"}},
			strings.NewReader("["+strings.Join(events, ",")+"]"))
		if err == nil && status != 202 {
			err = fmt.Errorf("events: %d %s", status, body)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// backUp backs up the parts at their moments under load, and continues the load until the moment of the loss.
func (x *installation) backUp(span time.Duration) {
	x.t.Helper()
	loss := time.Now().Add(span)
	at := func(age time.Duration) time.Time {
		return loss.Add(-time.Duration(float64(span) * float64(age) / float64(x.plan.oldest())))
	}
	parts := []struct {
		age  time.Duration
		make func()
	}{
		{x.plan.database, func() {
			x.dump = database.BackUp(x.t, x.store)
			if x.plan.late {
				x.publish(late)
				x.startLoads(late)
			}
		}},
		{x.plan.temporal, func() { x.copied = database.CopySQLite(x.t, x.temporal.File) }},
	}
	if x.plan.temporal > x.plan.database {
		slices.Reverse(parts)
	}
	for _, part := range parts {
		if part.age == 0 {
			continue
		}
		x.load(time.Until(at(part.age)))
		if x.oldest.IsZero() {
			x.oldest = time.Now()
		}
		part.make()
	}
	x.load(time.Until(loss))
}

// killAll kills everything under load, as a loss of power would, and stops the load.
func (x *installation) killAll() {
	x.server.Kill()
	x.temporal.Kill()
	if x.redis != nil {
		x.redis.Kill()
	}
	for _, l := range x.loads {
		l.Stop()
	}
}

// rowOf is what a restored database has of a run.
type rowOf struct{ request, workflow, status string }

// remains are the runs that are known after the restore, before a server was started.
type remains struct {
	rows       map[string]rowOf
	executions map[string]bool // IDs of runs
	at         time.Time
}

// restore restores the parts of the plan, starts everything with an empty Redis, and returns what is left.
func (x *installation) restore(span time.Duration) remains {
	x.t.Helper()
	if x.dump != "" {
		x.store = database.Restore(x.t, x.store.Driver, x.dump)
		x.options.Store = x.store
	}
	if x.copied != "" {
		x.temporal.Replace(x.t, x.copied)
	}
	if span < x.plan.oldest() {
		x.age()
	}
	left := remains{rows: x.rows(), executions: map[string]bool{}, at: time.Now()}
	x.temporal = x.temporal.Restart(x.t)
	known, err := load.Executions(x.t.Context(), platform.DialTemporal(x.t, x.temporal.Address))
	require.NoError(x.t, err)
	for id := range known {
		left.executions[id] = true
	}
	if x.redis != nil {
		x.redis.Restart(x.t)
	}
	x.server = platform.StartServer(x.t, x.options)
	for _, l := range x.loads {
		l.Follow(x.server)
	}
	return left
}

// rows reads the rows of runs from the database itself.
func (x *installation) rows() map[string]rowOf {
	x.t.Helper()
	rows := map[string]rowOf{}
	database.Open(x.t, x.store, func(ctx context.Context, db *sql.DB) error {
		list, err := db.QueryContext(ctx, "SELECT id, COALESCE(request_id, ''), workflow, status FROM runs")
		if err != nil {
			return err
		}
		defer func() { _ = list.Close() }() // Err is read below
		for list.Next() {
			var id string
			var row rowOf
			if err := list.Scan(&id, &row.request, &row.workflow, &row.status); err != nil {
				return err
			}
			rows[id] = row
		}
		return list.Err()
	})
	return rows
}

// age makes everything that is stored older, as if the older backup had the age of the plan. Each time is moved away
// from the present by the same factor, so that what happened in the seconds since the backup is spread over its age.
// These times are:
//
//   - of the restored database, until when runs were compared with Temporal, from which a restore is detected, and
//     until when ended executions
//     were searched. A database that is not restored keeps its times: with it, Temporal alone was away;
//   - in Temporal's list, when executions started and ended. They are found by search only if they ended two minutes
//     ago, and compared at
//     once if they started 20 seconds ago. Temporal's own state of executions, its timers and the rows of runs keep
//     their times.
func (x *installation) age() {
	x.t.Helper()
	now := time.Now()
	factor := float64(x.plan.oldest()) / float64(now.Sub(x.oldest))
	moved := func(at time.Time) time.Time { return now.Add(-time.Duration(float64(now.Sub(at)) * factor)) }
	if x.dump != "" {
		database.Open(x.t, x.store, func(ctx context.Context, db *sql.DB) error {
			var compared, searched int64
			if err := db.QueryRowContext(ctx, "SELECT compared_at, searched_until FROM runs_cluster").Scan(&compared,
				&searched); err != nil {
				return fmt.Errorf("the database has no comparison before its backup: %w", err)
			}
			_, err := db.ExecContext(ctx, "UPDATE runs_cluster SET compared_at = $1, searched_until = $2",
				moved(time.UnixMicro(compared)).UnixMicro(), moved(time.UnixMicro(searched)).UnixMicro())
			return err
		})
	}
	database.Open(x.t, platform.Store{Driver: "sqlite", DSN: "file:" + x.temporal.File + "?_pragma=busy_timeout(10000)"},
		func(ctx context.Context, db *sql.DB) error {
			type times struct {
				id, run string
				started time.Time
				ended   sql.NullTime
			}
			var all []times
			list, err := db.QueryContext(ctx, "SELECT namespace_id, run_id, start_time, close_time FROM executions_visibility "+
				"WHERE workflow_type_name = 'signalbox.run'")
			if err != nil {
				return err
			}
			defer func() { _ = list.Close() }() // Err is read below
			for list.Next() {
				var of times
				if err := list.Scan(&of.id, &of.run, &of.started, &of.ended); err != nil {
					return err
				}
				all = append(all, of)
			}
			if err := list.Err(); err != nil {
				return err
			}
			const format = "2006-01-02 15:04:05.999999-07:00" // as Temporal writes it
			for _, of := range all {
				var ended any
				if of.ended.Valid {
					ended = moved(of.ended.Time).UTC().Format(format)
				}
				started := moved(of.started).UTC().Format(format)
				if _, err := db.ExecContext(ctx, "UPDATE executions_visibility SET start_time = $1, execution_time = $1, "+
					"close_time = $2 WHERE namespace_id = $3 AND run_id = $4",
					started, ended, of.id, of.run); err != nil {
					return err
				}
			}
			return nil
		})
}

// check is a part of the JSON of `restore check`.
type check struct {
	Complete    bool `json:"complete"`
	Maintenance struct {
		Active bool `json:"active"`
	} `json:"maintenance"`
	Differences map[string]int64 `json:"differences"`
	Lost        struct {
		Young int64 `json:"young"`
	} `json:"lost"`
	UnownedDispatchers []string          `json:"unownedDispatchers"`
	Errors             map[string]string `json:"errors"`
	Comparison         struct {
		SearchedUntil string `json:"searchedUntil"`
		Foreign       []struct {
			Workflow string `json:"workflow"`
			Count    int64  `json:"count"`
		} `json:"foreign"`
		Corrections []struct {
			Kind  string `json:"kind"`
			RunID string `json:"runId"`
		} `json:"corrections"`
	} `json:"comparison"`
}

// checked reads the check.
func (x *installation) checked() (c check) {
	x.t.Helper()
	r := x.server.CLI(x.t, "restore", "check", "-o", "json")
	require.NoError(x.t, json.Unmarshal([]byte(r.Stdout), &c), r)
	return c
}

// each calls f for all requests, some at a time.
func each(requests []load.Request, f func(load.Request)) {
	slots := make(chan struct{}, 8)
	var group sync.WaitGroup
	for _, r := range requests {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			f(r)
		})
	}
	group.Wait()
}
