package rpc_test

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"
	"google.golang.org/genproto/googleapis/api/httpbody"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/api/signalbox/v1/signalboxv1connect"
	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/rpc"
	"github.com/signalbox-dev/signalbox/internal/rpc/handler"
	"github.com/signalbox-dev/signalbox/internal/run"
)

// whole joins the chunks of an export, and returns the type of the first.
func whole(t *testing.T, stream *connect.ServerStreamForClient[httpbody.HttpBody]) (kind, text string) {
	t.Helper()
	var all bytes.Buffer
	for stream.Receive() {
		if kind == "" {
			kind = stream.Msg().GetContentType()
		}
		all.Write(stream.Msg().GetData())
	}
	require.NoError(t, stream.Err())
	require.NoError(t, stream.Close())
	return kind, all.String()
}

// fakeRunDeliveries gives every run one delivery of one event.
type fakeRunDeliveries struct{}

func (fakeRunDeliveries) OfRun(_ context.Context, project, runID string, after *event.DeliveryCursor,
	_ int) ([]event.Delivery, error) {
	if after != nil {
		return nil, nil
	}
	return []event.Delivery{
		{ID: "d1", Project: project, Position: 1, RunID: runID, Positions: []int64{1}},
		{ID: "d2", Project: project, Position: 7, RunID: runID, Positions: []int64{7}}, // deleted by retention
	}, nil
}

func TestExportOfARun(t *testing.T) {
	t.Parallel()
	events := newFakeEvents()
	p := start(t, func(o *rpc.Options) { o.Events, o.RunDeliveries = events, fakeRunDeliveries{} })
	p.publish()
	id := p.startRun(`{"name":"Ada","n":1.10}`)
	p.apply(t, id, 3, run.Completed, `{"message":"Hello Ada"}`)
	_, err := events.Publish(t.Context(), "default", []event.Event{{ID: "e1", Source: "/s", Type: "t"}})
	require.NoError(t, err)
	events.deliveries = []event.Delivery{
		{ID: "d1", RunID: id, Positions: []int64{1}}, {ID: "other", RunID: "other", Positions: []int64{1}}}
	p.do("POST", "/v1/projects/default/runs/"+id+":replay", `{"reason":"once more"}`).ok()

	a := p.do("GET", "/v1/projects/default/runs/"+id+":export", "")
	require.Equal(t, "application/json", a.header.Get("Content-Type"))
	require.Equal(t, "attachment; filename=run-"+id+".json", a.header.Get("Content-Disposition"))
	bundle := a.ok()
	require.Equal(t, "signalbox.run/1", bundle["format"])
	shown := bundle["run"].(map[string]any)
	require.Equal(t, p.do("GET", "/v1/projects/default/runs/"+id, "").ok()["run"], shown,
		"it is the run as the API shows it")
	require.Len(t, shown["replays"], 1)
	require.Equal(t, id, shown["temporal"].(map[string]any)["workflowId"])
	require.Equal(t, greeting, bundle["version"].(map[string]any)["source"])
	require.Equal(t, p.do("GET", "/v1/projects/default/runs/"+id+"/steps", "").ok()["steps"], bundle["steps"])
	require.Empty(t, bundle["waits"])
	require.Len(t, bundle["events"], 1)
	touched := bundle["events"].([]any)[0].(map[string]any)
	require.Equal(t, "e1", touched["event"].(map[string]any)["id"])
	require.Len(t, touched["deliveries"], 1, "those to other runs are not its own")
	require.Equal(t, "run.start", bundle["audit"].([]any)[0].(map[string]any)["action"])
	require.Contains(t, a.body, `"n":1.10`, "digit for digit")

	for name, opts := range map[string][]connect.ClientOption{
		"Connect": nil, "gRPC-Web": {connect.WithGRPCWeb()}, "Connect JSON": {connect.WithProtoJSON()},
	} {
		client := signalboxv1connect.NewRunServiceClient(p.client, p.base, opts...)
		stream, err := client.ExportRun(t.Context(), connect.NewRequest(&signalboxv1.ExportRunRequest{Id: id}))
		require.NoError(t, err, name)
		kind, text := whole(t, stream)
		require.Equal(t, "application/json", kind)
		require.Equal(t, stripTime(a.body), stripTime(text), name)
	}

	p.do("DELETE", "/v1/projects/default/workflows/demo/hello", "")
	p.do("GET", "/v1/projects/default/runs/none:export", "").fails(http.StatusNotFound, apperror.RunNotFound)
	require.Empty(t, p.do("GET", "/v1/projects/default/runs/none:export", "").header.Get("Content-Disposition"),
		"an error is no file")
	p.do("GET", "/v1/projects/none/runs/"+id+":export", "").fails(http.StatusNotFound, apperror.ProjectNotFound)
}

