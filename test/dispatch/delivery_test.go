package dispatch_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/test/feed"
	"github.com/signalbox-dev/signalbox/test/platform"
	"github.com/signalbox-dev/signalbox/test/promise"
)

// eachPlatform runs a test on a platform of one process with SQLite, and on one of several with Postgres.
func eachPlatform(t *testing.T, test func(t *testing.T, s *platform.Server)) {
	t.Helper()
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		test(t, platform.StartServer(t, singleProcess(t)))
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		test(t, build(t, 1).Server)
	})
}

// singleProcess returns the options of a platform of one process, on SQLite.
func singleProcess(t *testing.T) platform.ServerOptions {
	t.Helper()
	temporal, namespace := shared.Get(t), fmt.Sprintf("n%08x", rand.Uint32())
	temporal.CreateNamespace(t, namespace)
	return platform.ServerOptions{
		Temporal: temporal.Address, Store: platform.SQLite(t), Args: []string{"--temporal-namespace", namespace}}
}

// waitForEvent waits until an event and its deliveries meet a condition.
func waitForEvent(t *testing.T, s *platform.Server, position int64,
	done func(*signalboxv1.GetEventResponse) bool) *signalboxv1.GetEventResponse {
	t.Helper()
	var got *signalboxv1.GetEventResponse
	platform.Eventually(t, soon, func() string {
		res, err := s.Events.GetEvent(t.Context(),
			connect.NewRequest(&signalboxv1.GetEventRequest{Project: platform.DefaultProject, Position: position}))
		if err != nil {
			return err.Error()
		}
		if got = res.Msg; !done(got) {
			return fmt.Sprintf("the event is %v", got)
		}
		return ""
	})
	return got
}

// waitForDelivery waits until the only delivery of an event has a state.
func waitForDelivery(t *testing.T, s *platform.Server, position int64, want string) *signalboxv1.Delivery {
	t.Helper()
	return waitForEvent(t, s, position, func(e *signalboxv1.GetEventResponse) bool {
		return len(e.GetDeliveries()) == 1 && e.GetDeliveries()[0].GetStatus() == want
	}).GetDeliveries()[0]
}

// Events that no workflow accepts, and workflows that cannot be started, do not delay other events.
func TestPoisonEventsDoNotDelayOthers(t *testing.T) {
	eachPlatform(t, func(t *testing.T, s *platform.Server) {
		kind := fmt.Sprintf("io.example.poison%x", time.Now().UnixNano())
		picky := s.Publish(t, platform.Document("picky", "  - note:\n      set: {seen: true}\n",
			fmt.Sprintf("input:\n  schema:\n    document: {type: array, items: {type: object, properties: {data: {type: "+
				"object, required: [mandatory]}}}}\nschedule:\n  on:\n    one:\n      with: {type: %q}\n", kind)))
		s.Publish(t, platform.Document("broken", "  - note:\n      set: {seen: true}\n",
			fmt.Sprintf("schedule:\n  on:\n    one:\n      with: {type: %q, data: \"${ .no.such | error }\"}\n", kind)))
		s.Publish(t, platform.Document("dear", "  - note:\n      set: {seen: true}\n",
			fmt.Sprintf("schedule:\n  on:\n    one:\n      with: {type: %q, data: \"${ [range(100000000)] | length == 1 }\"}\n",
				kind)))
		poison := feed.New(feed.Options{Type: kind, Servers: []*platform.Server{s}})
		const batch = 100
		for n := range promise.Trials(1, 20) {
			require.Len(t, poison.Send(t.Context(), n*batch, batch), batch)
		}
		first := poison.Accepted()[0]
		sound := kind + ".sound"
		workflow := s.Publish(t, feed.Starter("sound", sound))
		good := feed.New(feed.Options{Type: sound, Servers: []*platform.Server{s}})
		var waited promise.Times
		for n := range 10 {
			sent := time.Now()
			good.Send(t.Context(), n, 1)
			platform.Eventually(t, soon, func() string {
				if got := len(s.AllRuns(t, workflow, 100)); got <= n {
					return fmt.Sprintf("%d of %d valid events have started a run", got, n+1)
				}
				return ""
			})
			waited = append(waited, time.Since(sent))
		}
		feed.Judge(t, feed.Evidence{Feed: good, Server: s, Starts: []string{workflow}, Limit: soon})
		dead := waitForDelivery(t, s, first.Position, "dead")
		require.NotEmpty(t, dead.GetReason())
		require.Equal(t, picky, dead.GetWorkflow())
		require.Empty(t, s.AllRuns(t, picky, 10))
		promise.Within(t, "a sound event behind poison", waited.At(.5), time.Second)
		promise.Record(t, promise.Figure{Promise: "P-D4", What: "sound events behind poison and beside workflows whose " +
			"filters fail: until their run is there", Trials: len(waited), Figure: waited.String()})
	})
}

