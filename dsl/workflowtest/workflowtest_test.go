package workflowtest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/interp"
	"github.com/signalbox-dev/signalbox/dsl/workflowtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const header = "document: {dsl: '1.0.3', namespace: shop, name: order, version: '1.0.0'}\n"

// order calls a service with retries, waits a month for an event, and starts another workflow.
const order = header + `
use: {secrets: [shop]}
do:
  - pay:
      try:
        - charge:
            call: http
            with:
              method: post
              endpoint: https://shop.example/payments
              headers: {X-Key: '${ $secrets.shop.key }'}
              body: {order: '${ .id }'}
            export: {as: '${ $input + {payment: .} }'}
      catch:
        errors: {with: {status: 503}}
        retry: {delay: {seconds: 2}, backoff: {exponential: {}}, limit: {attempt: {count: 3}}}
        do:
          - give: {set: {paid: false}, then: exit}
  - wait:
      timeout: {after: {days: 30}}
      listen: {to: {one: {with: {type: shop.shipped, data: '${ .id == "o-1" }'}}}}
  - bill:
      run: {workflow: {namespace: shop, name: bill, version: '1.0.0', input: {id: o-1}}}
  - decide:
      switch:
        - large: {when: '${ .total > 100 }', then: big}
        - small: {then: end}
  - big: {emit: {event: {with: {type: shop.large, data: {total: '${ .total }'}}}}}
`

// tests is a file of tests of order.
const tests = `
now: 2026-03-01T12:00:00Z
secrets: {shop: {key: k-1}}
cases:
  - name: a large order
    input: {id: o-1}
    mocks:
      - task: charge
        when: .method == "POST" and .body.order == "o-1" and .headers["x-key"] == "k-1"
        respond: [{status: 503}, {fail: {type: communication}}, {body: {id: p-1}}]
      - task: bill
        respond: {output: {total: 120}, delay: {hours: 1}}
    events:
      - {task: wait, event: {type: shop.shipped, data: {id: o-2}}}
      - {event: {type: shop.shipped, data: {id: o-1}}}
    expect:
      contains: {type: shop.large, data: {total: 120}}
      holds: ['.data.total == 120', '$requests | length == 3', '$events[0].type == "shop.large"', '$input.id == "o-1"']
      tasks: [pay, charge, charge, charge, wait, bill, decide, big]
      requests:
        - {task: charge, method: POST, url: 'https://shop.example/payments', headers: {X-Key: k-1}, body: {order: o-1}}
        - {}
        - {}
      events: [{type: shop.large}]
      children: [{workflow: shop/bill, version: 1.0.0, input: {id: o-1}}]
      attempts: {pay: 3, charge: 3}
      duration: PT1H6S
  - name: nothing ships
    input: {id: o-1}
    mocks: [{respond: {status: 201, body: {id: p-1}}}]
    expect:
      error: {type: timeout, status: 408, instance: /do/1/wait}
      duration: {days: 30}
  - name: the service is away
    input: {id: o-1}
    mocks: [{task: charge, respond: {status: 503, headers: {Retry-After: '60'}}}]
    expect: {status: failed, ran: [give], notRan: [bill], durationAtMost: P40D}
`

func parse(t testing.TB, source string) *dsl.Document {
	t.Helper()
	doc, violations := dsl.Parse([]byte(source))
	require.False(t, violations.HasErrors(), "%v", violations)
	return doc
}

func file(t testing.TB, doc *dsl.Document, source string) *workflowtest.File {
	t.Helper()
	f, violations := workflowtest.Parse([]byte(source))
	require.Empty(t, violations)
	require.Empty(t, f.Check(doc))
	return f
}

// explain runs a file and returns the mismatches of its cases.
func explain(t *testing.T, document, source string) string {
	t.Helper()
	doc := parse(t, document)
	report := file(t, doc, source).Run(t.Context(), doc, nil, 2)
	var out []string
	for _, r := range report.Results {
		for _, m := range r.Mismatches {
			out = append(out, fmt.Sprintf("%d:%d %s: %s %s", m.Pos.Line, m.Pos.Column, m.What, m.Message, m.Diff))
		}
	}
	for _, m := range report.Unused {
		out = append(out, fmt.Sprintf("%d:%d %s: %s", m.Pos.Line, m.Pos.Column, m.What, m.Message))
	}
	return strings.Join(out, "\n")
}

func TestCasesRunWithVirtualTimeAndMocks(t *testing.T) {
	t.Parallel()
	doc := parse(t, order)
	report := file(t, doc, tests).Run(t.Context(), doc, nil, 2)
	for _, r := range report.Results {
		require.Empty(t, r.Mismatches, "%s\n%s", r.Case, r.Explain())
	}
	require.True(t, report.Passed())
	require.Equal(t, []string{"decide small"}, missing(report.Coverage))
	require.Equal(t, 90, report.Coverage.Percent())
}

