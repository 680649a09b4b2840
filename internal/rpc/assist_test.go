package rpc_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/apperror"
)

func TestDocumentsAreAssistedWhileTheyAreWritten(t *testing.T) {
	t.Parallel()
	p := start(t, nil)
	const path = "/v1/projects/default/workflows:assist"
	source := quoted("do:\n  - greet:\n      call: http\n      wi")
	found := p.do("POST", path, `{"source":`+source+`,"line":4,"column":9}`).ok()
	first := found["completions"].([]any)[0].(map[string]any)
	require.Equal(t, []any{"with", "key", "with: ", "required"},
		[]any{first["label"], first["kind"], first["text"], first["detail"]})
	require.EqualValues(t, "7", first["startColumn"])
	require.Contains(t, p.do("POST", path, `{"source":`+source+`,"line":3,"column":8}`).ok()["documentation"], "**call**")
	require.Empty(t, p.do("POST", path, `{"source":"[{\"","line":-3,"column":900}`).ok()["completions"])
	p.do("POST", "/v1/projects/nowhere/workflows:assist", `{"source":"a"}`).fails(http.StatusNotFound,
		apperror.ProjectNotFound)
}
