package rpc_test

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

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
		`{"name":"Failed","shared":true,"query":{"filter":{"statuses":["failed"],"workflow":"hello","stuck":["any"]},"period":"86400s","order":"oldest","columns":["run","actor"]}}`).ok()["view"].(map[string]any)
	require.Equal(t, []any{"Failed", true, true, "local", "local"},
		[]any{saved["name"], saved["shared"], saved["mine"], saved["owner"], saved["updater"]})
	require.Equal(t, map[string]any{
		"filter": map[string]any{
			"statuses": []any{"failed"}, "workflow": "demo/hello", "stuck": []any{"any"}, "labels": []any{},
			"notReplayed": false}, "period": "86400s", "order": "oldest", "columns": []any{"run", "actor"},
	}, saved["query"])
	id := saved["id"].(string)
	list := p.do(http.MethodGet, "/v1/projects/default/views", "").ok()["views"].([]any)
	require.Equal(t, []any{saved}, list)

	refused := map[string]string{
		`{"name":"a","query":{"filter":{"statuses":["odd"]}}}`:   "unknown run status",
		`{"name":"a","query":{"filter":{"stuck":["odd"]}}}`:      "unknown code",
		`{"name":"a","query":{"filter":{"trigger":"odd"}}}`:      "unknown trigger",
		`{"name":"a","query":{"order":"odd"}}`:                   "newest, oldest or longest",
		`{"name":"a","query":{"filter":{"version":"1.0.0"}}}`:    "without a workflow",
		`{"name":"a","query":{"filter":{"failureGroup":"odd"}}}`: "failure group",
		`{"name":"a","query":{"period":"-5s"}}`:                  "positive",
		`{"name":"a","query":{"columns":["odd"]}}`:               "unknown column",
		`{"name":"a","query":{"color":"red"}}`:                   "color",
		`{"query":{}}`:                                           "no name",
		`{"name":"a","revision":1}`:                              "without the ID",
	}
	for body, why := range refused {
		require.Contains(t, p.do(http.MethodPost, "/v1/projects/default/views", body).fails(http.StatusBadRequest,
			"INVALID_ARGUMENT"), why, body)
	}
	p.do(http.MethodPost, "/v1/projects/default/views",
		`{"name":"a","query":{"filter":{"workflow":"none"}}}`).fails(http.StatusNotFound, "WORKFLOW_NOT_FOUND")
	p.do(http.MethodPost, "/v1/projects/default/views", `{"name":"Failed"}`).fails(http.StatusConflict, "VIEW_EXISTS")
	p.do(http.MethodPost, "/v1/projects/default/views",
		`{"id":"`+id+`","name":"Failed","revision":7}`).fails(http.StatusBadRequest, "VIEW_CHANGED")
	p.do(http.MethodGet, "/v1/projects/none/views", "").fails(http.StatusNotFound, "PROJECT_NOT_FOUND")
	p.do(http.MethodDelete, "/v1/projects/default/views/none?revision=1", "").fails(http.StatusNotFound, "VIEW_NOT_FOUND")

	again := p.do(http.MethodPost, "/v1/projects/default/views",
		`{"id":"`+id+`","name":"Broken","revision":1}`).ok()["view"].(map[string]any)
	require.Equal(t, []any{"Broken", json.Number("2")}, []any{again["name"], again["revision"]})
	p.do(http.MethodDelete, "/v1/projects/default/views/"+id+"?revision=2", "").ok()
	require.Empty(t, p.do(http.MethodGet, "/v1/projects/default/views", "").ok()["views"])
}
