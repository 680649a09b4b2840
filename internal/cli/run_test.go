package cli_test

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/types/known/timestamppb"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/cli/exit"
	"github.com/signalbox-dev/signalbox/internal/cli/output"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	soon = time.Minute
	tick = 2 * time.Millisecond
)

func sh(t *testing.T) (*shell, *api) {
	t.Helper()
	a := newAPI()
	address, _ := serve(t, a, "")
	return newShell(t, address), a
}

func eventually(t *testing.T, c *command, text string) {
	t.Helper()
	require.Eventually(t, func() bool { return strings.Contains(c.err.String()+c.out.String(), text) }, soon, tick,
		"%q never appeared", text)
}

func TestRunStartPrintsRunImmediately(t *testing.T) {
	t.Parallel()
	shell, a := sh(t)
	c := shell.run(t, "run", "start", "hello", "--input", `{"n": 12345678901234567890}`, "--request-id", "r-1", "-o",
		"json")
	require.Zero(t, c.code, c.err.String())
	var run map[string]any
	require.NoError(t, json.Unmarshal([]byte(c.out.String()), &run))
	require.Equal(t, "run-1", run["id"])
	require.Equal(t, "running", run["status"])
	require.Contains(t, c.out.String(), `"n": 12345678901234567890`, "every digit")
	request := last[*signalboxv1.StartRunRequest](t, a)
	require.Equal(t, "default", request.GetProject())
	require.Equal(t, "r-1", request.GetRequestId())

	again := shell.run(t, "run", "start", "hello", "--request-id", "r-1")
	require.Zero(t, again.code)
	require.Contains(t, again.out.String(), "run-1")
	require.Contains(t, again.err.String(), "this run was started before with the request ID r-1")
	c = shell.run(t, "run", "start", "hello")
	require.NotEmpty(t, last[*signalboxv1.StartRunRequest](t, a).GetRequestId(), "a repeated attempt must be recognisable")
	require.Nil(t, last[*signalboxv1.StartRunRequest](t, a).GetInput(), "absent is not {}")
	require.Contains(t, c.err.String(), "signalbox run watch run-2")
}

func TestInputComesFromTextFileOrStandardInput(t *testing.T) {
	t.Parallel()
	shell, a := sh(t)
	file := filepath.Join(t.TempDir(), "in.json")
	require.NoError(t, os.WriteFile(file, []byte("\n {\"from\": \"file\"}\n"), 0o600))
	shell.stdin = `{"from": "stdin"}`
	for input, want := range map[string]string{
		`{"from": "text"}`: `{"from": "text"}`, file: `{"from": "file"}`, "-": `{"from": "stdin"}`, "7": "7", "null": "null",
		"{}": "{}",
	} {
		require.Zero(t, shell.run(t, "run", "start", "hello", "--input", input).code, input)
		require.Equal(t, want, last[*signalboxv1.StartRunRequest](t, a).GetInput().GetJson())
	}
	requireRefusal(t, shell.run(t, "run", "start", "hello", "--input", "nowhere.json"), exit.Usage,
		`"nowhere.json" is neither JSON nor a file`)
	requireRefusal(t, shell.run(t, "run", "start", "hello", "--input", "{"), exit.Usage, "is not JSON")
	require.NoError(t, os.WriteFile(file, []byte("{\n  \"a\": x\n}"), 0o600))
	requireRefusal(t, shell.run(t, "run", "start", "hello", "--input", file), exit.Usage, "in.json", "line 2, column 8")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	requireRefusal(t, shell.run(t, "run", "start", "hello", "--input", file), exit.Usage, "is empty")
}