func missing(c *workflowtest.Coverage) []string {
	var out []string
	for _, p := range c.Missing() {
		out = append(out, strings.TrimSpace(p.Task+" "+p.Branch))
	}
	return out
}

// TestEventsAreAsThePlatformAcceptsThem has an event with the attributes that each event has, and no other ones.
func TestEventsAreAsThePlatformAcceptsThem(t *testing.T) {
	t.Parallel()
	const document = `
document: {dsl: 1.0.3, namespace: shop, name: listens, version: 1.0.0}
do: [{wait: {listen: {to: {one: {with: {type: shop.paid}}}, read: envelope}}}]`
	const source = `
cases:
  - name: one
    events: [{event: {type: shop.paid, data: {total: 1}}}]
    expect: {output: [{specversion: '1.0', id: event-1, source: /test, type: shop.paid, data: {total: 1}}]}`
	require.Empty(t, explain(t, document, source))
}

func TestCasesAreSelectedByName(t *testing.T) {
	t.Parallel()
	doc := parse(t, order)
	report := file(t, doc, tests).Run(t.Context(), doc, regexp.MustCompile("^nothing"), 1)
	require.Len(t, report.Results, 1)
	require.Equal(t, "nothing ships", report.Results[0].Case)
	require.Equal(t, interp.StatusFailed, report.Results[0].Status)
}

// Credentials are not added to requests, but those that cannot be used fail the call, as on the platform.
func TestCredentialsThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	call := func(authentication string) string {
		return header + "use: {secrets: [bank]}\ndo: [{get: {call: http, with: {method: get, endpoint: {uri: 'https://shop.example', " +
			"authentication: " + authentication + "}}}}]\n"
	}
	const refused = "cases: [{name: a, input: {}, secrets: {bank: key}, expect: {error: {type: configuration, status: 400, " +
		"title: Secret not usable, detail: 'GET https://shop.example was not sent: DETAIL'}}}]\n"
	for authentication, want := range map[string]string{
		"{bearer: {token: '${ .token }'}}":                        "the authentication bearer lacks a token",
		"{basic: {username: '', password: '${ $secrets.bank }'}}": "the authentication basic lacks a username",
		"{basic: {use: bank}}":                                    `the secret "bank" is not a JSON object with the properties of the authentication basic`,
	} {
		require.Empty(t, explain(t, call(authentication), strings.Replace(refused, "DETAIL", want, 1)), authentication)
	}
	const sent = "cases: [{name: a, input: {token: t}, secrets: {bank: SECRET}, mocks: [{respond: {}}], expect: {ran: [get]}}]\n"
	require.Empty(t, explain(t, call("{bearer: {token: '${ .token }'}}"), strings.Replace(sent, "SECRET", "key", 1)))
	require.Empty(t, explain(t, call("{basic: {use: bank}}"), strings.Replace(sent, "SECRET", "{username: a}", 1)))
}

func TestFailuresHaveTheLineOfTheirExpectation(t *testing.T) {
	t.Parallel()
	got := explain(t, header+"do: [{a: {raise: {error: {type: 'https://shop.example/gone', status: 410}}}}]\n", `cases:
  - name: one
    expect:
      duration: {seconds: 1}
      error:
        type: https://shop.example/gone
        status: 404
      tasks: []
`)
	for _, want := range []string{"4:7 duration:", "5:7 error.status:", "8:7 tasks:"} {
		require.Contains(t, got, want)
	}
}

func TestEveryExpectationCanFail(t *testing.T) {
	t.Parallel()
	const document = header + `
do:
  - get: {call: http, with: {method: get, endpoint: 'https://shop.example/a?b=c'}}
  - tell: {emit: {event: {with: {type: shop.told, data: 1}}}}
  - child: {run: {workflow: {namespace: shop, name: bill, version: '1.0.0', input: {a: 1}, }}}
`
	for _, tt := range []struct{ expect, want string }{
		{"output: {total: 2}", "output differs"},
		{"contains: {total: {a: 2}}", "output lacks what is expected at .total"},
		{"holds: .total == 2", ".total == 2 is false"},
		{"holds: .total.a", "expected an object"},
		{"status: failed", "completed, not failed"},
		{"error: {status: 404}", "completed, not failed"},
		{"tasks: [get, child]", "tasks that ran differ"},
		{"notRan: [tell]", `task "tell" ran`},
		{"requests: []", "there are 1 requests, not 0"},
		{"requests: [{method: POST}]", `method is "GET", not "POST"`},
		{"requests: [{url: 'https://shop.example/a'}]", "url is"},
		{"requests: [{headers: {Accept: text/html}}]", "header Accept is"},
		{"requests: [{body: {}}]", "body differs"},
		{"events: [{type: shop.other}]", "event lacks what is expected at .type"},
		{"events: []", "there are 1 events, not 0"},
		{"children: [{workflow: shop/other}]", "workflow is"},
		{"children: [{input: {a: 2}}]", "input differs"},
		{"attempts: {get: 2}", "had 1 attempts, not 2"},
		{"duration: {seconds: 1}", "took 0s, not 1s"},
	} {
		source := `
cases:
  - name: one
    mocks: [{task: get, respond: {body: {}}}, {task: child, respond: {output: {total: 1}}}]
    expect: {` + tt.expect + `}
`
		require.Contains(t, explain(t, document, source), tt.want, tt.expect)
	}
}

