package integration_test

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"testing"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/test/origin"
	"github.com/signalbox-dev/signalbox/test/platform"
)

func itoa(n int) string { return strconv.Itoa(n) }

// printedRun is the CLI's output for a run with -o json.
type printedRun struct {
	ID              string         `json:"id"`
	Status          string         `json:"status"`
	Workflow        string         `json:"workflow"`
	Version         string         `json:"version"`
	Input           any            `json:"input"`
	Output          any            `json:"output"`
	Error           *printedError  `json:"error"`
	CancelRequested bool           `json:"cancelRequested"`
	StepsTotal      int            `json:"stepsTotal"`
	Temporal        map[string]any `json:"temporal"`
}

type printedError struct {
	Type     string `json:"type"`
	Status   int    `json:"status"`
	Title    string `json:"title"`
	Detail   string `json:"detail"`
	Instance string `json:"instance"`
}

func TestRunPrintsItsOutput(t *testing.T) {
	eachServer(t, func(t *testing.T, s *platform.Server) {
		path := file(t, "hello.yaml", platform.Document("hello", hello))
		published := s.CLI(t, "workflow", "publish", path, "-o", "json")
		require.Equal(t, platform.ExitOK, published.Code, published.String())
		name := s.Publish(t, readFile(t, path)) // again: this changes nothing

		r := s.CLI(t, "run", "start", name, "--input", `{"name":"Ada"}`, "--wait", "-o", "json")
		require.Equal(t, platform.ExitOK, r.Code, r.String())
		var run printedRun
		r.JSON(t, &run)
		require.NotEmpty(t, run.ID)
		require.Equal(t, "completed", run.Status)
		require.Equal(t, name, run.Workflow)
		require.Equal(t, "1.0.0", run.Version)
		require.Equal(t, map[string]any{"message": "Hello, Ada!"}, run.Output)
		require.Equal(t, map[string]any{"name": "Ada"}, run.Input)
		require.Nil(t, run.Error)
		require.Equal(t, 1, run.StepsTotal)

		steps := s.Steps(t, run.ID)
		require.Equal(t, []string{"greet:completed"}, platform.Statuses(steps))
		require.Equal(t, "/do/0/greet", steps[0].GetPath())
	})
}

func TestFailedRunExitsWithTen(t *testing.T) {
	eachServer(t, func(t *testing.T, s *platform.Server) {
		name := s.Publish(t, platform.Document("fails", fails))
		r := s.CLI(t, "run", "start", name, "--input", `{"sku":"A-1"}`, "--wait", "-o", "json")
		require.Equal(t, platform.ExitRunFailed, r.Code, r.String())
		var run printedRun
		r.JSON(t, &run)
		require.Equal(t, "failed", run.Status)
		require.Nil(t, run.Output)
		require.Equal(t, &printedError{
			Type: "https://example.com/errors/out-of-stock", Status: 409, Title: "Out of stock",
			Detail: "no A-1 left", Instance: "/do/0/reject",
		}, run.Error)
		require.Equal(t, []string{"reject:failed"}, platform.Statuses(s.Steps(t, run.ID)))

		watched := s.CLI(t, "run", "watch", run.ID)
		require.Equal(t, platform.ExitRunFailed, watched.Code, watched.String())
	})
}

func TestTimedOutRunExitsWithTwelve(t *testing.T) {
	eachServer(t, func(t *testing.T, s *platform.Server) {
		name := s.Publish(t, platform.Document("slow", waits(600), "timeout:\n  after:\n    milliseconds: 300\n"))
		r := s.CLI(t, "run", "start", name, "--wait", "-o", "json")
		require.Equal(t, platform.ExitRunTimedOut, r.Code, r.String())
		var run printedRun
		r.JSON(t, &run)
		require.Equal(t, "timed_out", run.Status)
		require.Equal(t, 408, run.Error.Status)
		require.True(t, strings.HasSuffix(run.Error.Type, "/timeout"), run.Error.Type)
		require.Equal(t, []string{"pause:canceled"}, platform.Statuses(s.Steps(t, run.ID)))
	})
}

func TestNumbersKeepEveryDigit(t *testing.T) {
	eachServer(t, func(t *testing.T, s *platform.Server) {
		name := s.Publish(t, platform.Document("digits",
			"  - echo:\n      set:\n        same: ${ .n }\n        more: ${ .n + 1 }\n"))
		const n = "12345678901234567890"
		r := s.CLIWithInput(t, `{"n": `+n+`}`, "run", "start", name, "--input", "-", "--wait", "-o", "json")
		require.Equal(t, platform.ExitOK, r.Code, r.String())
		require.Contains(t, r.Stdout, n)
		require.Contains(t, r.Stdout, "12345678901234567891")

		var run printedRun
		r.JSON(t, &run)
		_, body, err := s.Get(t.Context(), "/v1/projects/default/runs/"+run.ID)
		require.NoError(t, err)
		require.Contains(t, body, n)
	})
}

