package integration_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/test/counter"
	"github.com/signalbox-dev/signalbox/test/platform"
)

// subflow returns a task that runs a workflow, given by its full name.
func subflow(full, more string) string {
	return subflowVersion(full, "latest", `'${ .name // "x" }'`, more)
}

func subflowVersion(full, version, name, more string) string {
	namespace, short, _ := strings.Cut(full, "/")
	return fmt.Sprintf("  - r:\n      run:\n        workflow: {namespace: %s, name: %s, version: %s, input: {name: "+
		"%s}}\n%s", namespace, short, version, name, more)
}

// child waits for the newest child of a run.
func child(t *testing.T, s *platform.Server, parent string) *signalboxv1.Run {
	t.Helper()
	var children []string
	require.Eventually(t, func() bool {
		children = s.Run(t, parent).GetChildren()
		return len(children) > 0
	}, soon, 20*time.Millisecond)
	return s.Run(t, children[0])
}

func TestChildRuns(t *testing.T) {
	eachServer(t, func(t *testing.T, s *platform.Server) {
		greeter := s.Publish(t, platform.Document("greeter", hello,
			"input: {schema: {document: {type: object, properties: {name: {type: string}}}}}\n"))
		sleeper := s.Publish(t, platform.Document("sleeper", waits(600)))
		refuser := s.Publish(t, platform.Document("refuser", fails))
		caught := func(task string) string {
			return "  - t:\n      try:\n" + strings.ReplaceAll("\n"+task, "\n", "\n      ")[1:] + "\n      catch: {do: [{s: " +
				"{set: {title: '${ $error.title }', status: '${ $error.status }', detail: '${ $error.detail }'}}}]}\n"
		}

		t.Run("awaited", func(t *testing.T) {
			t.Parallel()
			id := s.Start(t, s.Publish(t, platform.Document("awaits", subflow(greeter, ""))), `{"name": "Ada"}`).GetId()
			parent := s.Await(t, id, soon, "completed")
			require.JSONEq(t, `{"message": "Hello, Ada!"}`, parent.GetOutput().GetJson())
			childRun := child(t, s, id)
			require.Equal(t, []string{childRun.GetId()}, parent.GetChildren())
			require.Equal(t, id, childRun.GetParentRunId())
			require.Equal(t, "/do/0/r", childRun.GetParentPath())
			require.EqualValues(t, 1, childRun.GetDepth())
			require.Equal(t, "parent", childRun.GetTrigger())
			require.Equal(t, "1.0.0", childRun.GetVersion())
			shown := s.CLI(t, "run", "show", id)
			require.Contains(t, shown.Stdout, childRun.GetId(), shown.String())
			shown = s.CLI(t, "run", "show", childRun.GetId())
			require.Contains(t, shown.Stdout, id, shown.String())
		})

		t.Run("not awaited", func(t *testing.T) {
			t.Parallel()
			id := s.Start(t, s.Publish(t, platform.Document("leaves", subflow(sleeper, "        await: false\n"))),
				`{"name": "Ada"}`).GetId()
			require.JSONEq(t, `{"name": "Ada"}`, s.Await(t, id, soon, "completed").GetOutput().GetJson())
			childRun := child(t, s, id)
			s.Await(t, childRun.GetId(), soon, "waiting")
		})

		t.Run("fails", func(t *testing.T) {
			t.Parallel()
			id := s.Start(t, s.Publish(t, platform.Document("catches", caught(subflow(refuser, "")))), `{}`).GetId()
			childRun := child(t, s, id)
			require.JSONEq(t, `{"title": "Out of stock", "status": 409, "detail": "run `+childRun.GetId()+`: no  left"}`,
				s.Await(t, id, soon, "completed").GetOutput().GetJson())
		})

		t.Run("refused", func(t *testing.T) {
			t.Parallel()
			for name, tt := range map[string]struct{ task, title string }{
				"missing": {subflow("test/nowhere", ""), "Not found"},
				"input":   {subflowVersion(greeter, "1.0.0", "7", ""), "Input refused"},
				"version": {subflowVersion(greeter, "7.0.0", "x", ""), "Not found"},
			} {
				id := s.Start(t, s.Publish(t, platform.Document("refused-"+name, caught(tt.task))), `{}`).GetId()
				output := s.Await(t, id, soon, "completed").GetOutput().GetJson()
				require.Contains(t, output, `"`+tt.title+`"`, name)
			}
		})

		t.Run("canceled with its parent", func(t *testing.T) {
			t.Parallel()
			id := s.Start(t, s.Publish(t, platform.Document("holds", subflow(sleeper, ""))), `{}`).GetId()
			childRun := child(t, s, id)
			s.Await(t, childRun.GetId(), soon, "waiting")
			parent := s.Await(t, id, soon, "waiting")
			require.Equal(t, "child", parent.GetWaitingKind())
			require.Equal(t, platform.ExitOK, s.CLI(t, "run", "cancel", id, "--reason", "enough").Code)
			s.Await(t, id, soon, "canceled")
			require.Equal(t, "canceled", s.Run(t, childRun.GetId()).GetStatus(), "the parent waits for its child's end")
		})

		t.Run("canceled by itself", func(t *testing.T) {
			t.Parallel()
			id := s.Start(t, s.Publish(t, platform.Document("outlives", caught(subflow(sleeper, "")))), `{}`).GetId()
			childRun := child(t, s, id)
			s.Await(t, childRun.GetId(), soon, "waiting")
			require.Equal(t, platform.ExitOK, s.CLI(t, "run", "cancel", childRun.GetId(), "--reason", "enough").Code)
			require.Contains(t, s.Await(t, id, soon, "completed").GetOutput().GetJson(), `"Child canceled"`)
		})

		t.Run("parent times out", func(t *testing.T) {
			t.Parallel()
			id := s.Start(t, s.Publish(t,
				platform.Document("hurries", subflow(sleeper, ""), "timeout: {after: {seconds: 1}}\n")), `{}`).GetId()
			s.Await(t, id, soon, "timed_out")
			s.Await(t, child(t, s, id).GetId(), soon, "canceled")
		})

		t.Run("too deep", func(t *testing.T) {
			t.Parallel()
			own := "document: {dsl: '1.0.3', namespace: deep, name: recursive, version: '1.0.0'}\ndo:\n" +
				subflow("deep/recursive", "")
			id := s.Start(t, s.Publish(t, own), `{}`).GetId()
			problem := s.Await(t, id, soon, "failed").GetError()
			require.Equal(t, "Too deep", problem.GetTitle())
			depth := 0
			for childRuns := s.Run(t, id).GetChildren(); len(childRuns) > 0; depth++ {
				childRuns = s.Run(t, childRuns[0]).GetChildren()
			}
			require.Equal(t, 8, depth)
		})
	})
}

