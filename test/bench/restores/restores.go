// Package restores measures how long a restored database of many runs takes to be compared with Temporal and corrected,
// on Postgres, and how fast the API answers meanwhile.
package restores

import (
	"fmt"
	"sync"
	"time"

	"connectrpc.com/connect"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/test/bench/figure"
	"github.com/signalbox-dev/signalbox/test/database"
	"github.com/signalbox-dev/signalbox/test/platform"
)

// aim is the limit of a check, patience that of the whole correction.
const (
	aim      = 5 * time.Minute
	patience = 20 * time.Minute
	// pause is the time between two checks: they take from the budget of requests that corrections need.
	pause = 10 * time.Second
)

// Plan sets the amount of measurement.
type Plan struct {
	// Rows is the number of ended runs of the database. Ended and Open are the runs that only Temporal has after the
	// restore.
	Rows, Ended, Open int
}

// Full is the plan for the page.
func Full() Plan { return Plan{Rows: 1_000_000, Ended: 3000, Open: 500} }

// Short is the plan for a quick check.
func Short() Plan { return Plan{Rows: 2000, Ended: 30, Open: 5} }

// Report has all measurements.
type Report struct {
	plan     Plan
	measured bool
	// check is the duration of the first check, complete the time from the start of the server until a check was complete.
	check, complete time.Duration
	// lists are the durations of lists of runs meanwhile, in milliseconds.
	lists []float64
}

// Measure executes a plan. It calls progress with the name of each part that begins. Without Postgres it returns an
// empty report.
func Measure(t platform.T, p Plan, progress func(string)) Report {
	r := Report{plan: p}
	if !platform.HasPostgres() {
		return r
	}
	scope := platform.NewScope(t.Context(), t.Name())
	defer scope.Close()
	progress(fmt.Sprintf("restore of a database with %d runs", p.Rows))
	options := platform.ServerOptions{Temporal: platform.StartTemporal(scope).Address, Store: platform.Postgres(scope)}
	s := platform.StartServer(scope, options)
	rows := restored{database.Connect(scope, options.Store.DSN)}
	short := s.Publish(scope, platform.Document("short", "  - greet: {set: {greeting: hello}}\n"))
	waits := s.Publish(scope, platform.Document("waits", "  - hear: {listen: {to: {one: {with: {type: go}}}}}\n"))
	kept := s.Start(scope, short, "").GetId()
	s.Await(scope, kept, time.Minute, "completed")
	lost := start(scope, s, short, p.Ended)
	open := start(scope, s, waits, p.Open)
	for _, id := range lost {
		s.Await(scope, id, time.Minute, "completed")
	}
	for _, id := range open {
		s.Await(scope, id, time.Minute, "waiting")
	}
	s.Terminate()
	if _, ended := s.WaitFor(time.Minute); !ended {
		t.Fatalf("the server did not stop")
	}
	rows.grow(scope, kept, p.Rows)
	rows.restore(scope, append(lost, open...))

	began := time.Now()
	s = platform.StartServer(scope, options)
	found := checkUntil(scope, s, func(c *signalboxv1.CheckRestoreResponse) bool { return c.GetRestoredTime() != nil })
	r.check = found
	stop := r.list(scope, s)
	checkUntil(scope, s, func(c *signalboxv1.CheckRestoreResponse) bool { return c.GetComplete() })
	r.complete = time.Since(began)
	stop()
	rows.requireAll(scope, append(lost, open...))
	r.measured = true
	return r
}

// start starts runs of a workflow, some at once.
func start(t platform.T, s *platform.Server, workflow string, n int) []string {
	ids := make([]string, n)
	const callers = 8
	var group sync.WaitGroup
	for c := range callers {
		group.Go(func() {
			for i := c; i < n; i += callers {
				ids[i] = s.Start(t, workflow, "").GetId()
			}
		})
	}
	group.Wait()
	return ids
}

// checkUntil repeats the check until it is as it has to be, and returns how long the last one took.
func checkUntil(t platform.T, s *platform.Server,
	is func(*signalboxv1.CheckRestoreResponse) bool) (took time.Duration) {
	tick := time.NewTicker(pause)
	defer tick.Stop()
	platform.Eventually(t, patience, func() string {
		select {
		case <-tick.C:
		case <-t.Context().Done():
		}
		began := time.Now()
		res, err := s.System.CheckRestore(t.Context(), connect.NewRequest(&signalboxv1.CheckRestoreRequest{}))
		if err != nil {
			return err.Error()
		}
		took = time.Since(began)
		if !is(res.Msg) {
			return fmt.Sprint(res.Msg)
		}
		return ""
	})
	return took
}