// The test uses the HTTP binding of CloudEvents, as curl would.
func TestEventsOverHTTP(t *testing.T) {
	eachPlatform(t, func(t *testing.T, s *platform.Server) {
		const path = "/v1/projects/default/events"
		send := func(header http.Header, body string) (int, string) {
			code, text, err := s.Do(t.Context(), http.MethodPost, path, header, strings.NewReader(body))
			require.NoError(t, err)
			return code, text
		}
		kind := fmt.Sprintf("io.example.http%x", time.Now().UnixNano())
		workflow := s.Publish(t, feed.Starter("starts", kind))
		structured := func(id string) string {
			return fmt.Sprintf(`{"specversion":"1.0","id":%q,"source":"/curl","type":%q,"data":{"n":1}}`, id, kind)
		}
		code, body := send(http.Header{"Content-Type": {"application/cloudevents+json"}}, structured("a"))
		require.Equal(t, 202, code, body)
		code, body = send(http.Header{
			"Content-Type": {"application/json"}, "Ce-Specversion": {"1.0"}, "Ce-Id": {"b"}, "Ce-Source": {"/curl"},
			"Ce-Type": {kind}}, `{"n":2}`)
		require.Equal(t, 202, code, body)
		code, body = send(http.Header{"Content-Type": {"application/cloudevents-batch+json"}},
			"["+structured("c")+","+structured("a")+"]")
		require.Equal(t, 202, code, body)
		require.Contains(t, body, `"duplicate":true`, "the second one is a duplicate")
		platform.Eventually(t, soon, func() string {
			if got := len(s.AllRuns(t, workflow, 100)); got != 3 {
				return fmt.Sprintf("%d of 3 events have started a run", got)
			}
			return ""
		})
		for name, bad := range map[string]struct {
			header http.Header
			body   string
		}{
			"no JSON": {http.Header{"Content-Type": {"application/cloudevents+json"}}, "{"},
			"no type": {http.Header{"Content-Type": {"application/cloudevents+json"}},
				`{"specversion":"1.0","id":"x","source":"/curl"}`},
			"another version": {http.Header{"Content-Type": {"application/cloudevents+json"}},
				`{"specversion":"0.3","id":"x","source":"/curl","type":"t"}`},
			"no ID in a header": {http.Header{
				"Content-Type": {"application/json"}, "Ce-Specversion": {"1.0"}, "Ce-Source": {"/curl"}, "Ce-Type": {kind}}, `{}`},
			"one of a batch bad": {http.Header{"Content-Type": {"application/cloudevents-batch+json"}},
				"[" + structured("y") + `,{"specversion":"1.0"}]`},
			"nothing": {http.Header{}, ""},
		} {
			code, body := send(bad.header, bad.body)
			require.GreaterOrEqual(t, code, 400, "%s: %s", name, body)
			require.Less(t, code, 500, "%s: %s", name, body)
		}
		require.Len(t, s.AllRuns(t, workflow, 100), 3, "a batch is accepted or refused as a whole")
	})
}

// Operators send, inspect and redeliver events by the command line.
func TestEventsByCommandLine(t *testing.T) {
	eachPlatform(t, func(t *testing.T, s *platform.Server) {
		kind := fmt.Sprintf("io.example.cli%x", time.Now().UnixNano())
		ok := func(args ...string) platform.Result {
			r := s.CLI(t, args...)
			require.Zero(t, r.Code, r)
			return r
		}
		var answer struct {
			Accepted []struct {
				Position  int64 `json:"position"`
				Duplicate bool  `json:"duplicate"`
			} `json:"accepted"`
		}
		send := func() {
			ok("event", "send", "--type", kind, "--source", "/cli", "--id", "one", "--data", `{"n":1}`, "-o", "json").JSON(t,
				&answer)
		}
		send()
		require.Len(t, answer.Accepted, 1)
		require.False(t, answer.Accepted[0].Duplicate)
		first := answer.Accepted[0].Position
		send()
		require.True(t, answer.Accepted[0].Duplicate)
		require.Equal(t, first, answer.Accepted[0].Position)
		platform.Eventually(t, soon, func() string {
			if r := ok("event", "show", "one", "--source", "/cli"); !strings.Contains(r.Stdout, "unmatched") {
				return r.String()
			}
			return ""
		})
		require.Contains(t, ok("event", "list", "--type", kind).Stdout, kind)
		require.Equal(t, platform.ExitNotFound, s.CLI(t, "event", "show", "--position", "999999999").Code)
		require.Equal(t, platform.ExitUsage, s.CLI(t, "event", "send", "--type", kind).Code)

		// The workflow refuses the event, and accepts it after it is published anew.
		refusing := platform.Document("refuses", "  - note:\n      set: {seen: true}\n",
			fmt.Sprintf("input:\n  schema:\n    document: {type: object}\nschedule:\n  on:\n    one:\n      with: {type: %q}\n",
				kind))
		workflow := s.Publish(t, refusing)
		ok("event", "send", "--type", kind, "--source", "/cli", "--id", "two", "-o", "json").JSON(t, &answer)
		platform.Eventually(t, soon, func() string {
			if r := ok("event", "show", "--position",
				strconv.FormatInt(answer.Accepted[0].Position, 10)); !strings.Contains(r.Stdout, "dead") {
				return r.String()
			}
			return ""
		})
		require.Contains(t, ok("event", "list", "--dead").Stdout, kind)
		require.Empty(t, s.AllRuns(t, workflow, 10))
		s.Publish(t, strings.NewReplacer("1.0.0", "1.0.1", "{type: object}", "{type: array}").Replace(refusing))
		ok("event", "redeliver", "--position", strconv.FormatInt(answer.Accepted[0].Position, 10), "--reason", "tried again")
		done := waitForDelivery(t, s, answer.Accepted[0].Position, "done")
		run := s.Await(t, done.GetRunId(), soon, "completed")
		require.Equal(t, []string{workflow, "1.0.1"}, []string{run.GetWorkflow(), run.GetVersion()})
		require.NotContains(t, ok("event", "list", "--dead").Stdout, kind)
	})
}

