package cli_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/timestamppb"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/cli/exit"
)

func TestEventSendFromFlags(t *testing.T) {
	t.Parallel()
	shell, a := sh(t)
	c := shell.run(t, "event", "send", "--type", "created", "--source", "/shop", "--id", "1", "--subject", "7",
		"--data", `{"n":12345678901234567890}`, "--extension", "trace=a=b", "--extension", "region=eu")
	require.Zero(t, c.code, c.err.String())
	require.Equal(t, "POSITION  ID  SOURCE  RESULT\n1         1   /shop   accepted\n", c.out.String())
	require.Empty(t, c.err.String())
	sent := last[*signalboxv1.PublishEventsRequest](t, a)
	require.Equal(t, "default", sent.GetProject())
	event := sent.GetEvents()[0]
	require.Equal(t, []string{"1", "/shop", "created", "7"},
		[]string{event.GetId(), event.GetSource(), event.GetType(), event.GetSubject()})
	require.Equal(t, `{"n":12345678901234567890}`, event.GetData().GetJson())
	require.JSONEq(t, `{"trace":"a=b","region":"eu"}`, event.GetExtensions().GetJson())

	c = shell.run(t, "event", "send", "--type", "created", "--source", "/shop", "--id", "1")
	require.Zero(t, c.code)
	require.Contains(t, c.out.String(), "duplicate")
	require.Contains(t, c.err.String(), "1 of 1 event had been accepted before")
	require.Nil(t, last[*signalboxv1.PublishEventsRequest](t, a).GetEvents()[0].GetData())

	c = shell.run(t, "event", "send", "--type", "created", "--source", "/shop", "-o", "json")
	require.Zero(t, c.code, c.err.String())
	var answer struct {
		Accepted []struct {
			ID        string `json:"id"`
			Position  int    `json:"position"`
			Duplicate *bool  `json:"duplicate"`
		} `json:"accepted"`
	}
	require.NoError(t, json.Unmarshal([]byte(c.out.String()), &answer))
	require.Len(t, answer.Accepted[0].ID, 36, "one is made up")
	require.Equal(t, 2, answer.Accepted[0].Position)
	require.False(t, *answer.Accepted[0].Duplicate)
}

// The media type determines the form of the data: JSON, text, or bytes.
func TestEventSendDataTypes(t *testing.T) {
	t.Parallel()
	shell, a := sh(t)
	folder := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(folder, name)
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		return path
	}
	send := func(args ...string) *signalboxv1.CloudEvent {
		t.Helper()
		c := shell.run(t, append([]string{"event", "send", "--type", "t", "--source", "s"}, args...)...)
		require.Zero(t, c.code, c.err.String())
		return last[*signalboxv1.PublishEventsRequest](t, a).GetEvents()[0]
	}
	require.Equal(t, `[1.10]`, send("--data", write("a.json", " [1.10]\n")).GetData().GetJson())
	require.Equal(t, `null`, send("--data", "null").GetData().GetJson())
	require.Equal(t, `{}`, send("--data", "{}", "--content-type",
		"application/vnd.x+json; charset=utf-8").GetData().GetJson())
	require.Equal(t, `"hello\n"`,
		send("--data", write("a.txt", "hello\n"), "--content-type", "text/plain").GetData().GetJson())
	require.Equal(t, []byte("\x00\xff"),
		send("--data", write("a.jpg", "\x00\xff"), "--content-type", "image/jpeg").GetDataBase64())
	require.Equal(t, []byte("\xff"),
		send("--data", write("b.txt", "\xff"), "--content-type", "text/plain").GetDataBase64())
	shell.stdin = "hello"
	require.Equal(t, `"hello"`, send("--data", "-", "--content-type", "text/plain").GetData().GetJson())

	requireRefusal(t, shell.run(t, "event", "send", "--type", "t", "--source", "s", "--data", "{"), exit.Usage,
		"the data in --data is not JSON", "line 1")
	requireRefusal(t, shell.run(t, "event", "send", "--type", "t", "--source", "s", "--data", "/nowhere"), exit.Usage,
		`--data: "/nowhere"`, "no such file")
	requireRefusal(t, shell.run(t, "event", "send", "--type", "t", "--source", "s", "--data", "/nowhere", "--content-type",
		"text/plain"), exit.Usage, "no file that can be read")
	for _, extension := range []string{"trace", "=x"} {
		requireRefusal(t, shell.run(t, "event", "send", "--type", "t", "--source", "s", "--extension", extension), exit.Usage,
			"name=text")
	}
	requireRefusal(t, shell.run(t, "event", "send", "--type", "t", "--source", "s", "--extension", "a=1", "--extension",
		"a=2"), exit.Usage, `"a=2"`)
}