func TestWaitExitCodeFollowsRunStatus(t *testing.T) {
	t.Parallel()
	problem := &signalboxv1.RunError{
		Type: "https://example.com/oops", Status: 500, Title: "Oops", Detail: "no luck", Instance: "/do/0/greet"}
	tests := []struct {
		status string
		change func(*signalboxv1.Run)
		code   int
	}{
		{"completed", func(r *signalboxv1.Run) { r.Output = &signalboxv1.JsonValue{Json: `{"message":"hello"}`} }, exit.OK},
		{"failed", func(r *signalboxv1.Run) { r.Error = problem }, exit.RunFailed},
		{"canceled", nil, exit.RunCanceled},
		{"terminated", nil, exit.RunCanceled},
		{"timed_out", func(r *signalboxv1.Run) { r.Error = problem }, exit.RunTimedOut},
	}
	for _, test := range tests {
		t.Run(test.status, func(t *testing.T) {
			t.Parallel()
			shell, a := sh(t)
			c := shell.start(t.Context(), "run", "start", "hello", "--wait", "-o", "json")
			eventually(t, c, "run running")
			a.put("run-1", &signalboxv1.Step{Number: 1, Path: "/do/0/greet", Task: "greet", Kind: "set", Status: "completed"})
			eventually(t, c, "1 completed greet (set) /do/0/greet")
			a.end(t, "run-1", test.status, test.change)
			<-c.done
			require.Equal(t, test.code, c.code, c.err.String())
			var run struct {
				Status string            `json:"status"`
				Output map[string]string `json:"output"`
				Error  map[string]any    `json:"error"`
			}
			require.NoError(t, json.Unmarshal([]byte(c.out.String()), &run), "data only on stdout: %s", c.out.String())
			require.Equal(t, test.status, run.Status)
			switch test.status {
			case "completed":
				require.Equal(t, map[string]string{"message": "hello"}, run.Output)
			case "failed":
				require.Equal(t, map[string]any{
					"type": "https://example.com/oops", "status": 500., "title": "Oops", "detail": "no luck",
					"instance": "/do/0/greet",
				}, run.Error)
				require.Contains(t, c.err.String(), "500 Oops: no luck (at /do/0/greet)")
			}
		})
	}
}

func TestWaitSurvivesServerRestart(t *testing.T) {
	t.Parallel()
	a := newAPI()
	address, stop := serve(t, a, "")
	shell := newShell(t, address)
	c := shell.start(t.Context(), "run", "start", "hello", "--wait", "-o", "json")
	a.awaitRun(t)
	a.put("run-1", &signalboxv1.Step{Number: 1, Path: "/do/0/greet", Status: "running"})
	eventually(t, c, "1 running")
	stop()
	eventually(t, c, "connection lost; waiting for Signalbox at "+address)
	a.put("run-1", &signalboxv1.Step{Number: 1, Path: "/do/0/greet", Status: "completed"})
	serve(t, a, address)
	eventually(t, c, "connected again")
	a.end(t, "run-1", "completed", nil)
	<-c.done
	require.Zero(t, c.code, c.err.String())
	require.Contains(t, c.out.String(), `"status": "completed"`)
	require.Equal(t, 1, strings.Count(c.err.String(), "connection lost"), "said once")
	require.Equal(t, 1, strings.Count(c.err.String(), "1 running"), "nothing is shown twice: %s", c.err.String())
	require.Positive(t, last[*signalboxv1.WatchRunRequest](t, a).GetAfterSequence(), "resumed, not begun again")
}

func TestInterruptedWatchIsResumed(t *testing.T) {
	t.Parallel()
	shell, a := sh(t)
	c := shell.start(t.Context(), "run", "start", "hello", "--wait")
	eventually(t, c, "run running")
	a.mu.Lock()
	close(a.drop) // as a server that stops in good order
	a.drop = make(chan struct{})
	a.mu.Unlock()
	a.end(t, "run-1", "completed", nil)
	<-c.done
	require.Zero(t, c.code, c.err.String())
}

func TestInterruptDoesNotAffectRun(t *testing.T) {
	t.Parallel()
	shell, _ := sh(t)
	for _, args := range [][]string{{"run", "start", "hello", "--wait"}, {"run", "watch", "run-1"}} {
		ctx, interrupt := context.WithCancel(t.Context())
		c := shell.start(ctx, args...)
		eventually(t, c, "run running")
		interrupt()
		<-c.done
		require.Equal(t, exit.Interrupted, c.code)
		require.Contains(t, c.err.String(), `run "run-1" continues`)
	}
}

func TestWaitTimeout(t *testing.T) {
	t.Parallel()
	shell, _ := sh(t)
	c := shell.run(t, "run", "start", "hello", "--wait", "--timeout", "1s")
	require.Equal(t, exit.RunTimedOut, c.code)
	require.Contains(t, c.err.String(), "has not ended within --timeout; it continues")
}

