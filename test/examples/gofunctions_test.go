package examples_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/test/platform"
)

// pricing is the example of a program with Go functions.
type pricing struct{ binary, temporal, key string }

// start starts a process of the program.
func (p pricing) start(t *testing.T) *platform.Process {
	t.Helper()
	return platform.StartProcess(t, "pricing", p.binary, nil, []string{"-temporal", p.temporal, "-key", p.key})
}

// The test follows the example's README: definitions are published, a run waits for the program, whose process is
// killed in the middle of functions.
func TestGoFunctionsExampleServesWorkflows(t *testing.T) {
	t.Parallel()
	temporal := platform.StartTemporal(t)
	s := platform.StartServer(t, platform.ServerOptions{
		Temporal: temporal.Address, Store: platform.SQLite(t), Env: []string{"SIGNALBOX_RUNS_STUCK_AFTER=5s"},
	})
	_, key, _ := strings.Cut(platform.WithKeys(t), "=")
	program := pricing{platform.BuildExample(t, "gofunctions"), temporal.Address, key}
	publishDefinitions(t, s, program)
	source, err := os.ReadFile("../../examples/gofunctions/order.yaml")
	require.NoError(t, err)
	workflow := s.Publish(t, string(source))

	waiting := s.Start(t, workflow, `{"article": "book", "quantity": 2}`).GetId()
	platform.Eventually(t, 2*time.Minute, func() string {
		v := s.Run(t, waiting).GetStuck()
		if v.GetCode() == "NO_POLLER" {
			require.Contains(t, v.GetDetail(), "no program polls task queue signalbox.function-default/pricing")
			return ""
		}
		return "the verdict is " + v.GetCode()
	})
	first := program.start(t)
	run := s.Await(t, waiting, time.Minute, "completed")
	require.Contains(t, run.GetOutput().GetJson(), `"amount":2500`)
	require.Contains(t, run.GetOutput().GetJson(), `"reservation":"reservation-`+waiting)
	run = s.Await(t, s.Start(t, workflow, `{"article": "pencil", "quantity": 1}`).GetId(), time.Minute, "completed")
	require.JSONEq(t, `{"refused": "there is no article pencil"}`, run.GetOutput().GetJson())
	run = s.Await(t, s.Start(t, workflow, `{"article": 7, "quantity": 1}`).GetId(), time.Minute, "failed")
	require.Contains(t, run.GetError().GetType(), "validation")

	// a reservation may have been made, so only the task that permits it is executed again
	lost := s.Start(t, workflow, `{"article": "pen", "quantity": 120}`).GetId()
	repeated := s.Start(t, s.Publish(t, platform.Document("repeated", `
  - reserve: {call: 'reserve:1.0.0@default', metadata: {signalbox.repeat: allowed}}
`)), `{"article": "pen", "quantity": 40}`).GetId()
	for _, id := range []string{lost, repeated} {
		platform.Eventually(t, time.Minute, func() string {
			if !strings.Contains(first.Output(), "key="+id) {
				return "the reservation has not begun"
			}
			return ""
		})
	}
	first.Kill()
	program.start(t)
	run = s.Await(t, lost, time.Minute, "failed")
	require.Equal(t, "Outcome unknown", run.GetError().GetTitle())
	require.Equal(t, "/do/1/reserve", run.GetError().GetInstance())
	s.Await(t, repeated, 2*time.Minute, "completed")
	for _, step := range s.Steps(t, repeated) {
		if step.GetKind() == "call" && strings.HasSuffix(step.GetPath(), "/call/reserve") {
			require.Len(t, step.GetAttempts(), 2)
		}
	}
}

// publishDefinitions publishes the functions of a program as it says.
func publishDefinitions(t *testing.T, s *platform.Server, p pricing) {
	t.Helper()
	folder := t.TempDir()
	said := platform.StartProcess(t, "definitions", p.binary, nil, []string{"-definitions", folder})
	code, ended := said.WaitFor(limit)
	require.True(t, ended && code == 0, said.Output())
	lines := strings.Split(strings.TrimSpace(said.Output()), "\n")
	require.Len(t, lines, 2)
	for _, line := range lines {
		published := s.CLI(t, strings.Fields(line)[1:]...)
		require.Zero(t, published.Code, published.Stderr)
	}
}
