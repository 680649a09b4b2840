// Package lists measures how long the lists of runs take, filter by filter, as their number grows: through the API, on
// Postgres, with a server that diagnoses stuck runs at the same time, and finds some.
package lists

import (
	"fmt"
	"strings"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/timestamppb"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/test/bench/figure"
	"github.com/signalbox-dev/signalbox/test/platform"
)

// aim is the limit of each list's 95th percentile at the largest size, in milliseconds.
const aim = 50

// Plan sets the amount of measurement.
type Plan struct {
	// Sizes are the numbers of runs, ascending; Lists is how often each list is read.
	Sizes []int
	Lists int
}

// Full is the plan for the page.
func Full() Plan { return Plan{Sizes: []int{10_000, 100_000, 1_000_000}, Lists: 100} }

// Short is the plan for a quick check.
func Short() Plan { return Plan{Sizes: []int{1000, 3000}, Lists: 5} }

// Report has all measurements.
type Report struct {
	plan  Plan
	names []string
	// times are milliseconds, by list and size; verdicts is the time until the stuck runs were reported, in seconds.
	times    map[string]map[int][]float64
	stuck    []int64
	verdicts []float64
	reads    []reads
}

// list is one call of the API.
type list struct {
	name string
	call func(t platform.T, s *platform.Server)
}

// Measure executes a plan. It calls progress with the name of each part that begins. Without Postgres it returns an
// empty report.
func Measure(t platform.T, p Plan, progress func(string)) Report {
	r := Report{plan: p, times: map[string]map[int][]float64{}}
	if !platform.HasPostgres() {
		return r
	}
	scope := platform.NewScope(t.Context(), t.Name())
	defer scope.Close()
	store, temporal := platform.Postgres(scope), platform.StartTemporal(scope)
	s := platform.StartServer(scope, platform.ServerOptions{
		Temporal: temporal.Address, Store: store, Roles: []string{platform.API},
		Env: []string{"SIGNALBOX_RUNS_STUCK_AFTER=1s"},
	})
	table := open(scope, store.DSN)
	for _, l := range append(lists(), list{name: counted}) {
		r.names, r.times[l.name] = append(r.names, l.name), map[int][]float64{}
	}
	for _, size := range p.Sizes {
		progress(fmt.Sprintf("lists of %d runs", size))
		took, stuck := table.grow(scope, s, size)
		r.verdicts, r.stuck = append(r.verdicts, took.Seconds()), append(r.stuck, stuck)
		before := table.reads(scope)
		for _, l := range lists() {
			r.times[l.name][size] = repeat(scope, s, l, p.Lists)
		}
		r.reads = append(r.reads, table.reads(scope).minus(before, p.Lists*len(lists())))
		r.times[counted][size] = repeat(scope, s, list{counted, count}, max(1, p.Lists/10))
	}
	return r
}

// repeat returns the duration of each of the given number of calls, in milliseconds, after one that is not counted.
func repeat(t platform.T, s *platform.Server, l list, times int) []float64 {
	l.call(t, s)
	took := make([]float64, times)
	for i := range took {
		began := time.Now()
		l.call(t, s)
		took[i] = float64(time.Since(began).Microseconds()) / 1000
	}
	return took
}

// counted is the name of the counts by status and problem, which read one index entry for each open run, and up to
// 10000 for each other status.
const counted = "counts by status and problem (`CountRuns`)"

func count(t platform.T, s *platform.Server) {
	if _, err := s.Runs.CountRuns(t.Context(),
		connect.NewRequest(&signalboxv1.CountRunsRequest{Project: platform.DefaultProject})); err != nil {
		t.Fatalf("count runs: %v", err)
	}
}