func TestWatchShowsLinesOrRecords(t *testing.T) {
	t.Parallel()
	shell, a := sh(t)
	require.Zero(t, shell.run(t, "run", "start", "hello").code)
	at := func(second int) *timestamppb.Timestamp {
		return timestamppb.New(time.Date(2026, 1, 31, 12, 0, second, 0, time.UTC))
	}
	a.put("run-1", &signalboxv1.Step{
		Number: 1, Path: "/do/0/a", Task: "a", Kind: "set", Status: "completed", StartTime: at(0), EndTime: at(2)})
	a.put("run-1", &signalboxv1.Step{
		Number: 2, Path: "/do/1/b", Task: "b", Kind: "wait", Status: "waiting", WaitingKind: "timer", WaitUntil: at(9)})
	lines := shell.start(t.Context(), "run", "watch", "run-1")
	records := shell.start(t.Context(), "run", "watch", "run-1", "-o", "json")
	eventually(t, lines, "2 waiting")
	eventually(t, records, `"waiting"`)
	a.put("run-1", &signalboxv1.Step{
		Number: 3, Path: "/do/2/c\x1b[2J", Task: "c\x1b[2J", Kind: "call", Status: "failed",
		Attempts: []*signalboxv1.Attempt{{}, {}}, Error: &signalboxv1.RunError{Title: "Not there", Status: 404}})
	eventually(t, lines, "3 failed")
	a.end(t, "run-1", "failed", nil)
	<-lines.done
	<-records.done
	require.Equal(t, exit.RunFailed, lines.code)
	require.Equal(t, `12:00:02 1 completed a (set) 2s /do/0/a
--:--:-- 2 waiting b (wait) (timer until 12:00:09Z) /do/1/b
12:00:02 run running demo/hello 1.0.0
--:--:-- 3 failed c\u001b[2J (call) try 2 /do/2/c\u001b[2J: 404 Not there
12:00:02 run failed demo/hello 1.0.0
`, lines.out.String())
	require.Equal(t, exit.RunFailed, records.code)
	var statuses []string
	for line := range strings.Lines(records.out.String()) {
		var message struct {
			Run struct {
				Status string `json:"status"`
			} `json:"run"`
		}
		require.NoError(t, json.Unmarshal([]byte(line), &message), "one object per line")
		statuses = append(statuses, message.Run.Status)
	}
	require.Equal(t, "running", statuses[0])
	require.Equal(t, "failed", statuses[len(statuses)-1])
}