func TestEventSendFile(t *testing.T) {
	t.Parallel()
	shell, a := sh(t)
	shell.stdin = `{"specversion":"1.0","id":"1","source":"/s","type":"t","time":"2026-01-31T13:00:00.5+01:00","subject":null,"datacontenttype":"application/json",
		"dataschema":"http://x/y","trace":"x","count":3,"data":{"n":12345678901234567890}}`
	c := shell.run(t, "event", "send", "--file", "-")
	require.Zero(t, c.code, c.err.String())
	event := last[*signalboxv1.PublishEventsRequest](t, a).GetEvents()[0]
	require.Equal(t, []string{"1", "/s", "t", "", "application/json", "http://x/y"}, []string{
		event.GetId(), event.GetSource(), event.GetType(), event.GetSubject(), event.GetDataContentType(),
		event.GetDataSchema(),
	})
	require.True(t, noon.Add(500*time.Millisecond).Equal(event.GetTime().AsTime()))
	require.Equal(t, `{"n":12345678901234567890}`, event.GetData().GetJson())
	require.JSONEq(t, `{"trace":"x","count":3}`, event.GetExtensions().GetJson())

	shell.stdin = `[{"specversion":"1.0","id":"1","source":"/s","type":"t"},{"specversion":"1.0","id":"2","source":"/s","type":"t","data_base64":"AP8="}]`
	c = shell.run(t, "event", "send", "--file", "-")
	require.Zero(t, c.code, c.err.String())
	require.Equal(t, "POSITION  ID  SOURCE  RESULT\n1         1   /s      duplicate\n2         2   /s      accepted\n",
		c.out.String())
	require.Equal(t, "1 of 2 events had been accepted before, by ID and source, and changed nothing\n", c.err.String())
	require.Equal(t, []byte("\x00\xff"), last[*signalboxv1.PublishEventsRequest](t, a).GetEvents()[1].GetDataBase64())

	const good = `{"specversion":"1.0","id":"1","source":"/s","type":"t"`
	for content, want := range map[string]string{
		"":                                       "is empty",
		"[]":                                     "no events",
		"7":                                      "no JSON object",
		"{":                                      "is not JSON",
		`{"id":"1"}`:                             "specversion",
		"[" + good + "}," + "{}]":                "event 2 of 2",
		good + `,"subject":7}`:                   "its subject is no text",
		good + `,"time":"noon"}`:                 `its time "noon"`,
		good + `,"data_base64":"!"}`:             "base64",
		good + `,"data":1,"data_base64":"AP8="}`: "both data and data_base64",
	} {
		shell.stdin = content
		requireRefusal(t, shell.run(t, "event", "send", "--file", "-"), exit.Usage, want)
	}
	requireRefusal(t, shell.run(t, "event", "send", "--file", "-", "--type", "t"), exit.Usage, "--type", "--file")
}

// A file with more events than one request may have is sent in several.
func TestEventSendManyEvents(t *testing.T) {
	t.Parallel()
	shell, a := sh(t)
	many := func(n int, data string) string {
		items := make([]string, n)
		for i := range items {
			items[i] = fmt.Sprintf(`{"specversion":"1.0","id":"%d","source":"/s","type":"t","data":"%s"}`, i, data)
		}
		return "[" + strings.Join(items, ",") + "]"
	}
	sizes := func() (all []int) {
		for _, request := range a.requests {
			all = append(all, len(request.(*signalboxv1.PublishEventsRequest).GetEvents()))
		}
		return all
	}
	shell.stdin = many(2001, "x")
	c := shell.run(t, "event", "send", "--file", "-", "-o", "json")
	require.Zero(t, c.code, c.err.String())
	require.Equal(t, []int{1000, 1000, 1}, sizes())
	response := &signalboxv1.PublishEventsResponse{}
	require.NoError(t, protojson.Unmarshal([]byte(c.out.String()), response))
	require.Len(t, response.GetAccepted(), 2001)
	require.Equal(t, "2000", response.GetAccepted()[2000].GetId())

	a.requests = nil
	shell.stdin = many(30, strings.Repeat("x", 200<<10))
	c = shell.run(t, "event", "send", "--file", "-")
	require.Zero(t, c.code, c.err.String())
	require.Equal(t, []int{15, 15}, sizes(), "no request is larger than 3 MiB")

	a.events.refuse, a.events.refuseAfter = refusal(connect.CodeInvalidArgument, "EVENT_INVALID",
		"source is no URI reference"), 1
	shell.stdin = many(1500, "x")
	requireRefusal(t, shell.run(t, "event", "send", "--file", "-"), exit.Failed, "send 1500 events", "[EVENT_INVALID]",
		"the first 1000 were accepted before")
}

