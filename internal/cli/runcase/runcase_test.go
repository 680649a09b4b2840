package runcase_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/workflowtest"
	"github.com/signalbox-dev/signalbox/internal/cli/runcase"
)

// header begins the documents of these tests.
const header = "document: {dsl: '1.0.3', namespace: shop, name: order, version: '1.0.0'}\n"

// description is one of the services that the documents call.
const description = `{"openapi":"3.0.3","info":{"title":"Shop","version":"1"},"servers":[{"url":"https://shop.example"}],
"paths":{"/orders":{"get":{"operationId":"list","responses":{"200":{"description":"orders"}}}}}}`

// write returns the case of a run with the ID r1: more members of the run, and its steps and events, as JSON.
func write(t *testing.T, source, run, steps, events string) *runcase.Case {
	t.Helper()
	text, err := json.Marshal(header + source)
	require.NoError(t, err)
	c, err := runcase.Write([]byte(`{"format":"signalbox.run/1","version":{"source":` + string(text) + `},
"run":{"id":"r1","workflow":"shop/order","version":"1.0.0","startTime":"2026-03-01T12:00:00Z",` + run + `},
"steps":[` + steps + `],"events":[` + events + `]}`))
	require.NoError(t, err)
	return c
}

// does requires that a case does what its run did: its run under test meets each expectation.
func does(t *testing.T, source string, c *runcase.Case) {
	t.Helper()
	resources := dsl.NewResources()
	resources.Add("shop.json", []byte(description))
	doc, violations := dsl.Parse([]byte(header+source), dsl.WithResources(resources))
	require.False(t, violations.HasErrors(), "%v", violations)
	file, violations := workflowtest.Parse(c.Text)
	require.Empty(t, violations, "%s", c.Text)
	result := workflowtest.Execute(t.Context(), doc, file.Case(0))
	require.True(t, result.Passed(), "%s\n%s", result.Explain(), c.Text)
}

// contains requires that a case has lines, without regard to their indentation.
func contains(t *testing.T, c *runcase.Case, want string) {
	t.Helper()
	require.Contains(t, strings.Join(strings.Fields(string(c.Text)), " "), want)
}

// Each task that awaits the response of another has the one that it got in the run.
func TestResponsesOfRuns(t *testing.T) {
	t.Parallel()
	const (
		get  = `call: http, with: {method: get, endpoint: 'https://shop.example'`
		bill = `run: {workflow: {namespace: shop, name: bill, version: '1.0.0'}`
	)
	for name, tt := range map[string]struct{ task, output, want string }{
		"content":    {get + `}`, `{"a":1}`, "body: a: 1"},
		"raw":        {get + `, output: raw}`, `"dGV4dA=="`, "body: text"},
		"operation":  {`call: openapi, with: {document: {endpoint: shop.json}, operationId: list}`, `[{"id":7}]`, "body: - id: 7"},
		"function":   {`call: go, with: {program: shop, function: price, version: 1.0.0}, timeout: {after: PT1M}`, `42`, "output: 42"},
		"run":        {bill + `}`, `{"a":2}`, "output: a: 2"},
		"run, all":   {bill + `, return: all}`, `{"code":0,"stdout":{"a":2},"stderr":""}`, "output: a: 2 expect"},
		"run, code":  {bill + `, return: code}`, `0`, "output: null expect"},
		"shell":      {`run: {shell: {command: ls}}`, `"a"`, "output: a expect"},
		"all":        {`run: {shell: {command: ls}, return: all}`, `{"code":3,"stdout":"a","stderr":"b"}`, "code: 3 stderr: b stdout: a"},
		"code":       {`run: {container: {image: shop}, return: code}`, `4`, "output: code: 4"},
		"stderr":     {`run: {script: {language: python, code: x}, return: stderr}`, `"bad"`, "output: stderr: bad"},
		"none":       {`run: {shell: {command: ls}, return: none}`, `null`, `output: "" expect`},
		"background": {`run: {shell: {command: ls}, await: false}`, `{"id":7}`, `output: "" expect`},
		"response": {get + `, output: response}`, `{"request":{"method":"GET","uri":"https://shop.example","headers":{
"accept":"application/json, */*;q=0.5","user-agent":"signalbox/test"}},"statusCode":200,"headers":{"x-a":"b",
"content-type":"text/plain"},"content":"a"}`, "body: a headers: content-type: text/plain x-a: b"},
		"script, changed": {`run: {script: {language: js, code: console.log(7)}}, output: {as: '{text: .}'}`, `{"text":"7\n"}`,
			`input: id: 7 expect`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			source := "do: [{only: {" + tt.task + "}}]\n"
			c := write(t, source, `"status":"completed","input":{"id":7},"output":`+tt.output, `{"pointer":"/do/0/only",
"task":"only","kind":"call","status":"completed","output":`+tt.output+`,"attempts":[{"httpStatus":200}]}`, "")
			contains(t, c, tt.want)
			require.NotContains(t, string(c.Text), "status: 200", "it is the default of a mock")
			require.Empty(t, c.Missing)
			does(t, source, c)
		})
	}
}