func TestRunListPagesAndFilters(t *testing.T) {
	t.Parallel()
	shell, a := sh(t)
	for range 5 {
		require.Zero(t, shell.run(t, "run", "start", "hello").code)
	}
	a.end(t, "run-2", "completed", nil)
	count := func(args ...string) int {
		c := shell.run(t, append([]string{"run", "list", "-o", "json"}, args...)...)
		require.Zero(t, c.code, c.err.String())
		var runs []map[string]any
		require.NoError(t, json.Unmarshal([]byte(c.out.String()), &runs))
		return len(runs)
	}
	require.Equal(t, 5, count())
	require.Equal(t, 3, count("--limit", "3"))
	require.Contains(t, shell.run(t, "run", "list", "--limit", "3").err.String(),
		"3 runs shown; there are more: --limit 0 lists all")
	require.Contains(t, shell.run(t, "run", "list", "--limit", "1").err.String(), "1 run shown; there are more")
	require.Empty(t, shell.run(t, "run", "list", "--limit", "5").err.String())
	require.Equal(t, 5, count("--limit", "0", "--status", "failed,timed_out", "--workflow", "demo/hello", "--version",
		"1.0.0",
		"--since", "2026-01-01T00:00:00Z", "--until", "2026-02-01", "--request-id", "q", "--order", "oldest", "--project",
		"shop"))
	request := last[*signalboxv1.ListRunsRequest](t, a)
	require.Equal(t, []string{"failed", "timed_out"}, request.GetFilter().GetStatuses())
	require.Equal(t, "shop", request.GetProject())
	require.Equal(t, "oldest", request.GetOrder())
	require.Equal(t, "2026-01-01T00:00:00Z", request.GetFilter().GetSince().AsTime().Format(time.RFC3339))
	require.Equal(t, "2026-02-01T00:00:00Z", request.GetFilter().GetUntil().AsTime().Format(time.RFC3339))
	count("--since", "7d")
	require.WithinDuration(t, time.Now().Add(-7*24*time.Hour),
		last[*signalboxv1.ListRunsRequest](t, a).GetFilter().GetSince().AsTime(), time.Minute)

	for _, command := range [][]string{
		{"run", "list"}, {"run", "export"}, {"batch", "start", "--action", "cancel", "--reason", "x"}} {
		requireRefusal(t, shell.run(t, append(command, "--version", "1.0.0")...), exit.Usage,
			"--version 1.0.0 requires --workflow")
	}
	count("--stuck", "no_poller,BACKLOG", "--trigger", "event", "--text", "order-", "--failure-group", "00aa11bb22cc33dd")
	request = last[*signalboxv1.ListRunsRequest](t, a)
	require.Equal(t, []string{"NO_POLLER", "BACKLOG"}, request.GetFilter().GetStuck(), "codes in whatever case")
	require.Equal(t, []string{"event", "order-", "00aa11bb22cc33dd"},
		[]string{request.GetFilter().GetTrigger(), request.GetFilter().GetText(), request.GetFilter().GetFailureGroup()})
	count("--stuck", "any")
	require.Equal(t, []string{"any"}, last[*signalboxv1.ListRunsRequest](t, a).GetFilter().GetStuck())
	for _, wrong := range [][]string{{"--stuck", "slow"}, {"--trigger", "me"}} {
		require.NotZero(t, shell.run(t, append([]string{"run", "list"}, wrong...)...).code)
	}

	table := shell.run(t, "run", "list")
	require.Regexp(t, `(?m)^ID +WORKFLOW +VERSION +STATUS +REASON +STUCK +ERROR +STEPS +DURATION +AGE$`,
		table.out.String())
	require.Regexp(t, `(?m)^run-2 +demo/hello +1.0.0 +completed +none +1.5s +\d+[hd]$`, table.out.String())
	require.NotContains(t, table.out.String(), "\x1b", "no colours off a terminal")
	require.Contains(t, shell.run(t, "run", "list", "-o", "wide").out.String(), "REQUEST ID")

	empty, _ := sh(t)
	nothing := empty.run(t, "run", "list")
	require.Empty(t, nothing.out.String())
	require.Equal(t, "no runs match in project default\n", nothing.err.String())
	require.Equal(t, "[]\n", empty.run(t, "run", "list", "-o", "json").out.String())
}

func TestStepsShowTheRequestsOfCalls(t *testing.T) {
	t.Parallel()
	shell, a := sh(t)
	require.Zero(t, shell.run(t, "run", "start", "hello").code)
	at := func(second int) *timestamppb.Timestamp {
		return timestamppb.New(time.Date(2026, 1, 31, 12, 0, second, 0, time.UTC))
	}
	answered := &signalboxv1.Attempt{
		Number: 1, StartTime: at(0), EndTime: at(2), Outcome: "answered", HttpStatus: new(int32(200))}
	a.put("run-1", &signalboxv1.Step{
		Number: 1, Task: "plain", Kind: "set", Status: "completed",
		Attempts: []*signalboxv1.Attempt{{Number: 1, StartTime: at(0), EndTime: at(1)}}})
	a.put("run-1", &signalboxv1.Step{
		Number: 2, Task: "once", Kind: "call", Status: "completed", Attempts: []*signalboxv1.Attempt{answered}})
	require.NotContains(t, shell.run(t, "run", "steps", "run-1").out.String(), "OUTCOME", "there is nothing to look at")
	a.put("run-1", &signalboxv1.Step{
		Number: 3, Task: "again", Kind: "call", Status: "running", Attempts: []*signalboxv1.Attempt{
			{Number: 1, EndTime: at(3), Outcome: "unknown"},
			{Number: 2, StartTime: at(3), EndTime: at(7), Outcome: "answered", HttpStatus: new(int32(503))},
			{Number: 3, StartTime: at(8)},
		}})
	a.put("run-1", &signalboxv1.Step{
		Number: 4, Task: "lost", Kind: "call", Status: "failed", Attempts: []*signalboxv1.Attempt{
			{Number: 1, StartTime: at(1), EndTime: at(2), Outcome: "unknown"},
		}})
	rows := func(args ...string) string {
		text := shell.run(t, append([]string{"run", "steps", "run-1"}, args...)...).out.String()
		return strings.Join(strings.FieldsFunc(text[strings.LastIndex(text, "STEP"):], func(r rune) bool {
			return r == ' '
		}), " ")
	}
	moment := func(second int) string { return output.Moment(at(second)) }
	short := strings.NewReplacer("S0", moment(0), "S1", moment(1), "S2", moment(2), "S3", moment(3), "S7", moment(7), "S8",
		moment(8))
	require.Equal(t, short.Replace("STEP TASK ATTEMPT STARTED DURATION OUTCOME HTTP REQUEST\n"+
		"3 again 1 unknown unknown unknown\n3 again 2 S3 4s answered 503\n3 again 3 S8 open\n4 lost 1 S1 1s "+
		"unknown\n"), rows())
	require.Contains(t, rows("-o", "wide"), short.Replace("2 once 1 S0 2s answered 200 S2\n"))
}