func stripTime(bundle string) string {
	before, rest, _ := strings.Cut(bundle, `"exportTime":"`)
	_, after, _ := strings.Cut(rest, `"`)
	return before + after
}

func TestExportCountsUnlistedSteps(t *testing.T) {
	t.Parallel()
	p := start(t, nil)
	p.publish()
	id := p.startRun(`{"name":"Ada"}`)
	path := "/v1/projects/default/runs/" + id
	require.NotContains(t, p.do("GET", path, "").ok()["run"], "stepSummary")
	_, err := p.store.ApplyUpdates(t.Context(), []run.Update{{
		RunID: id, ExecutionID: "e", Position: 3, State: &run.State{Status: run.Completed, StepsTotal: 9, StepsDone: 9},
		Steps: []run.Step{
			{Number: 1, Path: "/do/0/a", Pointer: "/do/0/a", Task: "a", Kind: "set", Position: 3, Status: "completed"},
			{Number: 9, Path: "/do/8/b", Pointer: "/do/8/b", Task: "b", Kind: "set", Position: 3, Status: "completed"},
		},
		Summary: &run.StepSummary{From: 2, To: 8, Position: 3, Tasks: []run.TaskSummary{{
			Pointer: "/do/0/a", Task: "a", Kind: "set", Count: 7, Completed: 6, Skipped: 1, Shortest: time.Millisecond,
			Longest: 2 * time.Second, Total: 3 * time.Second,
		}}},
	}})
	require.NoError(t, err)
	want := map[string]any{"from": json.Number("2"), "to": json.Number("8"), "steps": json.Number("7")}
	for name, got := range map[string]any{
		"run":    p.do("GET", path, "").ok()["run"].(map[string]any)["stepSummary"],
		"steps":  p.do("GET", path+"/steps?page_size=1", "").ok()["summary"],
		"export": p.do("GET", path+":export", "").ok()["stepSummary"],
	} {
		summary, ok := got.(map[string]any)
		require.True(t, ok, name)
		for key, value := range want {
			require.Equal(t, fmt.Sprint(value), fmt.Sprint(summary[key]), name)
		}
		task := summary["tasks"].([]any)[0].(map[string]any)
		require.Equal(t, []any{"/do/0/a", "0.001s", "2s", "3s"},
			[]any{task["pointer"], task["shortest"], task["longest"], task["total"]}, name)
	}
}

func TestExportOfRuns(t *testing.T) {
	t.Parallel()
	p := start(t, nil)
	p.publish()
	odd := "=HYPERLINK(\"http://evil\", \"a,b\") next"
	p.do("POST", "/v1/projects/default/runs", `{"workflow":"hello","input":{},"requestId":`+quoted(odd)+`}`).ok()
	ids := []string{p.startRun(`{"name":"Ada"}`), p.startRun(`{"name":"Bob"}`)}
	p.apply(t, ids[1], 3, run.Failed, ``)

	a := p.do("GET", "/v1/projects/default/runs:export?format=csv", "")
	require.Equal(t, http.StatusOK, a.status, a.body)
	require.Equal(t, "text/csv; charset=utf-8", a.header.Get("Content-Type"))
	require.Regexp(t, `^attachment; filename=runs-default-\d{8}T\d{6}Z\.csv$`, a.header.Get("Content-Disposition"))
	records, err := csv.NewReader(strings.NewReader(a.body)).ReadAll()
	require.NoError(t, err)
	require.Len(t, records, 4)
	column := map[string]int{}
	for i, name := range records[0] {
		column[name] = i
	}
	require.Equal(t, ids[1], records[1][column["id"]], "newest first")
	require.Equal(t, "failed", records[1][column["status"]])
	require.Equal(t, "'"+odd, records[3][column["request_id"]], "no formula, and nothing lost")

	a = p.do("GET", "/v1/projects/default/runs:export?format=json&statuses=failed", "")
	require.Equal(t, "application/x-ndjson", a.header.Get("Content-Type"))
	require.Equal(t, 1, strings.Count(a.body, "\n"))
	require.Equal(t, ids[1], a.ok()["id"])

	a = p.do("GET", "/v1/projects/default/runs:export?format=json&statuses=canceled", "")
	require.Equal(t, []any{http.StatusOK, "application/x-ndjson", ""},
		[]any{a.status, a.header.Get("Content-Type"), a.body}, "none is a file too")
	p.do("GET", "/v1/projects/default/runs:export?format=xml", "").fails(http.StatusBadRequest, apperror.InvalidArgument)
	p.do("GET", "/v1/projects/default/runs:export?statuses=odd", "").fails(http.StatusBadRequest, apperror.InvalidArgument)
	p.do("GET", "/v1/projects/none/runs:export", "").fails(http.StatusNotFound, apperror.ProjectNotFound)
}

