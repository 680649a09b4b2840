package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/cli/exit"
)

// recorded is a workflow with all that a case of a run has, and recordedRun the export of a run of it.
const recorded = `document: {dsl: '1.0.3', namespace: shop, name: order, version: '1.0.0'}
use: {secrets: [bank]}
do:
  - pay:
      try:
        - charge:
            call: http
            with: {method: post, endpoint: 'https://bank.example', headers: {X: '${ $secrets.bank.key }'}}
      catch:
        errors: {with: {status: 503}}
        retry: {limit: {attempt: {count: 2}}}
  - shipped: {listen: {to: {one: {with: {type: shop.shipped}}}}}
  - bill: {run: {workflow: {namespace: shop, name: bill, version: '1.0.0'}}}
  - last: {call: http, with: {method: get, endpoint: 'https://bank.example/last'}}
`

const recordedRun = `{"format":"signalbox.run/1","run":{"id":"r1","workflow":"shop/order","version":"1.0.0","status":"failed",
"startTime":"2026-03-01T12:00:00.5Z","input":{"id":7},"redacted":true,"error":{"type":
"https://open-workflow-specification.org/spec/1.0.0/errors/communication","status":404,"title":"Not Found",
"instance":"/do/3/last"}},"version":{"source":"SOURCE"},"steps":[
{"number":"1","pointer":"/do/0/pay","task":"pay","kind":"try","status":"completed"},
{"number":"2","pointer":"/do/0/pay/try/0/charge","task":"charge","kind":"call","status":"failed",
 "error":{"type":"x","status":503},"attempts":[{"httpStatus":503}]},
{"number":"3","pointer":"/do/0/pay/try/0/charge","task":"charge","kind":"call","status":"completed",
 "output":{"token":"⟦redacted⟧"},"attempts":[{"httpStatus":201}]},
{"number":"4","pointer":"/do/1/shipped","task":"shipped","kind":"listen","status":"completed","output":[{}]},
{"number":"5","pointer":"/do/2/bill","task":"bill","kind":"run","status":"completed","output":{"n":1.10}},
{"number":"6","pointer":"/do/3/last","task":"last","kind":"call","status":"failed","error":{"type":"x","status":404},
 "attempts":[{"httpStatus":404}]}],
"events":[{"event":{"id":"e1","source":"/carrier","type":"shop.shipped","data":{"by":"DHL"}},"deliveries":[]},
 {"event":{"id":"e2","source":"/shop","type":"shop.own","actor":"run r1"},"deliveries":[]}]}`

// export writes the workflow and the export of its run, and returns their paths.
func export(t *testing.T, replace func(string) string) (workflow, run string) {
	t.Helper()
	source, err := json.Marshal(recorded)
	require.NoError(t, err)
	workflow = write(t, "order.yaml", recorded)
	text := replace(recordedRun)
	require.NotEmpty(t, text)
	run = filepath.Join(filepath.Dir(workflow), "run.json")
	require.NoError(t, os.WriteFile(run, []byte(strings.Replace(text, `"SOURCE"`, string(source), 1)), 0o600))
	return workflow, run
}

func TestRunsBecomeCases(t *testing.T) {
	t.Parallel()
	shell := newShell(t, "127.0.0.1:1")
	workflow, run := export(t, func(s string) string { return s })
	c := shell.run(t, "workflow", "test", "--from-run", run)
	require.Zero(t, c.code, c.err.String())
	require.Contains(t, c.out.String(), "bank:\n    key: FILL-IN")
	require.Contains(t, c.out.String(), "status: 201")
	require.NotContains(t, c.out.String(), "shop.own", "the run publishes it itself")
	require.Contains(t, c.err.String(), "values of the run are redacted")
	require.Contains(t, c.err.String(), "the secrets are marks")
	require.Contains(t, c.err.String(), "3 mocks and 1 event")

	tests := filepath.Join(filepath.Dir(workflow), "order.test.yaml")
	require.NoError(t, os.WriteFile(tests, []byte(c.out.String()), 0o600))
	c = shell.run(t, "workflow", "test", workflow)
	require.Zero(t, c.code, c.out.String()+c.err.String())
	require.Contains(t, c.err.String(), "1 case, 0 failed")
}

// A response with an error status has what the error shows of its body, so that the test gets the same error.
func TestErrorsOfRunsKeepTheirTexts(t *testing.T) {
	t.Parallel()
	shell := newShell(t, "127.0.0.1:1")
	const none = `"error":{"type":"x","status":404}`
	for detail, want := range map[string]string{
		`"title":"Not Found","detail":"GET https://shop.example/last answered 404: no such order"`:     "body: no such order",
		`"title":"Order unknown","detail":"GET https://shop.example/last answered 404: no such order"`: "title: Order unknown",
	} {
		_, run := export(t, func(s string) string {
			return strings.Replace(s, none, `"error":{"type":"x","status":404,`+detail+`}`, 1)
		})
		c := shell.run(t, "workflow", "test", "--from-run", run)
		require.Zero(t, c.code, c.err.String())
		require.Contains(t, c.out.String(), want)
		require.Contains(t, c.out.String(), "no such order")
		require.Contains(t, c.err.String(), `with the status 404 has of its body what the error shows`)
	}
}

func TestRunsThatBecomeNoCase(t *testing.T) {
	t.Parallel()
	shell := newShell(t, "127.0.0.1:1")
	for from, tt := range map[string]struct{ to, want string }{
		`"status":"failed",
"start`: {`"status":"running",
"start`, "it is running"},
		`{"source":"SOURCE"}`: {"null", "was deleted, or published again"},
		"signalbox.run/1":     {"other", "is no export of a run"},
	} {
		_, run := export(t, func(s string) string { return strings.Replace(s, from, tt.to, 1) })
		requireRefusal(t, shell.run(t, "workflow", "test", "--from-run", run), exit.Failed, tt.want)
	}
	requireRefusal(t, shell.run(t, "workflow", "test", "--from-run", "x", "order.yaml"), exit.Usage, "leave one of them out")
}