// A task that its timeout has ended got no response in time, whatever it waited for.
func TestTimeoutsOfRuns(t *testing.T) {
	t.Parallel()
	const timeout = dsl.ErrorTypeTimeout
	for _, task := range []string{
		`call: http, with: {method: get, endpoint: 'https://shop.example'}`,
		`call: go, with: {program: shop, function: price, version: 1.0.0}`,
		`run: {workflow: {namespace: shop, name: bill, version: '1.0.0'}}`,
		`run: {shell: {command: sleep 9}}`,
	} {
		source := "do: [{only: {timeout: {after: PT1S}, " + task + "}}]\n"
		c := write(t, source, `"status":"failed","error":{"type":"`+timeout+`","status":408,"instance":"/do/0/only"}`,
			`{"pointer":"/do/0/only","task":"only","status":"failed","error":{"type":"`+timeout+`","status":408}}`, "")
		contains(t, c, "delay: days: 1")
		does(t, source, c)
	}
}

// Failures of what a task awaits are those of the run.
func TestFailuresOfRuns(t *testing.T) {
	t.Parallel()
	const failed = `{"type":"https://shop.example/sold-out","status":409,"title":"Sold out","detail":"none left","instance":"/do/0/only"}`
	for _, task := range []string{
		`call: go, with: {program: shop, function: price, version: 1.0.0}, timeout: {after: PT1M}`,
		`run: {workflow: {namespace: shop, name: bill, version: '1.0.0'}}`,
		`run: {shell: {command: ls}}`,
	} {
		source := "do: [{only: {" + task + "}}]\n"
		own := strings.Replace(failed, "none left", "run 0199a4f2-0000-7000-8000-000000000000: none left", 1)
		c := write(t, source, `"status":"failed","error":`+failed, `{"pointer":"/do/0/only","task":"only","status":"failed",
"error":`+own+`,"attempts":[{}]}`, "")
		contains(t, c, "fail: detail: none left status: 409 title: Sold out")
		does(t, source, c)
	}
}

// A request that could not be sent needs no response. One with secrets does: the test has other ones.
func TestRequestsThatWereNotSent(t *testing.T) {
	t.Parallel()
	const (
		call   = `do: [{only: {call: http, with: {method: get, endpoint: {uri: 'https://shop.example', authentication: `
		failed = `"error":{"type":"` + dsl.ErrorTypeConfiguration + `","status":400,"title":"Secret not usable","instance":"/do/0/only"}`
	)
	for source, want := range map[string]string{
		call + "{bearer: {token: '${ .token }'}}}}}}]\n":                  "input: null expect",
		"use: {secrets: [bank]}\n" + call + "{basic: {use: bank}}}}}}]\n": "mocks: - task: only respond: - fail",
	} {
		c := write(t, source, `"status":"failed",`+failed, `{"pointer":"/do/0/only","task":"only","kind":"call","status":"failed",`+
			failed+`,"attempts":[{}]}`, "")
		contains(t, c, want)
		does(t, source, c)
	}
}

