package upgrade_test

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"os"
	"testing"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/test/origin"
	"github.com/signalbox-dev/signalbox/test/platform"
)

// The documents of the test's runs, each of which stays open for a while in its own way.
const (
	waits = `  - wait:
      wait: {seconds: 4}
  - done:
      set: {n: '${ .n }', done: waited}
`
	listens = `  - ask:
      listen:
        to:
          one:
            with: {type: test.go-on}
  - done:
      set: {done: heard}
`
	loops = `  - each:
      for: {each: i, in: '${ [range(6)] }'}
      do:
        - call:
            call: http
            with: {method: get, endpoint: '%s/item'}
        - pause:
            wait: {milliseconds: 500}
  - done:
      set: {done: looped}
`
)

// environment is a platform with servers that the test replaces.
type environment struct {
	options platform.ServerOptions
	client  client.Client

	workflows map[string]string
	started   map[string]string // run ID → expected output
}

func (f *environment) server(t *testing.T, binary string, args ...string) *platform.Server {
	t.Helper()
	o := f.options
	o.Binary = binary
	o.Args = append(o.Args, args...)
	return platform.StartServer(t, o)
}

// start starts one run of each kind.
func (f *environment) start(t *testing.T, s *platform.Server) {
	t.Helper()
	for done, name := range f.workflows {
		f.started[s.Start(t, name, fmt.Sprintf(`{"n":%d}`, len(f.started))).GetId()] = done
	}
}

func (f *environment) send(t *testing.T, s *platform.Server) {
	t.Helper()
	_, err := s.Events.PublishEvents(t.Context(), connect.NewRequest(&signalboxv1.PublishEventsRequest{
		Project: platform.DefaultProject,
		Events:  []*signalboxv1.CloudEvent{{Id: rand.Text(), Type: "test.go-on", Source: "/test"}},
	}))
	require.NoError(t, err)
}

// end waits until every run has ended as expected, once, here and in Temporal.
func (f *environment) end(t *testing.T, s *platform.Server) {
	t.Helper()
	for id, done := range f.started {
		r := s.Await(t, id, soon, platform.Ended()...)
		require.Equal(t, "completed", r.GetStatus(), "%v", r)
		require.Equal(t, done, platform.Decode(t, r.GetOutput()).(map[string]any)["done"])
		d, err := f.client.DescribeWorkflowExecution(t.Context(), id, "")
		require.NoError(t, err)
		require.Equal(t, enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED, d.GetWorkflowExecutionInfo().GetStatus())
	}
	require.Len(t, s.AllRuns(t, "", 100), len(f.started), "no run was started twice")
}

func stop(t *testing.T, s *platform.Server) {
	t.Helper()
	s.Terminate()
	code, ended := s.WaitFor(soon)
	require.True(t, ended, "the server does not stop")
	require.Zero(t, code, s.Output())
}

// The test deploys this release over the previous one, rolls it back, and deploys it again, with runs open throughout.
func TestRunsSurviveUpgradeAndRollback(t *testing.T) {
	t.Parallel()
	previous := os.Getenv(previousVariable)
	if previous == "" {
		t.Skipf("%s is not set; scripts/previous.sh reports why, or builds it", previousVariable)
	}
	if !platform.HasPostgres() {
		t.Skipf("%s is not set; `make test` starts a Postgres", platform.PostgresVariable)
	}
	temporal := platform.StartTemporal(t)
	f := &environment{
		options: platform.ServerOptions{Temporal: temporal.Address, Store: platform.Postgres(t)},
		client:  platform.DialTemporal(t, temporal.Address), started: map[string]string{},
	}
	site := origin.New(t)
	site.Answer("GET /item", http.StatusOK, `{"ok":true}`)

	old1, old2 := f.server(t, previous), f.server(t, previous)
	f.workflows = map[string]string{
		"waited": old1.Publish(t, platform.Document("waits", waits)),
		"heard":  old1.Publish(t, platform.Document("listens", listens)),
		"looped": old2.Publish(t, platform.Document("loops", fmt.Sprintf(loops, site.URL))),
	}
	f.start(t, old1)

	// The servers are replaced one after another. Both releases serve runs of both.
	new1 := f.server(t, "")
	f.start(t, old2)
	f.start(t, new1)
	stop(t, old1)
	f.send(t, old2)
	new2 := f.server(t, "")
	stop(t, old2)
	f.start(t, new2)

	// Roll back: the previous release works on the schema of this one, and leaves runs that it does not support to workers
	// that do.
	old3 := f.server(t, previous)
	stop(t, new1)
	stop(t, new2)
	f.start(t, old3)
	f.send(t, old3)

	// Deploy again.
	new3 := f.server(t, "")
	stop(t, old3)
	f.start(t, new3)
	platform.Eventually(t, soon, func() string {
		f.send(t, new3) // runs that have begun to listen since
		for id := range f.started {
			if r := new3.Run(t, id); r.GetStatus() == "waiting" && r.GetWaitingKind() == "event" {
				return "a run still waits for an event"
			}
		}
		return ""
	})
	f.end(t, new3)
}
