package cli_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/cli/exit"
)

// The first test sends requests and writes the responses as mocks; the second one needs no service.
func TestResponsesAreWrittenAsMocks(t *testing.T) {
	t.Parallel()
	var requests atomic.Int64
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if requests.Add(1) == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"greeting":"hello","seen":"` + r.Header.Get("X-Key") + `"}`))
	}))
	t.Cleanup(service.Close)
	path := write(t, "hello.yaml", `document: {dsl: '1.0.3', namespace: demo, name: hello, version: '1.0.0'}
use: {secrets: [key]}
do:
  - greet:
      try: [{ask: {call: http, with: {method: get, endpoint: '`+service.URL+`', headers: {X-Key: '${ $secrets.key }'}}}}]
      catch: {retry: {delay: {seconds: 1}, limit: {attempt: {count: 1}}}}
`)
	tests := filepath.Join(filepath.Dir(path), "hello.test.yaml")
	const cases = `secrets: {key: s3cret}
cases:
  # a comment
  - name: one
    expect:
      contains: {greeting: hello}
`
	require.NoError(t, os.WriteFile(tests, []byte(cases), 0o600))
	shell := newShell(t, "127.0.0.1:1")
	require.Contains(t, shell.run(t, "workflow", "test", path).out.String(), "no mock answers the request")
	c := shell.run(t, "workflow", "test", path, "--live")
	require.NotZero(t, c.code)
	require.Contains(t, c.out.String(), "the address 127.0.0.1 is not public; --allow-private with its network allows it")
	require.Zero(t, requests.Load())
	c = shell.run(t, "workflow", "test", path, "--live", "--allow-private", "127.0.0.0/8")
	require.Zero(t, c.code, c.out.String()+c.err.String())
	require.Contains(t, c.err.String(), "1 mock written")
	require.EqualValues(t, 2, requests.Load())
	text, err := os.ReadFile(tests)
	require.NoError(t, err)
	require.NotContains(t, strings.Replace(string(text), cases[:22], "", 1), "s3cret")
	require.Contains(t, string(text), "FILL-IN")
	require.Contains(t, string(text), "# a comment")

	c = shell.run(t, "workflow", "test", path)
	require.Zero(t, c.code, c.out.String()+c.err.String())
	require.EqualValues(t, 2, requests.Load(), "the mocks answer")
	requireRefusal(t, shell.run(t, "workflow", "test", path, "--live", "--watch"), exit.Usage, "exclude each other")
	requireRefusal(t, shell.run(t, "workflow", "test", path, "--allow-private", "127.0.0.0/8"), exit.Usage, "give --live, too")
	requireRefusal(t, shell.run(t, "workflow", "test", path, "--live", "--allow-private", "localhost"), exit.Usage,
		"is not a network")
}