func TestRunShowStepsAndCancel(t *testing.T) {
	t.Parallel()
	shell, a := sh(t)
	require.Zero(t, shell.run(t, "run", "start", "hello", "--input", `{"name":"Ada"}`).code)
	a.put("run-1", &signalboxv1.Step{
		Number: 1, Path: "/do/0/for/12/do/0/x", Task: "x", Kind: "set", Status: "completed",
		Output: &signalboxv1.JsonValue{Json: "[1.50]"}})
	shown := shell.run(t, "run", "show", "run-1")
	require.Regexp(t, `(?m)^status +running$`, shown.out.String())
	require.Regexp(t, `(?m)^input +\{"name":"Ada"\}$`, shown.out.String())
	require.Regexp(t, `(?m)^1 +x +set +completed +1 +/do/0/for/12/do/0/x$`,
		strings.ReplaceAll(shell.run(t, "run", "steps", "run-1").out.String(), "  ", " "))
	require.Contains(t, shell.run(t, "run", "steps", "run-1", "-o", "yaml").out.String(), "- 1.50\n",
		"numbers as they are")

	wide := shell.run(t, "run", "show", "run-1", "-o", "wide").out.String()
	require.Regexp(t, `(?m)^trigger +api$`, wide)
	require.NotContains(t, shown.out.String(), "trigger")
	long := shell.run(t, "run", "start", "hello", "--input", `{"text":"`+strings.Repeat("x", 90)+`"}`)
	require.Contains(t, long.out.String(), "input\n  {\n    \"text\": \"xxx", "long values stand below their name")

	canceled := shell.run(t, "run", "cancel", "run-1", "--reason", "wrong customer", "-o", "json")
	require.Zero(t, canceled.code)
	require.Contains(t, canceled.out.String(), `"cancelReason": "wrong customer"`)
	require.Contains(t, shell.run(t, "run", "show", "run-1").out.String(), "cancel requested: wrong customer")
	a.end(t, "run-1", "completed", nil)
	requireRefusal(t, shell.run(t, "run", "cancel", "run-1"), exit.Refused, `cancel run "run-1"`, "has ended",
		"[RUN_ENDED]")
	for _, verb := range []string{"show", "steps", "watch", "cancel"} {
		requireRefusal(t, shell.run(t, "run", verb, "nope"), exit.NotFound, `"nope"`, "RUN_NOT_FOUND", "signalbox run list")
	}
}

func TestRefusedStartsHaveReasonAndRetryDelay(t *testing.T) {
	t.Parallel()
	shell, a := sh(t)
	a.refuse = retryLater()
	requireRefusal(t, shell.run(t, "run", "start", "hello"), exit.Unavailable, `start a run of "hello"`,
		"Temporal at 127.0.0.1:7233", "try again in 2s", "ENGINE_UNAVAILABLE")
	a.refuse = refusal(connect.CodeInvalidArgument, "INVALID_INPUT", "the input does not fit", &errdetails.BadRequest{
		FieldViolations: []*errdetails.BadRequest_FieldViolation{{Field: "input/sku", Description: "expected a string"}},
	})
	requireRefusal(t, shell.run(t, "run", "start", "hello"), exit.Failed,
		"the input does not fit; input/sku: expected a string [INVALID_INPUT]")
	a.refuse = refusal(connect.CodeInvalidArgument, "INVALID_INPUT", "the input does not fit: expected a string",
		&errdetails.BadRequest{
			FieldViolations: []*errdetails.BadRequest_FieldViolation{{Field: "input/sku", Description: "expected a string"}},
		})
	requireRefusal(t, shell.run(t, "run", "start", "hello"), exit.Failed,
		"does not fit: expected a string [INVALID_INPUT]")
	a.refuse = refusal(connect.CodeInternal, "INTERNAL", "two\nlines \x1b[2J")
	requireRefusal(t, shell.run(t, "run", "start", "hello"), exit.Failed, `two lines \u001b[2J`)
	a.refuse = connect.NewError(connect.CodeDeadlineExceeded, nil)
	requireRefusal(t, shell.run(t, "run", "start", "hello", "--request-id", "q-7"), exit.Unavailable,
		"it is unknown whether the run was started", "--request-id q-7")
}