func TestChildTerminatedInTemporal(t *testing.T) {
	t.Parallel()
	temporal := platform.StartTemporal(t)
	s := platform.StartServer(t, platform.ServerOptions{Temporal: temporal.Address, Store: platform.SQLite(t)})
	sleeper := s.Publish(t, platform.Document("sleeper", waits(600)))
	id := s.Start(t, s.Publish(t, platform.Document("holds", subflow(sleeper, ""))), `{}`).GetId()
	childRun := child(t, s, id)
	s.Await(t, childRun.GetId(), soon, "waiting")
	require.NoError(t, platform.DialTemporal(t, temporal.Address).TerminateWorkflow(t.Context(), childRun.GetId(), "",
		"by hand"))
	s.Await(t, childRun.GetId(), soon, "terminated")
	problem := s.Await(t, id, soon, "failed").GetError()
	require.Equal(t, "Child terminated", problem.GetTitle())
	require.Contains(t, problem.GetDetail(), childRun.GetId())

	// Ends that no worker causes are counted as well, each once.
	other := s.Start(t, sleeper, `{}`).GetId()
	s.Await(t, other, soon, "waiting")
	requireEffect(t, s, "terminate", other)
	platform.Eventually(t, soon, func() string {
		count, _, err := counter.Metric(t.Context(), s, "signalbox_runs_total", `status="terminated"`)
		require.NoError(t, err)
		if count != 2 {
			return fmt.Sprintf("%v runs are counted as terminated, not 2", count)
		}
		return ""
	})
}

// The server is killed while two children are open. One ends while no server runs that could notify its
// parent, the other under the next server.
func TestParentIsNotifiedAfterCrash(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, store platform.Store) {
		t.Parallel()
		temporal := platform.StartTemporal(t)
		options := platform.ServerOptions{Temporal: temporal.Address, Store: store, Port: platform.FreePort(t)}
		s := platform.StartServer(t, options)
		sleeper := s.Publish(t, platform.Document("sleeper", waits(2)))
		holds := s.Publish(t, platform.Document("holds", subflow(sleeper, "")+"  - s: {set: {done: true}}\n"))
		id, other := s.Start(t, holds, `{}`).GetId(), s.Start(t, holds, `{}`).GetId()
		for _, parent := range []string{id, other} {
			s.Await(t, child(t, s, parent).GetId(), soon, "waiting")
		}
		childRun := child(t, s, other).GetId()
		s.Kill()
		require.NoError(t, platform.DialTemporal(t, temporal.Address).TerminateWorkflow(t.Context(), childRun, "", "by hand"))
		s = platform.StartServer(t, options)
		s.Await(t, childRun, soon, "terminated")
		require.Equal(t, "Child terminated", s.Await(t, other, soon, "failed").GetError().GetTitle())
		require.JSONEq(t, `{"done": true}`, s.Await(t, id, soon, "completed").GetOutput().GetJson())
	})
}
