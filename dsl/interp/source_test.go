package interp_test

import (
	"encoding/base64"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/interp"
)

const sourced = `
use: {secrets: [token]}
do:
  - js:
      run:
        script:
          language: js
          source: {name: rules, endpoint: {uri: '${ "https://code.example/" + .file }', authentication: {bearer: {token: '${ $secrets.token }'}}}}
          arguments: ['${ .file }']`

func TestSourceThatOnlyTheRunKnowsIsReadFirst(t *testing.T) {
	t.Parallel()
	const code = "console.log(1)"
	w := newDriver(t, document(sourced), `{"file": "a.js"}`)
	w.origin = func(interp.Call) answer { return ok(base64.StdEncoding.EncodeToString([]byte(code))) }
	w.ended = interp.Result{Value: interp.ProgramResult{Stdout: "1"}}
	w.completes(`"1"`)
	require.Len(t, w.calls, 1)
	require.Equal(t, "https://code.example/a.js", w.calls[0].HTTP.URL)
	require.Equal(t, dsl.OutputRaw, w.calls[0].HTTP.Output)
	require.NotNil(t, w.calls[0].HTTP.Authentication)
	require.Len(t, w.programs, 1)
	require.Equal(t, code, w.programs[0].Program.Code)
	require.Equal(t, []string{"a.js"}, w.programs[0].Program.Arguments)
	require.Equal(t, &interp.Source{URI: "https://code.example/a.js", Hash: dsl.ContentHash([]byte(code))},
		w.programs[0].Program.Source)
	require.Len(t, w.step("/do/0/js").Attempts, 1, "that of the program")
}

func TestSourceThatIsNoProgram(t *testing.T) {
	t.Parallel()
	for want, result := range map[string]interp.Result{
		"is not a text in UTF-8": {Value: base64.StdEncoding.EncodeToString([]byte{0xff})},
		"answered 304":           {Value: "", Attempts: []interp.Attempt{{Status: 304}}},
		"no such file":           {Error: &dsl.Error{Type: dsl.ErrorTypeCommunication, Status: 404, Detail: "no such file"}},
	} {
		w := newDriver(t, document(sourced), `{"file": "a.js"}`)
		w.origin = func(interp.Call) answer { return answer{Result: result} }
		failed := w.fails()
		require.Contains(t, failed.Detail, want)
		require.Equal(t, "/do/0/js", failed.Instance)
		require.Empty(t, w.programs)
		require.Len(t, w.step("/do/0/js").Attempts, 1)
	}
	w := newDriver(t, document(sourced), `{"file": 1}`)
	w.fails()
	require.Empty(t, w.calls)
}