// list reads the newest runs, again and again, until the returned function is called.
func (r *Report) list(t platform.T, s *platform.Server) (stop func()) {
	done := make(chan struct{})
	var group sync.WaitGroup
	var failed error
	group.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			began := time.Now()
			request := &signalboxv1.ListRunsRequest{Project: platform.DefaultProject, PageSize: 50}
			if _, err := s.Runs.ListRuns(t.Context(), connect.NewRequest(request)); err != nil {
				failed = err
				return
			}
			r.lists = append(r.lists, float64(time.Since(began).Microseconds())/1000)
		}
	})
	return func() {
		close(done)
		group.Wait()
		if failed != nil {
			t.Fatalf("list runs during the correction: %v", failed)
		}
	}
}

// restored is the restored database.
type restored struct{ *database.Session }

// grow adds copies of an ended run, an hour older and 10 ms apart.
func (d restored) grow(t platform.T, id string, rows int) {
	var columns string
	err := d.QueryRow(t.Context(), `SELECT string_agg(quote_ident(column_name), ', ') FROM information_schema.columns
WHERE table_name = 'runs' AND table_schema = 'public' AND column_name NOT IN ('id', 'request_id', 'execution_id', 'created_at', 'started_at', 'ended_at', 'status_at')`).Scan(&columns)
	if err != nil {
		t.Fatalf("read the columns of runs: %v", err)
	}
	at := func(column string) string { return column + ` - 3600000000 - i * 10000::bigint` }
	d.Do(t, `INSERT INTO runs (id, request_id, execution_id, created_at, started_at, ended_at, status_at, `+columns+`)
SELECT 'copy-' || i, 'copy-' || i, 'copy-' || i, `+at("created_at")+`, `+at("started_at")+`, `+at("ended_at")+`, `+at("status_at")+`, `+columns+`
FROM runs, generate_series(1, $2::bigint) AS i WHERE id = $1`, id, rows)
	d.Do(t, `VACUUM ANALYZE runs`)
}

// restore makes the database that of a backup of an hour ago, without these runs.
func (d restored) restore(t platform.T, lost []string) {
	for _, statement := range []string{`DELETE FROM steps WHERE run_id = ANY($1)`, `DELETE FROM runs WHERE id = ANY($1)`} {
		d.Do(t, statement, lost)
	}
	d.Do(t, `UPDATE runs_cluster SET compared_at = compared_at - 3600000000, searched_until = searched_until - 3600000000`)
}

// requireAll requires that the runs have their rows again.
func (d restored) requireAll(t platform.T, ids []string) {
	var n int
	if err := d.QueryRow(t.Context(), `SELECT COUNT(*) FROM runs WHERE id = ANY($1)`, ids).Scan(&n); err != nil {
		t.Fatalf("count the adopted runs: %v", err)
	}
	if n != len(ids) {
		t.Fatalf("%d of %d runs have a row after a complete check", n, len(ids))
	}
}

// Markdown writes the section's body, one line per call.
func (r Report) Markdown(line func(format string, args ...any)) {
	if !r.measured {
		line("There was no Postgres to measure with.")
		return
	}
	line("A database with %d ended runs, restored to its state of an hour ago: Temporal has %d ended and %d open runs "+
		"that have no row. One server", r.plan.Rows, r.plan.Ended, r.plan.Open)
	line("with both roles, which the restore puts into maintenance; Postgres and Temporal on the same machine.")
	line("")
	line("| figure | aim | seen | |")
	line("|---|---|---|---|")
	line("| one `signalbox restore check` | < %.0f min | %.1f s | %s |", aim.Minutes(), r.check.Seconds(),
		figure.Verdict(r.check < aim))
	line("| from the start of the server until all runs have their rows again and a check is complete | | %.1f s | |",
		r.complete.Seconds())
	line("| a list of 50 runs meanwhile, median and 95th percentile of %d | | %.1f ms, %.1f ms | |", len(r.lists),
		figure.Median(r.lists), figure.Quantile(r.lists, .95))
}
