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

// bomb is a workflow, or a use of the platform, that costs as much as its author can make it cost.
type bomb struct {
	name  string
	tasks string // the document's `do`
	head  string // further top-level keys
	input string
	// runs is how many runs are started; 0: one.
	runs int
	// status is how each run ends by itself, and text is part of its error. Empty: the run is canceled after a while, and ends
	// canceled. A run that ends by itself before is no failure either where ends is set.
	status, text string
	ends         []string
	// beside is done while the runs are open.
	beside func(t *testing.T, x *site, workflow string, runs []*signalboxv1.Run)
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

// set is a task that evaluates one expression and keeps nothing of it but its length.
func set(expression string) string {
	return "  - s:\n      set:\n        n: '${ " + expression + " }'\n"
}

// branches is a fork with a number of branches that all do the same.
func branches(count int, task string) string {
	var b strings.Builder
	b.WriteString("  - f:\n      fork:\n        branches:\n")
	for i := range count {
		fmt.Fprintf(&b, "          - b%d: %s\n", i, task)
	}
	return b.String()
}

// bombs are all of them. Those without a status run until they are canceled.
func bombs() []bomb {
	failed := func(name, expression string) bomb {
		return bomb{name: name, tasks: set(expression), status: "failed", text: "errors/expression"}
	}
	limited := []string{"failed"} // by the limit of steps, which a quick machine reaches first
	return []bomb{
		{name: "loop of loops", tasks: nestedLoop, ends: limited},
		{name: "jump back", tasks: "  - a: {set: {x: 1}}\n  - b: {set: {x: 2}, then: a}\n", ends: limited},
		{name: "endless retries", tasks: "  - t:\n      try: [{r: {raise: {error: {type: 'https://example.com/no', status: 500}}}}]\n" +
			"      catch: {errors: {}, retry: {limit: {attempt: {count: 1000000}}}}\n", ends: limited},
		{name: "recursion", tasks: "  - r:\n      run:\n        workflow: {namespace: bombs, name: recursion, version: '1.0.0'}\n", status: "failed", text: "deep"},
		failed("matches", `[range(4)] | map([("a"*16000)|match("a?";"g")]|length)`),
		failed("explode", `("a"*16000000)|explode|length`),
		failed("doubled text", `reduce range(60) as $i ("a"; . + .) | length`),
		failed("range", `[range(1000000000)] | length`),
		failed("depth", `reduce range(10000000) as $i (null; [.]) | length`),
		{name: "growing value", tasks: "  - l:\n      for: {in: '${ [range(100000)] }'}\n      do: [{s: {set: {v: '${ (.v // []) + [range(200)] }'}}}]\n",
			ends: []string{"failed"}},
		{name: "growing context", tasks: "  - l:\n      for: {in: '${ [range(100000)] }'}\n" +
			"      do: [{s: {set: {x: 1}, export: {as: '${ ($context // []) + [range(100)] }'}}}]\n", ends: []string{"failed"}},
		{name: "large value", tasks: "  - s:\n      set:\n        v: '${ \"a\"*3000000 }'\n", runs: 20, status: "completed"},
		{name: "too large value", tasks: "  - s:\n      set:\n        v: '${ \"a\"*40000000 }'\n", status: "failed"},
		{name: "large error", tasks: "  - r:\n      raise: {error: {type: 'https://example.com/large', status: 500, detail: '${ \"a\"*3000000 }'}}\n",
			runs: 10, status: "failed"},
		{name: "fan-out of loops", tasks: branches(300, "{for: {in: '${ [range(1000)] }'}, do: [{s: {set: {x: 1}}}]}"), ends: []string{"completed"}},
		{name: "emitted events", tasks: loop(20000, "            emit: {event: {with: {source: /bomb, type: bomb.ticked, data: '${ \"a\"*1000 }'}}}\n")},
		{name: "listeners", tasks: branches(300, "{listen: {to: {any: [{with: {type: bomb.never}}]}}}")},
		{name: "children", tasks: loop(2000, "            run: {await: false, workflow: {namespace: bombs, name: leaf, version: '1.0.0'}}\n")},
		{name: "large inputs", tasks: "  - w: {wait: {hours: 1}}\n", input: `{"v":"` + strings.Repeat("a", 500<<10) + `"}`, runs: 60},
		{name: "watches, reads and exports", tasks: nestedLoop, ends: limited, beside: readAll},
		{name: "batch", tasks: "  - s: {set: {x: 1}}\n", runs: 50, status: "completed", beside: replayAll},
	}
}

// source is the document of a bomb, in the workflow namespace in which bombs find each other.
func (b bomb) source() string {
	name := strings.NewReplacer(" ", "-", ",", "").Replace(b.name)
	return fmt.Sprintf("document: {dsl: '1.0.3', namespace: bombs, name: %s, version: '1.0.0'}\n%sdo:\n%s", name, b.head, b.tasks)
}

// readAll watches a run many times over, reads its steps and exports it and the list of runs, until the watchers have had a while.
func readAll(t *testing.T, x *site, _ string, runs []*signalboxv1.Run) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), x.dwell)
	defer cancel()
	id := runs[0].GetId()
	var group sync.WaitGroup
	for i := range 100 {
		s := x.servers[i%2]
		group.Go(func() {
			stream, err := s.Runs.WatchRun(ctx, connect.NewRequest(&signalboxv1.WatchRunRequest{Project: platform.DefaultProject, Id: id}))
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
				for _, path := range []string{"/runs/" + id, "/runs/" + id + "/steps?pageSize=1000", "/runs/" + id + ":export", "/runs:export?format=csv"} {
					_, _, _ = s.Get(ctx, "/v1/projects/"+platform.DefaultProject+path) // what matters is what it costs
				}
			}
		})
	}
	group.Wait()
}

// replayAll replays all runs of the workflow as one batch.
func replayAll(t *testing.T, x *site, workflow string, _ []*signalboxv1.Run) {
	t.Helper()
	r := x.servers[0].CLI(t, "batch", "start", "--action", "replay", "--workflow", workflow, "--reason", "as many as there are", "--rate", "500")
	require.Equal(t, platform.ExitOK, r.Code, r.String())
}

// leaf is what the bombs start as children.
const leaf = "document: {dsl: '1.0.3', namespace: bombs, name: leaf, version: '1.0.0'}\ndo:\n  - s: {set: {x: 1}}\n"

// endWithin is how soon a run ends after it is asked to.
const endWithin = 5 * time.Second