func TestErrorsAreCompared(t *testing.T) {
	t.Parallel()
	const document = header + `
do: [{get: {call: http, with: {method: get, endpoint: 'https://shop.example/a'}}}]
`
	for _, tt := range []struct{ expect, want string }{
		{"type: timeout", "communication, not"}, {"status: 500", "status is 404, not 500"},
		{"title: Other", `title is "Not Found"`}, {"detail: Other", "detail is"}, {"instance: /do/1", "instance is"},
		{"{type: communication, status: 404, title: Not Found, instance: /do/0/get}", ""},
	} {
		expect := strings.TrimSuffix(strings.TrimPrefix(tt.expect, "{"), "}")
		got := explain(t, document, `
cases: [{name: one, mocks: [{respond: {status: 404}}], expect: {error: {`+expect+`}}}]`)
		require.Contains(t, got, tt.want, tt.expect)
		require.Equal(t, tt.want == "", got == "", got)
	}
}

func TestRequestsWithoutMockShowTheLinesThatMockThem(t *testing.T) {
	t.Parallel()
	got := explain(t, order, `
secrets: {shop: {key: k-1}}
cases: [{name: one, input: {id: o-1}, expect: {status: completed}}]`)
	require.Contains(t, got, `no mock answers the request of the task "charge": POST https://shop.example/payments`)
	require.Contains(t, got, `{"order":"o-1"}`)
	require.Contains(t, got, "- task: charge\n    respond: {status: 200, body: {}}")
}

func TestSecretsThatTheCaseLacksAreNamed(t *testing.T) {
	t.Parallel()
	require.Contains(t, explain(t, order, `cases: [{name: one, input: {id: o-1}, expect: {status: completed}}]`),
		"secrets: {shop: {key: test}}")
}

func TestUnusedPartsFail(t *testing.T) {
	t.Parallel()
	const document = header + `
do: [{get: {call: http, with: {method: get, endpoint: 'https://shop.example/a'}}}]
`
	for _, tt := range []struct{ mocks, want string }{
		{"[{respond: {}}, {task: get, respond: {}}]", "2:44 mocks: the mock answered no request"},
		{"[{when: 'false', respond: {}}, {respond: {}}]", "2:29 mocks: the mock answered no request"},
		{"[{respond: [{}, {status: 500}]}]", "2:44 mocks: the response 2 of the mock was not used"},
	} {
		require.Contains(t, explain(t, document, "\ncases: [{name: one, mocks: "+tt.mocks+", expect: {status: completed}}]"),
			tt.want)
	}
	require.Contains(t, explain(t, document, `
mocks: [{task: get, respond: {}}, {respond: {}}]
cases: [{name: one, expect: {status: completed}}]`), "of any case")
	require.Contains(t, explain(t, document, `
cases: [{name: one, mocks: [{respond: {}}], events: [{event: {type: a}}], expect: {status: completed}}]`),
		"events: the event was not published")
}

func TestRunsThatWaitForEverAreExplained(t *testing.T) {
	t.Parallel()
	const document = header + `
do: [{answer: {listen: {to: {one: {with: {type: shop.answer}}}}}}]
`
	require.Contains(t, explain(t, document, `cases: [{name: one, expect: {status: completed}}]`),
		`the task "answer" listens for an event of the type shop.answer`)
	require.Empty(t, explain(t, document, `cases: [{name: one, expect: {status: waiting}}]`))
}

func TestEndlessRunsFail(t *testing.T) {
	t.Parallel()
	got := explain(t, header+"do: [{a: {set: {n: 1}}}, {b: {wait: {days: 1}, then: a}}]",
		`cases: [{name: one, expect: {status: completed}}]`)
	require.Contains(t, got, "the run is failed, not completed")
	require.Contains(t, got, "100000")
}