// An absent input is null, and {} is not absent.
func TestEmptyAndAbsentInputDiffer(t *testing.T) {
	eachServer(t, func(t *testing.T, s *platform.Server) {
		name := s.Publish(t, platform.Document("kind", "  - tell:\n      set:\n        kind: ${ $workflow.input | type }\n"))
		for input, kind := range map[string]string{"": "null", "{}": "object", "null": "null", "[]": "array", "0": "number"} {
			run := s.Await(t, s.Start(t, name, input).GetId(), soon, "completed")
			require.JSONEq(t, `{"kind":"`+kind+`"}`, run.GetOutput().GetJson(), "input %q", input)
		}
	})
}

func TestRequestIDMakesOneRun(t *testing.T) {
	eachServer(t, func(t *testing.T, s *platform.Server) {
		o := origin.New(t)
		o.Answer("POST /order", 200, `{}`)
		name := s.Publish(t, platform.Document("once", postStep("order", o.URL+"/order")))

		const callers = 20
		var wg sync.WaitGroup
		ids, created := make([]string, callers), make([]bool, callers)
		for i := range callers {
			wg.Go(func() {
				res, err := s.Runs.StartRun(t.Context(), connect.NewRequest(&signalboxv1.StartRunRequest{
					Project: platform.DefaultProject, Workflow: name, RequestId: name + "-42",
				}))
				if err == nil {
					ids[i], created[i] = res.Msg.GetRun().GetId(), res.Msg.GetCreated()
				}
			})
		}
		wg.Wait()
		makers := 0
		for i := range callers {
			require.Equal(t, ids[0], ids[i])
			if created[i] {
				makers++
			}
		}
		require.NotEmpty(t, ids[0])
		require.Equal(t, 1, makers)
		s.Await(t, ids[0], soon, "completed")
		require.Len(t, s.AllRuns(t, name, 50), 1)
		require.Len(t, o.Calls("POST /order"), 1)

		again := s.CLI(t, "run", "start", name, "--request-id", name+"-42", "--wait", "-o", "json")
		var run printedRun
		again.JSON(t, &run)
		require.Equal(t, ids[0], run.ID)

		other := s.Publish(t, platform.Document("other", hello))
		requireOneLine(t, s.CLI(t, "run", "start", other, "--request-id", name+"-42"), platform.ExitConflict, "request ID",
			ids[0])
	})
}

func TestSchemasOfInputAreChecked(t *testing.T) {
	eachServer(t, func(t *testing.T, s *platform.Server) {
		head := "input:\n  schema:\n    format: json\n    document:\n      type: object\n      required: [sku]\n      " +
			"properties:\n        sku: {type: string}\n"
		name := s.Publish(t, platform.Document("checked", hello, head))
		requireOneLine(t, s.CLI(t, "run", "start", name, "--input", `{"sku":7}`), platform.ExitFailed, "sku")
		_, err := s.TryStart(t.Context(), name, `{}`)
		reason, code := platform.Reason(err)
		require.Equal(t, "INVALID_INPUT", reason)
		require.Equal(t, connect.CodeInvalidArgument, code)
		require.Empty(t, s.AllRuns(t, name, 50), "a refused start leaves no row")
	})
}

func TestShowStepsAndWatch(t *testing.T) {
	eachServer(t, func(t *testing.T, s *platform.Server) {
		o := origin.New(t)
		gate := o.Hold("POST /charge", 200, `{"ok":true}`)
		name := s.Publish(t, platform.Document("watched", hello+postStep("charge", o.URL+"/charge")))
		id := s.Start(t, name, "").GetId()
		<-gate.Arrived

		var open printedRun
		s.CLI(t, "run", "show", id, "-o", "json").JSON(t, &open)
		require.Equal(t, "running", open.Status)

		ctx, cancel := context.WithTimeout(t.Context(), soon)
		defer cancel()
		ended := make(chan string, 1)
		go func() {
			run, err := s.Watch(ctx, id)
			if err != nil {
				ended <- err.Error()
				return
			}
			ended <- run.GetStatus()
		}()
		gate.Open()
		require.Equal(t, "completed", <-ended)

		r := s.CLI(t, "run", "steps", id, "-o", "json")
		require.Equal(t, platform.ExitOK, r.Code, r.String())
		require.Contains(t, r.Stdout, `"/do/1/charge"`)
		table := s.CLI(t, "run", "show", id)
		require.Equal(t, platform.ExitOK, table.Code, table.String())
		require.Contains(t, table.Stdout, id)
		require.Contains(t, table.Stdout, "completed")
	})
}