// lists are pages of 50 runs.
func lists() []list {
	of := func(name string, least int, change func(*signalboxv1.ListRunsRequest)) list {
		return list{name, func(t platform.T, s *platform.Server) {
			request := &signalboxv1.ListRunsRequest{
				Project: platform.DefaultProject, Filter: &signalboxv1.RunFilter{}, PageSize: 50}
			change(request)
			res, err := s.Runs.ListRuns(t.Context(), connect.NewRequest(request))
			if err != nil {
				t.Fatalf("list %s: %v", name, err)
			}
			if len(res.Msg.GetRuns()) < least {
				t.Fatalf("list %s: %d runs", name, len(res.Msg.GetRuns()))
			}
		}}
	}
	return append([]list{
		of("newest", 50, func(*signalboxv1.ListRunsRequest) {}),
		of("oldest first", 50, func(r *signalboxv1.ListRunsRequest) { r.Order = "oldest" }),
		of("created before a time long ago", 20, func(r *signalboxv1.ListRunsRequest) {
			r.Filter.Until = timestamppb.New(first().Add(500 * apart))
		}),
		of("`--status failed`", 20, func(r *signalboxv1.ListRunsRequest) { r.Filter.Statuses = []string{"failed"} }),
		of("`--status queued,running,waiting`", 5, func(r *signalboxv1.ListRunsRequest) {
			r.Filter.Statuses = []string{"queued", "running", "waiting"}
		}),
		of("`--workflow`", 40, func(r *signalboxv1.ListRunsRequest) { r.Filter.Workflow = "bench/w7" }),
		of("`--workflow --status failed`", 0, func(r *signalboxv1.ListRunsRequest) {
			r.Filter.Workflow, r.Filter.Statuses = "bench/w7", []string{"failed"}
		}),
		of("`--workflow --version`, which no run is of", 0, func(r *signalboxv1.ListRunsRequest) {
			r.Filter.Workflow, r.Filter.Version = "bench/w7", "0.0.9"
		}),
		of("`--trigger replay`, one run in a hundred", 10, func(r *signalboxv1.ListRunsRequest) {
			r.Filter.Trigger = "replay"
		}),
		of("`--trigger event --status failed`", 0, func(r *signalboxv1.ListRunsRequest) {
			r.Filter.Trigger, r.Filter.Statuses = "event", []string{"failed"}
		}),
		of("`--stuck any`", 5, func(r *signalboxv1.ListRunsRequest) { r.Filter.Stuck = []string{"any"} }),
		of("`--stuck NO_POLLER --workflow`", 0, func(r *signalboxv1.ListRunsRequest) {
			r.Filter.Stuck, r.Filter.Workflow = []string{"NO_POLLER"}, "bench/w7"
		}),
		of("`--text`, a prefix of one request ID in a thousand", 1, func(r *signalboxv1.ListRunsRequest) {
			r.Filter.Text = "order-77-"
		}),
		of("`--text`, a prefix of all", 50, func(r *signalboxv1.ListRunsRequest) { r.Filter.Text = "order-" }),
		of("`--text`, a prefix of the IDs of the oldest runs", 50, func(r *signalboxv1.ListRunsRequest) {
			r.Filter.Text = "0194"
		}),
		of("`--text`, a prefix of none", 0, func(r *signalboxv1.ListRunsRequest) { r.Filter.Text = "zzz" }),
		of("`--request-id`", 1, func(r *signalboxv1.ListRunsRequest) { r.RequestId = "order-77-77" }),
		of("`--words`, two, one of which all runs have", 1, func(r *signalboxv1.ListRunsRequest) {
			r.Filter.Words = "order 777"
		}),
		of("`--error-text`, words of all errors", 20, func(r *signalboxv1.ListRunsRequest) {
			r.Filter.ErrorText = "payment refused"
		}),
		of("`--waiting event`", 2, func(r *signalboxv1.ListRunsRequest) { r.Filter.Waiting = "event" }),
	}, searches()...)
}

// searches are calls of Search, with texts that nothing, few and all runs have.
func searches() (all []list) {
	for _, text := range []string{"777", "order 777", "order", "77", "payment refused", "nothing-has-this", "01942"} {
		all = append(all, search(fmt.Sprintf("search for `%s`", text), text))
	}
	return all
}

func search(name, text string) list {
	return list{name, func(t platform.T, s *platform.Server) {
		if _, err := s.Search.Search(t.Context(),
			connect.NewRequest(&signalboxv1.SearchRequest{Project: platform.DefaultProject, Text: text})); err != nil {
			t.Fatalf("search for %s: %v", text, err)
		}
	}}
}

// Markdown writes the section's body, one line per call.
func (r Report) Markdown(line func(format string, args ...any)) {
	if len(r.names) == 0 {
		line("There was no Postgres to measure with.")
		return
	}
	line("One API server, Postgres and Temporal on the same machine; pages of 50 runs by gRPC, one at a time, %d of "+
		"each. No worker polls, so that the", r.plan.Lists)
	line("open runs are stuck, and are checked every two seconds meanwhile. Medians and 95th percentiles in milliseconds.")
	line("")
	heads, rule := []string{"list"}, []string{"---"}
	for _, size := range r.plan.Sizes {
		heads, rule = append(heads, fmt.Sprintf("%d runs: p50", size), "p95"), append(rule, "---", "---")
	}
	line("| %s | aim | |", strings.Join(heads, " | "))
	line("| %s | --- | --- |", strings.Join(rule, " | "))
	for _, name := range r.names {
		cells := []string{name}
		worst := 0.0
		for _, size := range r.plan.Sizes {
			worst = figure.Quantile(r.times[name][size], .95)
			cells = append(cells, fmt.Sprintf("%.1f", figure.Median(r.times[name][size])), fmt.Sprintf("%.1f", worst))
		}
		line("| %s | < %d | %s |", strings.Join(cells, " | "), aim, figure.Verdict(worst < aim))
	}
	line("")
	line("Rows that Postgres read for all these lists together, by its own statistics, and the delay until the stuck " +
		"runs were shown:")
	line("")
	line("| runs | table rows read in sequence, per list | rows and entries read by an index, per list | stuck runs | " +
		"shown after |")
	line("|---|---|---|---|---|")
	for i, size := range r.plan.Sizes {
		line("| %d | %.0f | %.0f | %d | %.1f s |", size, r.reads[i].sequential, r.reads[i].indexed, r.stuck[i], r.verdicts[i])
	}
}