func TestCallsEndAtTheirTimeLimit(t *testing.T) {
	t.Parallel()
	const document = header + `
do: [{get: {call: http, with: {method: get, endpoint: 'https://shop.example/a'}}}]
`
	require.Empty(t, explain(t, document, `
cases:
  - name: one
    mocks: [{respond: {delay: {hours: 1}}}]
    expect: {error: {type: communication, status: 504, title: No answer in time}, duration: {minutes: 1}}`))
}

func TestRunReportsToTheTest(t *testing.T) {
	t.Parallel()
	doc := parse(t, header+"do: [{greet: {set: {greeting: '${ \"Hello, \" + .name }'}}}]")
	workflowtest.Run(t, doc, workflowtest.Case{
		Input:  map[string]any{"name": "Ada"},
		Expect: workflowtest.Expect{Output: map[string]any{"greeting": "Hello, Ada"}, HasOutput: true},
	})
	failed := &recorder{}
	workflowtest.Run(failed, doc, workflowtest.Case{Input: map[string]any{"name": "Ada"}, Expect: workflowtest.Expect{Ran: []string{"other"}}})
	require.Contains(t, failed.text, `the task "other" did not run`)
	require.Contains(t, failed.text, "completed set    /do/0/greet")
}

type recorder struct{ text string }

func (r *recorder) Helper()                           {}
func (r *recorder) Context() context.Context          { return context.Background() }
func (r *recorder) Errorf(format string, args ...any) { r.text += fmt.Sprintf(format, args...) }

func TestCasesEndWithTheirContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	doc := parse(t, order)
	report := file(t, doc, tests).Run(ctx, doc, nil, 1)
	require.False(t, report.Passed())
	require.Contains(t, report.Results[0].Explain(), "interrupted")
}

func TestSchemaHasEveryKey(t *testing.T) {
	t.Parallel()
	var schema map[string]any
	require.NoError(t, json.Unmarshal(workflowtest.Schema(), &schema))
	cases := schema["properties"].(map[string]any)["cases"].(map[string]any)
	properties := cases["items"].(map[string]any)["properties"].(map[string]any)
	for _, key := range []string{"name", "input", "mocks", "events", "secrets", "expect"} {
		require.Contains(t, properties, key)
	}
}

// Every official example that this version runs ends, waits for an event, or names what the case lacks.
func TestOfficialExamplesRun(t *testing.T) {
	t.Parallel()
	folder := os.Getenv("OWS_DIR")
	if folder == "" {
		folder = filepath.Join("..", "..", "..", "shared", "open-workflow")
	}
	paths, err := filepath.Glob(filepath.Join(folder, "examples", "*.yaml"))
	require.NoError(t, err)
	if len(paths) == 0 {
		t.Skip("the official data is missing (set OWS_DIR)")
	}
	ran := 0
	for _, path := range paths {
		source, err := os.ReadFile(path)
		require.NoError(t, err)
		doc, violations := dsl.Parse(source)
		if violations.HasErrors() {
			continue // beyond this version
		}
		result := workflowtest.Execute(t.Context(), doc, workflowtest.Case{Input: map[string]any{}, Mocks: []workflowtest.Mock{
			{Respond: []workflowtest.Response{{Body: map[string]any{}, HasBody: true}}},
			{Respond: []workflowtest.Response{{Output: map[string]any{}, HasOutput: true}}},
		}})
		ran++
		if result.Status == "" {
			require.Equal(t, "secrets", result.Mismatches[0].What, "%s: %s", path, result.Explain())
		}
	}
	require.Greater(t, ran, 20)
}

// A thousand cases of ten steps must take less than 5 s on two cores; the benchmark shows what they take.
func BenchmarkThousandCases(b *testing.B) {
	var source strings.Builder
	source.WriteString(header + "do:\n")
	for i := range 5 {
		fmt.Fprintf(&source, "  - get%d: {call: http, with: {method: get, endpoint: 'https://shop.example/a'}}\n", i)
		fmt.Fprintf(&source, "  - wait%d: {wait: {days: 1}}\n", i)
	}
	doc := parse(b, source.String())
	f := &workflowtest.File{}
	for i := range 1000 {
		f.Cases = append(f.Cases, workflowtest.Case{
			Name:   fmt.Sprint(i),
			Mocks:  []workflowtest.Mock{{When: `.method == "GET"`, Respond: []workflowtest.Response{{Body: map[string]any{"a": 1}, HasBody: true}}}},
			Expect: workflowtest.Expect{Output: map[string]any{"a": 1}, HasOutput: true, Duration: ptr(5 * 24 * time.Hour)},
		})
	}
	for b.Loop() {
		require.True(b, f.Run(b.Context(), doc, nil, 2).Passed())
	}
}

func ptr[T any](v T) *T { return &v }