func TestEventSendFailures(t *testing.T) {
	t.Parallel()
	shell, a := sh(t)
	a.events.refuse = refusal(connect.CodeInvalidArgument, "EVENT_INVALID", "source is no URI reference")
	requireRefusal(t, shell.run(t, "event", "send", "--type", "t", "--source", "s"), exit.Failed,
		"send 1 event: source is no URI", "[EVENT_INVALID]")
	a.events.refuse = connect.NewError(connect.CodeDeadlineExceeded, nil)
	requireRefusal(t, shell.run(t, "event", "send", "--type", "t", "--source", "s", "--id", "e7"), exit.Unavailable,
		"it is unknown whether", "--id e7")
	shell.stdin = `[{"specversion":"1.0","id":"1"},{"specversion":"1.0","id":"2"}]`
	requireRefusal(t, shell.run(t, "event", "send", "--file", "-"), exit.Unavailable, "send 2 events", "sends each once")
	requireRefusal(t, newShell(t, "127.0.0.1:1").run(t, "event", "send", "--type", "t", "--source", "s"), exit.Unavailable,
		"cannot be reached")
}

// kept fills the fake's inbox.
func (e *events) fill() {
	e.kept = []*signalboxv1.Event{
		{Position: 1, Project: "default", Id: "a", Source: "/s", Type: "t", Status: "unmatched",
			Reason: "no workflow wants\nit", ReceiveTime: timestamppb.New(noon)},
		{
			Position: 2, Project: "default", Id: "b", Source: "/s", Type: "t", Subject: "7", Status: "routed",
			ReceiveTime: timestamppb.New(noon), Actor: "local",
			Data: &signalboxv1.JsonValue{Json: `{"n":1.10}`}, Extensions: &signalboxv1.JsonValue{Json: `{"trace":"x"}`},
		},
		{Position: 3, Project: "default", Id: "c", Source: "/s", Type: "t", Status: "pending",
			ReceiveTime: timestamppb.New(noon), DataBase64: []byte("ab")},
	}
	e.deliveries = []*signalboxv1.Delivery{
		{Id: "d1", Kind: "start", Workflow: "demo/hello", Version: "1.0.0", RunId: "r1", Status: "dead", Attempts: 10,
			Reason: "the input does not fit", Positions: []int64{2}},
		{Id: "d2", Kind: "wake", RunId: "r2", Status: "pending", Attempts: 1, NextTime: timestamppb.New(noon),
			Positions: []int64{1, 2}},
	}
}

func TestListEvents(t *testing.T) {
	t.Parallel()
	shell, a := sh(t)
	require.Equal(t, "no events match in project default\n", shell.run(t, "event", "list").err.String())
	a.events.fill()
	c := shell.run(t, "event", "list", "--limit", "2", "--status", "routed,pending", "--type", "t", "--source", "/s",
		"--id", "b", "--dead", "--run", "r1",
		"--since", "2026-01-31", "--until", "2026-02-01T00:00:00Z", "--project", "shop")
	require.Zero(t, c.code, c.err.String())
	table := strings.Split(c.out.String(), "\n")
	require.Equal(t, []string{"POSITION", "ID", "TYPE", "SOURCE", "STATUS", "AGE", "REASON"}, strings.Fields(table[0]))
	require.Equal(t, []string{"3", "c", "t", "/s", "pending"}, strings.Fields(table[1])[:5])
	require.Len(t, table, 4)
	require.Contains(t, c.err.String(), "2 events shown; there are more: --limit 0 lists all")
	request := last[*signalboxv1.ListEventsRequest](t, a)
	require.Equal(t, []string{"routed", "pending"}, request.GetStatuses())
	require.Equal(t, []string{"shop", "t", "/s", "b"},
		[]string{request.GetProject(), request.GetType(), request.GetSource(), request.GetId()})
	require.True(t, request.GetDead())
	require.Equal(t, "r1", request.GetRunId())
	require.Equal(t, noon.Truncate(24*time.Hour), request.GetSince().AsTime())
	require.Equal(t, noon.Add(12*time.Hour), request.GetUntil().AsTime())

	c = shell.run(t, "event", "list", "--limit", "0", "-o", "wide")
	require.Contains(t, c.out.String(), `no workflow wants\nit`)
	require.Contains(t, c.out.String(), "SUBJECT")
	var listed []struct {
		Position int    `json:"position"`
		ID       string `json:"id"`
		Status   string `json:"status"`
	}
	require.NoError(t, json.Unmarshal([]byte(shell.run(t, "event", "list", "-o", "json").out.String()), &listed))
	require.Len(t, listed, 3)
	require.Equal(t, "routed", listed[1].Status)
}

