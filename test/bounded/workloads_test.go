package bounded_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/test/platform"
)

// workload is a workflow, or a use of the platform, that costs as much as its author can make it cost.
type workload struct {
	name  string
	tasks string // the document's `do`
	head  string // further top-level keys
	input string
	// runs is the number of runs to start; 0: one.
	runs int
	// status is the terminal status of each run, and text is part of its error. Empty: the run is canceled after a while,
	// and ends as canceled; it may end with one of the statuses in ends before. A workload with a status is repeated for a
	// while.
	status, text string
	ends         []string
	// spreads reports that the runs start others, which continue after the end of the first ones: the workflow is paused
	// then.
	spreads bool
	// program reports that the runs execute programs, in bubblewrap.
	program bool
	// beside is called while the runs are open.
	beside func(t *testing.T, x *environment, workflow string, runs []*signalboxv1.Run)
}

const nestedLoop = `  - f:
      for: {in: '${ [range(1000)] }'}
      do:
        - g:
            for: {in: '${ [range(1000)] }', each: j}
            do: [{s: {set: {x: 1}}}]
`

// loop repeats a task a number of times.
func loop(times int, task string) string {
	return fmt.Sprintf("  - l:\n      for: {in: '${ [range(%d)] }'}\n      do:\n        - t:\n%s", times, task)
}

// set returns a task that evaluates one expression and keeps only the length of its result.
func set(expression string) string {
	return "  - s:\n      set:\n        n: '${ " + expression + " }'\n"
}

// emit returns a task that emits an event.
func emit(name, kind string) string {
	return fmt.Sprintf("  - %s: {emit: {event: {with: {source: /bomb, type: %s}}}}\n", name, kind)
}

// branches returns a fork with a number of identical branches.
func branches(count int, task string) string {
	var b strings.Builder
	b.WriteString("  - f:\n      fork:\n        branches:\n")
	for i := range count {
		fmt.Fprintf(&b, "          - b%d: %s\n", i, task)
	}
	return b.String()
}

// workloads returns all workloads. Runs of those without a status continue until they are canceled.
func workloads() []workload {
	failed := func(name, expression string) workload {
		return workload{name: name, tasks: set(expression), status: "failed", text: "errors/expression"}
	}
	limited := []string{"failed"} // by the limit of steps, which a fast machine reaches first
	// program occupies all slots of the runner. The kernel may end one that exceeds its memory.
	program := func(name, command string) workload {
		return workload{name: name, tasks: "  - p: {run: {shell: {command: '" + command + "'}}}\n", runs: 8, program: true,
			ends: limited}
	}
	prints := program("program that prints", `yes`)
	prints.status, prints.text, prints.ends = "failed", "printed more", nil
	return []workload{
		program("program that forks", `exec perl -e "fork while 1"`),
		program("program that fills its disk",
			`while :; do cat /dev/zero >a; cat /dev/zero >b; rm a b; done 2>/dev/null`),
		program("program that allocates", `while :; do perl -e "push @a, q(x) x 1e6 while 1"; done`),
		prints,
		{name: "loop of loops", tasks: nestedLoop, ends: limited},
		{name: "jump back", tasks: "  - a: {set: {x: 1}}\n  - b: {set: {x: 2}, then: a}\n", ends: limited},
		{name: "endless retries",
			tasks: "  - t:\n      try: [{r: {raise: {error: {type: 'https://example.com/no', status: 500}}}}]\n" +
				"      catch: {errors: {}, retry: {delay: PT0S, limit: {attempt: {count: 1000000}}}}\n", ends: limited},
		{name: "recursion", tasks: "  - r:\n      run:\n        workflow: {namespace: bombs, name: recursion, version: " +
			"'1.0.0'}\n", status: "failed", text: "deep"},
		failed("matches", `[range(4)] | map([("a"*16000)|match("a?";"g")]|length)`),
		failed("explode", `("a"*16000000)|explode|length`),
		failed("doubled text", `reduce range(60) as $i ("a"; . + .) | length`),
		failed("range", `[range(1000000000)] | length`),
		failed("depth", `reduce range(10000000) as $i (null; [.]) | length`),
		{name: "growing value", tasks: "  - l:\n      for: {in: '${ [range(100000)] }'}\n      do: [{s: {set: {v: '${ (.v " +
			"// []) + [range(200)] }'}}}]\n",
			ends: []string{"failed"}},
		{name: "growing context", tasks: "  - l:\n      for: {in: '${ [range(100000)] }'}\n" +
			"      do: [{s: {set: {x: 1}, export: {as: '${ ($context // []) + [range(100)] }'}}}]\n", ends: []string{"failed"}},
		{name: "large value", tasks: "  - s:\n      set:\n        v: '${ \"a\"*3000000 }'\n", runs: 20, status: "completed"},
		{name: "too large value", tasks: "  - s:\n      set:\n        v: '${ \"a\"*40000000 }'\n", status: "failed"},
		{name: "large error", tasks: "  - r:\n      raise: {error: {type: 'https://example.com/large', status: 500, " +
			"detail: '${ \"a\"*3000000 }'}}\n",
			runs: 10, status: "failed"},
		{name: "fan-out of loops", tasks: branches(300, "{for: {in: '${ [range(1000)] }'}, do: [{s: {set: {x: 1}}}]}"),
			ends: []string{"completed"}},
		{name: "emitted events", tasks: loop(20000,
			"            emit: {event: {with: {source: /bomb, type: bomb.ticked, data: '${ \"a\"*1000 }'}}}\n")},
		{name: "listeners", tasks: branches(300, "{listen: {to: {any: [{with: {type: bomb.never}}]}}}")},
		{name: "children", tasks: loop(2000,
			"            run: {await: false, workflow: {namespace: bombs, name: leaf, version: '1.0.0'}}\n")},
		{name: "tree of children", tasks: loop(200,
			"            run: {await: false, workflow: {namespace: bombs, name: tree-of-children, version: '1.0.0'}}\n"),
			ends: []string{"completed"}, spreads: true},
		{name: "events that start their workflow", head: "schedule: {on: {one: {with: {type: bomb.echoed}}}}\n",
			tasks: emit("a", "bomb.echoed") + emit("b", "bomb.echoed"), ends: []string{"completed"}, spreads: true},
		{name: "retries without a limit", tasks: branches(20, "{do: [{t: {try: [{r: {raise: {error: {type: "+
			"'https://example.com/no', status: 500}}}}], catch: {retry: {}}}}]}"), runs: 20},
		{name: "large inputs", tasks: "  - w: {wait: {hours: 1}}\n", input: `{"v":"` + strings.Repeat("a", 500<<10) + `"}`,
			runs: 60},
		{name: "watches, reads and exports", tasks: nestedLoop, ends: limited, beside: readAll},
		{name: "batch", tasks: "  - s: {set: {x: 1}}\n", runs: 50, status: "completed", beside: replayAll},
	}
}