// Operators inspect dispatchers and workers by the command line, and the supervisor's plan.
func TestDispatchersByCommandLine(t *testing.T) {
	eachPlatform(t, func(t *testing.T, s *platform.Server) {
		platform.Eventually(t, soon, func() string {
			r := s.CLI(t, "dispatcher", "show", platform.DefaultProject)
			if r.Code != 0 || !strings.Contains(r.Stdout, dispatcherID) || !strings.Contains(r.Stdout, "cold_start") {
				return r.String()
			}
			return ""
		})
		for what, tt := range map[string]struct {
			args []string
			want string
		}{
			"dispatchers": {[]string{"dispatcher", "list"}, `(?s)PROJECT.*\n` + platform.DefaultProject + `\s`},
			"as JSON":     {[]string{"dispatcher", "list", "-o", "json"}, `"workflowId":\s*"` + dispatcherID + `"`},
			"what is stale": {[]string{"dispatcher", "reconcile", "--dry-run"},
				`nothing to do: 1 dispatcher checked in \S+: 1 healthy, 0 stale, 0 unknown`},
			"workers": {[]string{"worker", "list"},
				`^SERVER\s+STATE\s+BUILD\s+PROJECTS\s+HEARTBEAT\s+STALE\s+BUSY\s+REGISTERED`},
			"what they said": {[]string{"worker", "list"},
				`\n\S+\s+alive\s+\S+\s+\w+\s+\S+ ago\s+in [0-9]\S*s\s+` + platform.DefaultProject},
		} {
			platform.Eventually(t, soon, func() string {
				r := s.CLI(t, tt.args...)
				require.Zero(t, r.Code, r)
				if !regexp.MustCompile(tt.want).MatchString(r.Stdout + r.Stderr) {
					return fmt.Sprintf("%s: no %s in %s", what, tt.want, r)
				}
				return ""
			})
		}
		r := s.CLI(t, "dispatcher", "show", "there-is-none")
		require.Equal(t, platform.ExitNotFound, r.Code, r)
	})
}

// A single process takes its own dispatcher again after a handover request, and after a restart.
func TestSingleProcessReclaimsItsDispatcher(t *testing.T) {
	t.Parallel()
	options := singleProcess(t)
	s := platform.StartServer(t, options)
	kind := "io.example.alone"
	workflow := s.Publish(t, feed.Starter("starts", kind))
	f := feed.Start(t, feed.Options{Type: kind, PerSecond: wanted, Servers: []*platform.Server{s}})
	waitFor(t, time.Second)
	dispatcher := func() *signalboxv1.Dispatcher {
		res, err := s.Dispatchers.GetDispatcher(t.Context(),
			connect.NewRequest(&signalboxv1.GetDispatcherRequest{Project: platform.DefaultProject}))
		require.NoError(t, err)
		return res.Msg.GetDispatcher()
	}
	before := dispatcher().GetExecution()
	r := s.CLI(t, "dispatcher", "handover", platform.DefaultProject, "--reason", "without another worker")
	require.Zero(t, r.Code, r)
	platform.Eventually(t, soon, func() string {
		d := dispatcher()
		owner := d.GetExecution().GetOwner()
		if owner.GetEpoch() <= before.GetOwner().GetEpoch() || d.GetLease().GetState() != "held" {
			return fmt.Sprintf("the dispatcher has the owner %v, and the lease is %s", owner, d.GetLease().GetState())
		}
		require.Equal(t, before.GetOwner().GetServerId(), owner.GetServerId())
		require.Equal(t, before.GetRunId(), d.GetExecution().GetRunId(), "it is adopted")
		return ""
	})
	s.Kill()
	s = platform.StartServer(t, options)
	f.Follow(s)
	waitFor(t, time.Second)
	f.Stop(t)
	v := feed.Judge(t, feed.Evidence{Feed: f, Server: s, Starts: []string{workflow}, Limit: soon})
	promise.Record(t, promise.Figure{Promise: "P-D4", What: "the only process, on SQLite, asked to hand over, killed " +
		"and started again under events; the longest that one waited", Trials: 1,
		Aim: "none lost, none twice", Figure: f.String() + "; " + promise.Times{longestWait(v)}.String()})
}