// TestServerClosesConnectionDuringCall: a connection that breaks after the request was received is not an interrupt by
// the caller.
func TestServerClosesConnectionDuringCall(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			err = conn.(*net.TCPConn).SetLinger(0)
		}
		if err != nil {
			t.Error(err)
			return
		}
		_ = conn.Close()
	}))
	t.Cleanup(server.Close)
	shell := newShell(t, server.URL)
	// how it broke is seen in one way or another
	requireRefusal(t, shell.run(t, "run", "list"), exit.Unavailable, "cannot be reached")
	requireRefusal(t, shell.run(t, "run", "start", "hello"), exit.Unavailable, "it is unknown whether the run was started")
}

func TestNoServer(t *testing.T) {
	t.Parallel()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := listener.Addr().String()
	require.NoError(t, listener.Close())
	shell := newShell(t, address)
	for _, args := range [][]string{
		{"run", "list"}, {"run", "start", "hello"}, {"run", "start", "hello", "--wait"}, {"run", "watch", "run-1"}} {
		c := shell.run(t, args...)
		requireRefusal(t, c, exit.Unavailable, address, "cannot be reached", "connection refused", "--address")
		require.NotContains(t, c.err.String(), "it is unknown whether", "nothing was sent")
	}
}

func TestRunShowHasFailedStepAndControls(t *testing.T) {
	t.Parallel()
	shell, a := sh(t)
	require.Zero(t, shell.run(t, "run", "start", "hello").code)
	a.end(t, "run-1", "failed", func(run *signalboxv1.Run) {
		run.FailedStep = &signalboxv1.FailedStep{
			Number: 41, Path: "/do/3/reserve", Pointer: "/do/3/reserve", Task: "reserve", Attempts: 5}
		run.ControlStates = []*signalboxv1.ControlState{
			{Control: "cancel", Effect: "refused", Reason: "RUN_ENDED", Detail: "The run has ended already: it is failed"},
			{Control: "replay", Effect: "forbidden", Reason: "PERMISSION_DENIED", Detail: "Needs operator in shop"},
			{Control: "export", Effect: "yes"},
		}
		run.Temporal = &signalboxv1.TemporalReference{Url: "http://localhost:8233/x"}
	})
	require.Regexp(t, `(?m)^failed step +41 /do/3/reserve, 5 attempts$`, shell.run(t, "run", "show", "run-1").out.String())
	wide := shell.run(t, "run", "show", "run-1", "-o", "wide").out.String()
	require.Regexp(t, `(?m)^temporal ui +http://localhost:8233/x$`, wide)
	require.Regexp(t, `(?m)^not now\n +cancel: The run has ended already: it is failed\n +replay: Needs operator in shop$`,
		wide)
}

func TestListIsWatched(t *testing.T) {
	t.Parallel()
	shell, a := sh(t)
	require.Zero(t, shell.run(t, "run", "start", "hello").code)
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	table := shell.start(ctx, "run", "list", "--status", "running", "--watch")
	records := shell.start(ctx, "run", "list", "--watch", "--limit", "7", "-o", "json")
	eventually(t, table, "run-1 running demo/hello 1.0.0\n")
	eventually(t, records, `"running"`)
	a.end(t, "run-1", "failed", func(run *signalboxv1.Run) { run.Error = &signalboxv1.RunError{Title: "Not\x1b there"} })
	eventually(t, table, `run-1 failed demo/hello 1.0.0 Not\u001b there [no longer matches]`)
	eventually(t, records, `"failed"`)
	interrupt()
	<-table.done
	<-records.done
	require.Equal(t, exit.Interrupted, table.code)
	for line := range strings.Lines(records.out.String()) {
		require.True(t, json.Valid([]byte(line)), "one object per line: %s", line)
	}
	for _, wrong := range [][]string{{"--limit", "0"}, {"--limit", "201"}, {"-o", "yaml"}} {
		c := shell.run(t, append([]string{"run", "list", "--watch"}, wrong...)...)
		require.Equal(t, exit.Usage, c.code, wrong)
	}
}

