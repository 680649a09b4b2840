package rpc_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/rpc"
	"github.com/signalbox-dev/signalbox/internal/run/read"
)

// wholeValue is a value of a step, which records what was asked for.
type wholeValue struct {
	text string
	last read.StepValueRequest
}

func (v *wholeValue) Read(_ context.Context, req read.StepValueRequest) (json.RawMessage, error) {
	v.last = req
	return json.RawMessage(v.text), nil
}

func TestStepValuesArePaged(t *testing.T) {
	t.Parallel()
	value := &wholeValue{text: `["` + strings.Repeat("aé€😀", 60_000) + `"]`}
	p := start(t, func(o *rpc.Options) { o.StepValues = value })
	p.publish()
	path := "/v1/projects/default/runs/" + p.startRun(`{}`) + "/steps/3/value?value="
	for limit, pages := range map[string]int{"": 3, "&limit=1048576": 1, "&limit=100001": 7} {
		var text strings.Builder
		offset, n := json.Number("0"), 0
		for more := true; more && n <= pages; n++ {
			page := p.do("GET", path+"output&pointer=/a~1b"+limit+"&offset="+offset.String(), "").ok()
			text.WriteString(page["text"].(string))
			require.Equal(t, json.Number("600004"), page["size"])
			offset = page["nextOffset"].(json.Number)
			more = offset != "0"
		}
		require.Equal(t, value.text, text.String())
		require.Equal(t, pages, n, limit)
	}
	require.Equal(t, []any{true, int64(3), "/a~1b", "default"},
		[]any{value.last.Output, value.last.Number, value.last.Pointer, value.last.Project})
	require.Equal(t, `["`, p.do("GET", path+"input&limit=2", "").ok()["text"].(string)[:2])
	require.False(t, value.last.Output)
	for _, wrong := range []string{
		"", "error", "output&offset=-1", "output&offset=600005", "output&offset=4", "output&limit=1048577",
		"output&limit=-1"} {
		p.do("GET", path+wrong, "").fails(http.StatusBadRequest, apperror.InvalidArgument)
	}
	require.Empty(t, p.do("GET", path+"output&offset=600004", "").ok()["text"])
	p.do("GET", strings.Replace(path, "/3/", "/0/", 1)+"output", "").fails(http.StatusBadRequest, apperror.InvalidArgument)
}
