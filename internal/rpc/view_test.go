package rpc_test

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/rpc"
	"github.com/signalbox-dev/signalbox/internal/view"
)

func TestViewsOverREST(t *testing.T) {
	t.Parallel()
	var late struct{ *view.Service }
	p := start(t, func(o *rpc.Options) { o.Views = &late })
	late.Service = view.NewService(p.store.Views(), p.runs, time.Now)
	p.publish()

	saved := p.do(http.MethodPost, "/v1/projects/default/views",
		`{"name":"Failed","shared":true,"query":{"statuses":["failed"],"workflow":"hello","problems":["any"],"period":"86400s","order":"oldest","columns":["run","actor"]}}`).ok()["view"].(map[string]any)
	require.Equal(t, []any{"Failed", true, true, "local", "local"}, []any{saved["name"], saved["shared"], saved["mine"], saved["owner"], saved["updater"]})
	require.Equal(t, map[string]any{
		"statuses": []any{"failed"}, "workflow": "demo/hello", "problems": []any{"any"}, "labels": []any{}, "notReplayed": false, "period": "86400s", "order": "oldest", "columns": []any{"run", "actor"},
	}, saved["query"])
	id := saved["id"].(string)
	list := p.do(http.MethodGet, "/v1/projects/default/views", "").ok()["views"].([]any)
	require.Equal(t, []any{saved}, list)

	refused := map[string]string{
		`{"name":"a","query":{"statuses":["odd"]}}`:   "unknown run status",
		`{"name":"a","query":{"problems":["odd"]}}`:   "unknown problem code",
		`{"name":"a","query":{"trigger":"odd"}}`:      "unknown trigger",
		`{"name":"a","query":{"order":"odd"}}`:        "newest, oldest or longest",
		`{"name":"a","query":{"version":"1.0.0"}}`:    "without a workflow",
		`{"name":"a","query":{"failureGroup":"odd"}}`: "failure group",
		`{"name":"a","query":{"period":"-5s"}}`:       "positive",
		`{"name":"a","query":{"columns":["odd"]}}`:    "unknown column",
		`{"name":"a","query":{"color":"red"}}`:        "color",
		`{"query":{}}`:                                "no name",
		`{"name":"a","revision":1}`:                   "without the ID",
	}
	for body, why := range refused {
		require.Contains(t, p.do(http.MethodPost, "/v1/projects/default/views", body).fails(http.StatusBadRequest, "INVALID_ARGUMENT"), why, body)
	}
	p.do(http.MethodPost, "/v1/projects/default/views", `{"name":"a","query":{"workflow":"none"}}`).fails(http.StatusNotFound, "WORKFLOW_NOT_FOUND")
	p.do(http.MethodPost, "/v1/projects/default/views", `{"name":"Failed"}`).fails(http.StatusConflict, "VIEW_EXISTS")
	p.do(http.MethodPost, "/v1/projects/default/views", `{"id":"`+id+`","name":"Failed","revision":7}`).fails(http.StatusBadRequest, "VIEW_CHANGED")
	p.do(http.MethodGet, "/v1/projects/none/views", "").fails(http.StatusNotFound, "PROJECT_NOT_FOUND")
	p.do(http.MethodDelete, "/v1/projects/default/views/none?revision=1", "").fails(http.StatusNotFound, "VIEW_NOT_FOUND")

	again := p.do(http.MethodPost, "/v1/projects/default/views", `{"id":"`+id+`","name":"Broken","revision":1}`).ok()["view"].(map[string]any)
	require.Equal(t, []any{"Broken", json.Number("2")}, []any{again["name"], again["revision"]})
	p.do(http.MethodDelete, "/v1/projects/default/views/"+id+"?revision=2", "").ok()
	require.Empty(t, p.do(http.MethodGet, "/v1/projects/default/views", "").ok()["views"])
}

// TestViewsHoldEveryFilterOfLists compares the fields of a query with those of ListRunsRequest.
func TestViewsHoldEveryFilterOfLists(t *testing.T) {
	t.Parallel()
	held := (&signalboxv1.ViewQuery{}).ProtoReflect().Descriptor().Fields()
	listed := (&signalboxv1.ListRunsRequest{}).ProtoReflect().Descriptor().Fields()
	for i := range listed.Len() {
		field := listed.Get(i)
		switch field.Name() {
		case "project", "page_size", "page_token", "request_id": // request_id selects one run
			continue
		}
		same := held.ByName(field.Name())
		require.NotNil(t, same, "%s", field.Name())
		require.Equal(t, []any{field.Kind(), field.Cardinality()}, []any{same.Kind(), same.Cardinality()}, "%s", field.Name())
	}
}