func TestStepsAreFilteredAndSummarized(t *testing.T) {
	t.Parallel()
	shell, a := sh(t)
	a.runs = append(a.runs, &signalboxv1.Run{Id: "run-1", Project: "default", Status: "running"})
	a.steps["run-1"] = []*signalboxv1.Step{{
		Number: 1, Task: "x", Kind: "call", Status: "failed", Path: "/do/0/x",
		Input:     &signalboxv1.JsonValue{Json: `{"n":1.50}`},
		StartTime: timestamppb.New(time.Unix(1, 0)), EndTime: timestamppb.New(time.Unix(2, 0)),
		Attempts: []*signalboxv1.Attempt{
			{Number: 1, Outcome: "answered", HttpStatus: new(int32(503)), Method: "POST", Host: "stock.example:8443"},
			{Number: 2, Outcome: "unknown"},
		},
	}}
	c := shell.run(t, "run", "steps", "run-1", "--pointer", "/do/0/x", "--parent", "/", "--status", "failed,waiting",
		"--text", "stock", "--basic", "--newest")
	require.Zero(t, c.code, c.err.String())
	sent := last[*signalboxv1.ListStepsRequest](t, a)
	require.Equal(t, []any{"/do/0/x", "/", []string{"failed", "waiting"}, "stock", "basic", "newest"},
		[]any{sent.GetPointer(), sent.GetParentPath(), sent.GetStatuses(), sent.GetText(), sent.GetView(), sent.GetOrder()})

	c = shell.run(t, "run", "step", "run-1", "1", "--unredacted")
	require.Zero(t, c.code, c.err.String())
	require.True(t, last[*signalboxv1.GetStepRequest](t, a).GetUnredacted())
	require.Regexp(t, `(?m)^input +\{"n":1.50\}$`, c.out.String())
	require.Contains(t, c.out.String(), "503   POST stock.example:8443\n")
	require.Contains(t, shell.run(t, "run", "step", "run-1", "1", "-o", "json").out.String(),
		`"host": "stock.example:8443"`)
	requireRefusal(t, shell.run(t, "run", "step", "run-1", "2"), exit.NotFound, "STEP_NOT_FOUND")
	requireRefusal(t, shell.run(t, "run", "step", "run-1", "zero"), exit.Usage, "zero")

	c = shell.run(t, "run", "waits", "run-1")
	require.Zero(t, c.code, c.err.String())
	require.Regexp(t, `(?m)^ +paused +unpause: the run is paused$`, c.out.String())
	require.Regexp(t, `(?m)^7 +nap +timer +timer, deadline unknown$`, c.out.String())
	requireRefusal(t, shell.run(t, "run", "waits", "nope"), exit.NotFound, "nope")

	require.Zero(t, shell.run(t, "run", "steps", "run-1", "--caught").code)
	require.Equal(t, new(true), last[*signalboxv1.ListStepsRequest](t, a).Caught)
	require.Zero(t, shell.run(t, "run", "steps", "run-1", "--caught=false").code)
	require.Equal(t, new(false), last[*signalboxv1.ListStepsRequest](t, a).Caught)
	require.Zero(t, shell.run(t, "run", "steps", "run-1").code)
	require.Nil(t, last[*signalboxv1.ListStepsRequest](t, a).Caught)

	c = shell.run(t, "run", "summary", "run-1")
	require.Zero(t, c.code, c.err.String())
	require.Regexp(t, `(?m)^x +call +3 completed, 2 failed +9 +3s +1s +4 +/do/0/x$`, c.out.String())
	require.Regexp(t, `(?m)^y +set +7 completed +unknown `, c.out.String())
	requireRefusal(t, shell.run(t, "run", "summary", "nope"), exit.NotFound, "nope")
}