// document returns the name of a workload's document.
func (b workload) document() string { return strings.NewReplacer(" ", "-", ",", "").Replace(b.name) }

// source returns the document of a workload. All are in one workflow namespace, so that they can start each other.
func (b workload) source() string {
	return fmt.Sprintf("document: {dsl: '1.0.3', namespace: bombs, name: %s, version: '1.0.0'}\n%sdo:\n%s", b.document(),
		b.head, b.tasks)
}

// readAll watches a run many times over, reads its steps, and exports it and the list of runs, until the watchers'
// deadline.
func readAll(t *testing.T, x *environment, _ string, runs []*signalboxv1.Run) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), x.dwell)
	defer cancel()
	id := runs[0].GetId()
	var group sync.WaitGroup
	for i := range 100 {
		s := x.servers[i%2]
		group.Go(func() {
			stream, err := s.Runs.WatchRun(ctx,
				connect.NewRequest(&signalboxv1.WatchRunRequest{Project: platform.DefaultProject, Id: id}))
			if err != nil {
				return
			}
			for stream.Receive() {
			}
			_ = stream.Close() // the deadline ends it
		})
	}
	for i := range 10 {
		s := x.servers[i%2]
		group.Go(func() {
			for ctx.Err() == nil {
				for _, path := range []string{
					"/runs/" + id, "/runs/" + id + "/steps?pageSize=1000", "/runs/" + id + ":export", "/runs:export?format=csv"} {
					_, _, _ = s.Get(ctx, "/v1/projects/"+platform.DefaultProject+path) // only the cost of the request matters
				}
			}
		})
	}
	group.Wait()
}

// replayAll replays all runs of the workflow as one batch, including the replays of earlier batches.
func replayAll(t *testing.T, x *environment, workflow string, _ []*signalboxv1.Run) {
	t.Helper()
	r := x.servers[0].CLI(t, "batch", "start", "--action", "replay", "--workflow", workflow, "--reason",
		"as many as there are", "--rate", "500", "--wait")
	require.Equal(t, platform.ExitOK, r.Code, r.String())
}

// leaf is the child that the workloads start.
const leaf = "document: {dsl: '1.0.3', namespace: bombs, name: leaf, version: '1.0.0'}\ndo:\n  - s: {set: {x: 1}}\n"

// endWithin is how soon a run must end after its cancellation.
const endWithin = 5 * time.Second