func TestEventShow(t *testing.T) {
	t.Parallel()
	shell, a := sh(t)
	a.events.fill()
	c := shell.run(t, "event", "show", "b", "--source", "/s")
	require.Zero(t, c.code, c.err.String())
	require.Equal(t, `position    2
id          b
type        t
source      /s
subject     7
status      routed
received    2026-01-31T12:00:00Z
extensions  {"trace":"x"}
data        {"n":1.10}

deliveries
DELIVERY  KIND   TARGET            STATUS   ATTEMPTS  NEXT  REASON
d1        start  demo/hello 1.0.0  dead     10              the input does not fit
d2        wake   run r2            pending  1         now
`, c.out.String())
	require.Equal(t, "/s", last[*signalboxv1.GetEventRequest](t, a).GetSource())
	a.events.deliveries = nil
	c = shell.run(t, "event", "show", "--position", "3", "-o", "wide")
	require.Contains(t, c.out.String(), "2 bytes; -o json has them")
	require.NotContains(t, c.out.String(), "deliveries")
	var shown struct {
		Event struct {
			Data json.RawMessage `json:"data"`
		} `json:"event"`
		Deliveries []any `json:"deliveries"`
	}
	require.NoError(t, json.Unmarshal([]byte(shell.run(t, "event", "show", "b", "-o", "json").out.String()), &shown))
	require.JSONEq(t, `{"n":1.10}`, string(shown.Event.Data))
	require.NotNil(t, shown.Deliveries)
	requireRefusal(t, shell.run(t, "event", "show", "z"), exit.NotFound, `show event "z"`, "[EVENT_NOT_FOUND]")
	requireRefusal(t, shell.run(t, "event", "show", "z", "--source", "/x"), exit.NotFound, `show event "z" of "/x"`)
}

func TestEventRedeliver(t *testing.T) {
	t.Parallel()
	shell, a := sh(t)
	a.events.fill()
	c := shell.run(t, "event", "redeliver", "b", "--delivery", "d1,d2", "--reason", "fixed")
	require.Zero(t, c.code, c.err.String())
	require.Contains(t, c.out.String(), "the input does not fit")
	request := last[*signalboxv1.RedeliverEventRequest](t, a)
	require.Equal(t, int64(2), request.GetPosition())
	require.Equal(t, []string{"d1", "d2"}, request.GetDeliveryIds())
	require.Equal(t, "fixed", request.GetReason())
	require.True(t, strings.HasPrefix(shell.run(t, "event", "redeliver", "b", "-o", "json").out.String(), "["))

	a.events.deliveries = nil
	c = shell.run(t, "event", "redeliver", "--position", "1")
	require.Zero(t, c.code)
	require.Contains(t, c.err.String(), "nothing to deliver again")
	require.Equal(t, int64(1), last[*signalboxv1.RedeliverEventRequest](t, a).GetPosition())
	requireRefusal(t, shell.run(t, "event", "redeliver", "z"), exit.NotFound, `redeliver event "z"`)
	a.events.refuse = refusal(connect.CodeNotFound, "DELIVERY_NOT_FOUND", "no such delivery")
	requireRefusal(t, shell.run(t, "event", "redeliver", "--position", "1", "--delivery", "x"), exit.NotFound,
		"event at position 1", "[DELIVERY_NOT_FOUND]")
}

func TestEventsAndProjectsAreCompleted(t *testing.T) {
	t.Parallel()
	shell, a := sh(t)
	a.events.fill()
	require.Contains(t, shell.run(t, "__complete", "event", "show", "").out.String(), "c\tt pending")
	require.Contains(t, shell.run(t, "__complete", "event", "list", "--status", "").out.String(), "unmatched")
	require.Contains(t, shell.run(t, "__complete", "dispatcher", "show", "").out.String(), "default")
	require.Contains(t, shell.run(t, "__complete", "worker", "list", "--project", "").out.String(), "default")
	require.Contains(t, shell.run(t, "__complete", "worker", "list", "--state", "").out.String(), "silent")
}