// The body of a response with an error status is not kept: the case has what the error shows, and a comment.
func TestCommentsForBodiesThatWereNotKept(t *testing.T) {
	t.Parallel()
	const source = "do: [{only: {call: http, with: {method: get, endpoint: 'https://shop.example'}}}]\n"
	for failed, want := range map[string]string{
		`"title":"Not Found"`: "# the body of the response was not kept, and the error shows nothing of it - status: 404",
		`"title":"Not Found","detail":"GET https://shop.example answered 404: no order"`: "" +
			"# the body of the response was not kept: this is what the error shows of it - body: no order",
		`"title":"No order"`: "# the body of the response was not kept: this is what the error shows of it - body: title: No order",
	} {
		failed = `"error":{"type":"` + dsl.ErrorTypeCommunication + `","status":404,"instance":"/do/0/only",` + failed + `}`
		c := write(t, source, `"status":"failed",`+failed, `{"pointer":"/do/0/only","task":"only","kind":"call",
"status":"failed",`+failed+`,"attempts":[{"httpStatus":404}]}`, "")
		contains(t, c, want)
		require.Contains(t, c.Notes[0], `the response to the task "only" with the status 404 has of its body what the error shows`)
		does(t, source, c)
	}
}

// A run that waits for an event becomes a case that waits. It has the events that others have published, but not those
// that started the run or that it published itself, whatever their source is.
func TestEventsOfRuns(t *testing.T) {
	t.Parallel()
	const (
		source = `schedule: {on: {one: {with: {type: shop.ordered}}}}
do:
  - confirm: {emit: {event: {with: {source: /shop, type: shop.taken}}}}
  - paid: {listen: {to: {one: {with: {type: shop.paid}}}}}
  - sent: {listen: {to: {one: {with: {type: shop.sent}}}}}
`
		events = `{"event":{"id":"1","source":"/web","type":"shop.ordered","actor":"web"}},
{"event":{"id":"2","source":"/shop","type":"shop.taken","actor":"run r1"}},
{"event":{"id":"3","source":"/bank","type":"shop.paid","actor":"bank","dataContentType":"application/json","data":{"a":1},
"extensions":{"shopid":"s"}}}`
	)
	c := write(t, source, `"status":"waiting","waitingKind":"event","input":[{"id":"1","source":"/web","type":"shop.ordered",
"specversion":"1.0"}]`, `{"pointer":"/do/2/sent","task":"sent","kind":"listen","status":"waiting"}`, events)
	contains(t, c, `events: - event: data: a: 1 datacontenttype: application/json id: "3" shopid: s source: /bank type: shop.paid `+
		`expect: status: waiting`)
	require.Empty(t, c.Missing)
	does(t, source, c)
}

// Secrets are marks, and what a run does not show is named.
func TestWhatRunsDoNotShow(t *testing.T) {
	t.Parallel()
	const (
		source = `use: {secrets: [bank, mail]}
do:
  - only: {run: {shell: {command: ls}}, output: {as: length}}
  - large:
      call: http
      with:
        method: get
        endpoint: 'https://shop.example'
        output: raw
        headers: {X-Key: '${ $secrets.bank.key + $secrets.mail }'}
`
		steps = `{"pointer":"/do/0/only","task":"only","kind":"run","status":"completed","output":7},
{"pointer":"/do/1/large","task":"large","kind":"call","status":"completed","output":"/w==","outputShortened":{"size":9},
"attempts":[{"httpStatus":200}]},{"pointer":"/elsewhere","task":"far","kind":"call","status":"completed"}`
	)
	c := write(t, source, `"status":"completed","output":"⟦redacted⟧","redacted":true`, steps, "")
	contains(t, c, "secrets: bank: key: FILL-IN mail: FILL-IN")
	contains(t, c, "- task: only respond: - output: FILL-IN")
	require.Equal(t, []string{
		`the response to the task "only" is what output.as made of it: correct its body`,
		`the response to the task "large" is larger than what is shown of it: complete its body`,
		`the body of the response to the task "large" is no text: write one`,
		`the task "far" is in a function outside of the document: add a mock for it`,
		`values of the run are redacted: replace their marks by values for tests`,
	}, c.Missing)
	require.Contains(t, c.Notes[0], "the secrets are marks: replace FILL-IN")
}