func TestRunCount(t *testing.T) {
	t.Parallel()
	shell, a := sh(t)
	require.Contains(t, shell.run(t, "run", "count").err.String(), "no runs match in project default")
	for range 3 {
		require.Zero(t, shell.run(t, "run", "start", "hello").code)
	}
	a.end(t, "run-2", "failed", nil)
	require.Regexp(t, `(?m)^running +2\nfailed +1$`,
		shell.run(t, "run", "count", "--parent", "p", "--replay-of", "q", "--batch", "b", "--text", "x", "--request-id", "r",
			"--label", "order=1,2", "--label", "a=b").out.String())
	request := last[*signalboxv1.CountRunsRequest](t, a)
	require.Equal(t, []string{"p", "q", "b", "x", "r"},
		[]string{request.GetFilter().GetParentRunId(), request.GetFilter().GetReplayOf(), request.GetFilter().GetBatchId(),
			request.GetFilter().GetText(), request.GetRequestId()})
	require.Equal(t, []string{"order=1,2", "a=b"}, request.GetFilter().GetLabels())

	counted := shell.run(t, "run", "count", "--since", "2026-01-01T00:00:00Z", "--until", "2026-01-01T03:00:00Z",
		"--bucket", "2h").out.String()
	require.Regexp(t, `(?m)^START +RUNS +QUEUED +RUNNING +.*TIMED OUT$`, counted)
	require.Regexp(t, `(?m)^2026-01-01T00:00:00Z +3 +0 +2 +0 +0 +1 `, counted)
	require.Regexp(t, `(?m)^2026-01-01T02:00:00Z +0 +0 `, counted)
	requireRefusal(t, shell.run(t, "run", "count", "--bucket", "1h"), exit.Usage, "--since")
	requireRefusal(t, shell.run(t, "run", "count", "--since", "1d", "--bucket", "-1h"), exit.Usage, "no length of time")
	requireRefusal(t, shell.run(t, "run", "list", "--order", "shortest"), exit.Usage, "newest, oldest")
}

func TestRunLabels(t *testing.T) {
	t.Parallel()
	shell, a := sh(t)
	c := shell.run(t, "run", "start", "hello", "--label", "order=4711", "--label", "text=a = b, c")
	require.Zero(t, c.code, c.err.String())
	require.Regexp(t, `(?m)^labels +order=4711, text=a = b, c$`, c.out.String())
	require.Equal(t, map[string]string{"order": "4711", "text": "a = b, c"},
		last[*signalboxv1.StartRunRequest](t, a).GetLabels())
	require.Contains(t, shell.run(t, "run", "list", "-o", "wide").out.String(), "order=4711, text=a = b, c")
	require.Contains(t, shell.run(t, "run", "show", "run-1", "-o", "json").out.String(), `"order": "4711"`)
	require.Zero(t, shell.run(t, "run", "replay", "run-1", "--reason", "x", "--label", "order=4712").code)
	require.Equal(t, map[string]string{"order": "4712"}, last[*signalboxv1.ReplayRunRequest](t, a).GetLabels())
	require.Zero(t, shell.run(t, "run", "list", "--label", "order=4711").code)
	require.Equal(t, []string{"order=4711"}, last[*signalboxv1.ListRunsRequest](t, a).GetFilter().GetLabels())
	require.Zero(t, shell.run(t, "run", "export", "--label", "order=4711").code)
	require.Equal(t, []string{"order=4711"}, last[*signalboxv1.ExportRunsRequest](t, a).GetFilter().GetLabels())
	require.Zero(t, shell.run(t, "batch", "start", "--action", "cancel", "--reason", "x", "--label", "order=4711",
		"--dry-run").code)
	require.Equal(t, []string{"order=4711"}, last[*signalboxv1.StartBatchRequest](t, a).GetFilter().GetLabels())
	for _, wrong := range [][]string{
		{"run", "start", "hello", "--label", "order"}, {"run", "start", "hello", "--label", "=x"},
		{"run", "list", "--label", "order"},
		{"run", "replay", "run-1", "--reason", "x", "--label", "order"},
	} {
		requireRefusal(t, shell.run(t, wrong...), exit.Usage, "key=value")
	}
	requireRefusal(t, shell.run(t, "run", "start", "hello", "--label", "order=1", "--label", "order=2"), exit.Usage,
		"two values")
}