// manyRuns has more runs than a server should hold at a time, and counts the requested ones.
type manyRuns struct {
	handler.RunService

	page func(n int) error
}

func (m manyRuns) List(_ context.Context, f run.Filter) ([]run.Run, error) {
	from := 0
	if f.After != nil {
		if _, err := fmt.Sscanf(f.After.ID, "run-%d", &from); err != nil {
			return nil, err
		}
	}
	if err := m.page(from / 500); err != nil {
		return nil, err
	}
	var list []run.Run
	for n := from + 1; n <= from+f.Limit; n++ {
		list = append(list, run.Run{
			ID: fmt.Sprintf("run-%08d", n), Project: "default", Workflow: "demo/hello", Version: "1.0.0", Status: run.Completed,
			CreatedAt: time.Unix(1, 0)})
	}
	return list, nil
}

// TestExportsAreStreamed continues the list only after its first rows have arrived.
func TestExportsAreStreamed(t *testing.T) {
	t.Parallel()
	arrived := make(chan struct{})
	failed := errors.New("the disk is gone")
	p := start(t, func(o *rpc.Options) {
		o.Runs = manyRuns{o.Runs, func(n int) error {
			switch n {
			case 3:
				<-arrived
			case 6:
				return failed
			}
			return nil
		}}
	})
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
		p.base+"/v1/projects/default/runs:export?format=json", http.NoBody)
	require.NoError(t, err)
	res, err := p.client.Do(req)
	require.NoError(t, err)
	defer res.Body.Close()
	require.Equal(t, http.StatusOK, res.StatusCode)
	first := json.NewDecoder(res.Body)
	var r map[string]any
	require.NoError(t, first.Decode(&r))
	require.Equal(t, "run-00000001", r["id"])
	close(arrived)
	rest, err := io.ReadAll(io.MultiReader(first.Buffered(), res.Body))
	require.ErrorIs(t, err, io.ErrUnexpectedEOF, "an export that broke off does not look like a whole one")
	require.Contains(t, string(rest), "run-00001600")
	require.Contains(t, p.log.String(), "the disk is gone")

	stream, err := signalboxv1connect.NewRunServiceClient(p.client, p.base).ExportRuns(t.Context(),
		connect.NewRequest(&signalboxv1.ExportRunsRequest{}))
	require.NoError(t, err)
	for stream.Receive() {
	}
	require.Equal(t, connect.CodeInternal, connect.CodeOf(stream.Err()))
	require.NoError(t, stream.Close())

	conn := p.grpc(t)
	down, err := conn.NewStream(t.Context(), &grpc.StreamDesc{ServerStreams: true}, "/signalbox.v1.RunService/ExportRuns")
	require.NoError(t, err)
	require.NoError(t, down.SendMsg(&signalboxv1.ExportRunsRequest{}))
	require.NoError(t, down.CloseSend())
	for err = nil; err == nil; {
		err = down.RecvMsg(&httpbody.HttpBody{})
	}
	requireGRPC(t, err, codes.Internal, "INTERNAL")
}
