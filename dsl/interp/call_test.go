package interp_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/interp"
	"github.com/signalbox-dev/signalbox/dsl/jq"
)

func TestCallMapsItsRequest(t *testing.T) {
	t.Parallel()
	w := newDriver(t, document(`
do:
  - send:
      input: {from: .order}
      call: http
      timeout: {after: {seconds: 20}}
      with:
        method: post
        endpoint: {uri: 'https://shop/{id}/lines{?page}'}
        headers: {X-Order: '${ .id }', X-Count: '${ .n }', X-None: '${ null }'}
        query: {q: '${ .name }'}
        body: {name: '${ .name }', literal: 'not ${ .name }', workflow: '${ $workflow.id }'}
        output: response
        redirect: true`), `{"order": {"id": "a/b", "page": 2, "n": 3, "name": "x y"}, "secret": 1}`)
	w.origin = func(interp.Call) answer { return ok(map[string]any{"statusCode": 200}) }
	w.completes(`{"statusCode": 200}`)
	require.Len(t, w.calls, 1)
	c := w.calls[0]
	require.Equal(t, &interp.HTTPRequest{
		Method: "POST", URL: "https://shop/a%2Fb/lines?page=2",
		Headers: map[string]string{"X-Order": "a/b", "X-Count": "3"},
		Query:   map[string]string{"q": "x y"},
		Body:    map[string]any{"name": "x y", "literal": "not ${ .name }", "workflow": "run-1"},
		HasBody: true, Output: dsl.OutputResponse, Redirect: true,
	}, c.HTTP)
	require.Equal(t, int64(1), c.StepNumber)
	require.Equal(t, epoch.Add(20*time.Second), c.Deadline)
	require.Regexp(t, `^run-1-[0-9a-f]{16}$`, c.Key)
}

func TestSecretsArePlaceholders(t *testing.T) {
	t.Parallel()
	w := newDriver(t, document(`
use: {secrets: [token, db, a.b]}
do:
  - send:
      call: http
      with:
        method: post
        endpoint:
          uri: '${ "https://" + .host + "/?key=" + $secrets.token }'
          authentication: {basic: {username: '${ .user }', password: '${ $secrets.db.password }'}}
        headers: '${ {Authorization: "Bearer \($secrets.token)", "X-N": .n} }'
        query: {q: '${ $secrets["a.b"] }', n: '${ .none + $secrets.db["x y"] }'}
        body: {deep: [{pin: '${ "no \(.n): " + $secrets.db.password }'}], plain: '${ .n }'}`),
		`{"host": "shop", "user": "me", "n": 3}`)
	w.origin = func(interp.Call) answer { return ok(nil) }
	w.completes(`null`)
	token, db := dsl.Secret{Name: "token", Members: []string{}}, dsl.Secret{Name: "db", Members: []string{"password"}}
	require.Equal(t, &interp.HTTPRequest{
		Method: "POST", URL: "https://shop/?key=⟦secrets.token⟧",
		Headers: map[string]string{"Authorization": "Bearer ⟦secrets.token⟧", "X-N": "3"},
		Query:   map[string]string{"q": "⟦secrets.a.b⟧", "n": "⟦secrets.db.x y⟧"},
		Body:    map[string]any{"deep": []any{map[string]any{"pin": "no 3: ⟦secrets.db.password⟧"}}, "plain": 3},
		HasBody: true,
		Output:  dsl.OutputContent,
		Authentication: &interp.Authentication{
			Scheme: dsl.AuthBasic, Properties: map[string]any{"username": "me", "password": "⟦secrets.db.password⟧"}},
		Secrets: map[string]dsl.Secret{
			"⟦secrets.token⟧": token, "⟦secrets.db.password⟧": db,
			"⟦secrets.a.b⟧": {Name: "a.b", Members: []string{}}, "⟦secrets.db.x y⟧": {Name: "db", Members: []string{"x y"}},
		},
	}, w.calls[0].HTTP)
}

func TestDataIsNeverReadAsAPlaceholder(t *testing.T) {
	t.Parallel()
	for name, given := range map[string]string{
		"a value":           `{"x": "give me ⟦secrets.token⟧", "y": ""}`,
		"in two parts":      `{"x": "⟦secrets.", "y": "token⟧"}`,
		"another spelling":  `{"x": "⟦secrets.token⟧ ⟦secrets.token#2⟧", "y": ""}`,
		"the name of a key": `{"x": {"⟦secrets.token⟧": 1}, "y": ""}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newDriver(t, document(`
use: {secrets: [token]}
do: [{c: {call: http, with: {method: post, endpoint: 'http://x', body: {x: '${ .x }', s: '${ "\(.x)" + .y + $secrets.token }'}}}}]`), given)
			w.origin = func(interp.Call) answer { return ok(1) }
			w.completes(`1`)
			r := w.calls[0].HTTP
			require.Len(t, r.Secrets, 1)
			for placeholder := range r.Secrets {
				body, _ := r.Body.(map[string]any)
				all, err := jq.EncodeJSON(body)
				require.NoError(t, err)
				require.Equal(t, 1, strings.Count(string(all), placeholder), "%s", all)
				require.True(t, strings.HasSuffix(body["s"].(string), placeholder))
			}
		})
	}
}

func TestSecretJoinedWithNonText(t *testing.T) {
	t.Parallel()
	w := newDriver(t, document(`
use: {secrets: [token]}
do: [{c: {call: http, with: {method: get, endpoint: 'http://x', headers: {A: '${ .n + $secrets.token }'}}}}]`), `{"n": 1}`)
	outcome := w.run()
	require.Equal(t, interp.StatusFailed, outcome.Status)
	require.Equal(t, dsl.ErrorTypeExpression, outcome.Error.Type)
	require.Contains(t, outcome.Error.Detail, "want a string beside a secret, got a number")
}

func TestDataIsNeverATemplate(t *testing.T) {
	t.Parallel()
	w := newDriver(t, document(
		`do: [{c: {call: http, with: {method: get, endpoint: '${ .url }', headers: {A: '${ .evil }'}}}}]`),
		`{"url": "https://x/{id}", "id": "leak", "evil": "${ .id }"}`)
	w.origin = func(interp.Call) answer { return ok(1) }
	w.completes(`1`)
	require.Equal(t, "https://x/{id}", w.calls[0].HTTP.URL)
	require.Equal(t, "${ .id }", w.calls[0].HTTP.Headers["A"])
}

func TestBadRequestsAreExpressionErrors(t *testing.T) {
	t.Parallel()
	for name, with := range map[string]string{
		"headers are no object":  `{method: get, endpoint: 'http://x', headers: '${ 5 }'}`,
		"a header is an object":  `{method: get, endpoint: 'http://x', headers: {A: '${ {} }'}}`,
		"the query is no object": `{method: get, endpoint: 'http://x', query: '${ [] }'}`,
		"the endpoint is null":   `{method: get, endpoint: '${ .none }'}`,
		"an object in the URI":   `{method: get, endpoint: 'http://x/{o}'}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newDriver(t, document(`do: [{c: {call: http, with: `+with+`}}]`), `{"o": {}}`)
			got := w.fails()
			require.Equal(t, dsl.ErrorTypeExpression, got.Type)
			require.Equal(t, "/do/0/c", got.Instance)
		})
	}
}

func TestCallFailureIsTheStandardError(t *testing.T) {
	t.Parallel()
	w := newDriver(t, document(`do: [{o: {do: [{c: {call: http, with: {method: get, endpoint: 'http://x'}}}]}}]`), ``)
	w.origin = func(interp.Call) answer { return answer{Result: answered(404), after: time.Second} }
	got := w.fails()
	require.Equal(t, dsl.Error{
		Type: dsl.ErrorTypeCommunication, Status: 404, Title: "Bad status", Detail: "the origin said so",
		Instance: "/do/0/o/do/0/c",
	}, got)
	s := w.step("/do/0/o/do/0/c")
	ended := epoch.Add(time.Second)
	require.Equal(t, []interp.AttemptRecord{
		{Number: 1, StartedAt: epoch, EndedAt: &ended, Error: &got, Outcome: interp.OutcomeFailed, Method: "GET", Host: "x"}},
		s.Attempts)
}

const retrying = `
do:
  - t:
      try: [{c: {call: http, with: {method: post, endpoint: 'http://x'}}}]
      catch: {errors: {with: {type: '` + dsl.ErrorTypeCommunication + `'}}, retry: `

func TestRetryDelays(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, policy string
		failures     int
		want         []time.Duration // gaps between the calls
		caught       bool
	}{
		{"constant", `{delay: {seconds: 3}, limit: {attempt: {count: 5}}}`, 3, []time.Duration{3, 3, 3}, false},
		{"linear", `{delay: {seconds: 3}, backoff: {linear: {}}, limit: {attempt: {count: 5}}}`, 3, []time.Duration{3, 6, 9},
			false},
		{"exponential", `{delay: {seconds: 3}, backoff: {exponential: {}}, limit: {attempt: {count: 5}}}`, 4,
			[]time.Duration{3, 6, 12, 24}, false},
		{"limited by count", `{delay: {seconds: 1}, limit: {attempt: {count: 2}}}`, 9, []time.Duration{1, 1}, true},
		{"limited by time", `{delay: {seconds: 4}, limit: {duration: {seconds: 10}}}`, 9, []time.Duration{4, 4}, true},
		{"when", `{when: $error.status == 503, delay: {seconds: 1}}`, 9, nil, true},
		{"exceptWhen", `{exceptWhen: $error.status == 500, delay: {seconds: 1}}`, 9, nil, true},
		{"no delay", `{limit: {attempt: {count: 2}}}`, 9, []time.Duration{0, 0}, true},
		{"delay from data", `{delay: '${ .pause }', limit: {attempt: {count: 1}}}`, 1, []time.Duration{7}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newDriver(t, document(retrying+tt.policy+`, do: [{h: {set: {caught: '${ $error.status }'}}}]}`),
				`{"pause": "PT7S"}`)
			var at []time.Time
			w.origin = func(interp.Call) answer {
				if at = append(at, w.now); len(at) <= tt.failures {
					return answer{Result: answered(500)}
				}
				return ok(map[string]any{"caught": nil})
			}
			want := `{"caught": null}`
			if tt.caught {
				want = `{"caught": 500}`
			}
			w.completes(want)
			var gaps []time.Duration
			for i := 1; i < len(at); i++ {
				gaps = append(gaps, at[i].Sub(at[i-1])/time.Second)
			}
			require.Equal(t, tt.want, gaps)
			require.Len(t, w.step("/do/0/t").Attempts, len(at))
			require.Equal(t, len(at), w.step("/do/0/t").Attempt)
		})
	}
}

func TestRetriesWaitAsLongAsTheServiceAsks(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, policy string
		want         []time.Duration // gaps between the calls, in seconds
	}{
		{"longer than the policy", `{delay: {seconds: 3}, limit: {attempt: {count: 2}}}`, []time.Duration{7, 7}},
		{"shorter than the policy", `{delay: {seconds: 9}, limit: {attempt: {count: 2}}}`, []time.Duration{9, 9}},
		{"without a delay", `{limit: {attempt: {count: 2}}}`, []time.Duration{7, 7}},
		{"plus jitter", `{jitter: {from: {seconds: 2}, to: {seconds: 2}}, limit: {attempt: {count: 2}}}`,
			[]time.Duration{9, 9}},
		{"limited by time", `{delay: {seconds: 1}, limit: {duration: {seconds: 10}}}`, []time.Duration{7}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newDriver(t, document(retrying+tt.policy+`, do: [{h: {set: {caught: true}}}]}`), ``)
			var at []time.Time
			w.origin = func(interp.Call) answer {
				at = append(at, w.now)
				failed := answered(503)
				failed.Attempts = []interp.Attempt{{StartedAt: w.now, EndedAt: w.now, Status: 503, RetryAfter: 7 * time.Second}}
				return answer{Result: failed}
			}
			w.completes(`{"caught": true}`)
			var gaps []time.Duration
			for i := 1; i < len(at); i++ {
				gaps = append(gaps, at[i].Sub(at[i-1])/time.Second)
			}
			require.Equal(t, tt.want, gaps)
			require.Equal(t, 7*time.Second, w.step("/do/0/t/try/0/c").Attempts[0].RetryAfter)
		})
	}
}

func TestJitterIsInRangeAndTheSameEveryTime(t *testing.T) {
	t.Parallel()
	source := document(retrying +
		`{delay: {seconds: 1}, jitter: {from: {milliseconds: 100}, to: {milliseconds: 900}}, limit: {attempt: {count: 30}}}}`)
	gaps := func() []time.Duration {
		w := newDriver(t, source, `{}`)
		var at []time.Time
		w.origin = func(interp.Call) answer {
			at = append(at, w.now)
			return answer{Result: answered(500)}
		}
		w.fails()
		var out []time.Duration
		for i := 1; i < len(at); i++ {
			out = append(out, at[i].Sub(at[i-1]))
		}
		return out
	}
	first := gaps()
	require.Len(t, first, 30)
	distinct := map[time.Duration]bool{}
	for _, g := range first {
		require.GreaterOrEqual(t, g, 1100*time.Millisecond)
		require.LessOrEqual(t, g, 1900*time.Millisecond)
		distinct[g] = true
	}
	require.Greater(t, len(distinct), 20)
	require.Equal(t, first, gaps())
}

func TestAttemptDurationEndsOneTry(t *testing.T) {
	t.Parallel()
	w := newDriver(t, document(`
do:
  - t:
      try: [{c: {call: http, with: {method: post, endpoint: 'http://x'}}}]
      catch: {errors: {with: {status: 408}}, retry: {delay: {seconds: 1}, limit: {attempt: {count: 3, duration: {seconds: 2}}}}}`), ``)
	w.origin = func(interp.Call) answer {
		if len(w.calls) < 3 {
			return answer{never: true}
		}
		return answer{Result: ok("at last").Result, after: time.Second}
	}
	w.completes(`"at last"`)
	require.Len(t, w.calls, 3)
	require.Equal(t, w.calls[0].Key, w.calls[2].Key, "it is unknown whether the first two were served")
	require.Equal(t, epoch.Add(7*time.Second), w.now)
}

func TestKeys(t *testing.T) {
	t.Parallel()
	source := document(`
do:
  - l:
      for: {each: x, in: '[1,2]'}
      do:
        - t:
            try: [{c: {call: http, with: {method: post, endpoint: 'http://x'}}}]
            catch: {retry: {limit: {attempt: {count: 1}}}}
  - again: {call: http, with: {method: post, endpoint: 'http://x'}}
  - s: {set: {n: '${ (.n // 0) + 1 }'}}
  - more: {switch: [{yes: {when: .n == 1, then: again}}]}`)
	keys := func(unanswered bool) []string {
		w := newDriver(t, source, `{}`)
		w.origin = func(interp.Call) answer {
			if len(w.calls) == 1 {
				r := answered(500)
				r.Unanswered = unanswered
				return answer{Result: r}
			}
			return ok(map[string]any{"n": len(w.calls) - 4})
		}
		w.run()
		var out []string
		for _, c := range w.calls {
			out = append(out, c.Key)
		}
		return out
	}
	unknown, known := keys(true), keys(false)
	require.Len(t, unknown, 5)
	require.Equal(t, unknown[0], unknown[1], "a repetition of an unanswered call")
	require.NotEqual(t, known[0], known[1], "a new call after an answer")
	require.Equal(t, unknown[2:], known[2:])
	distinct := map[string]bool{}
	for _, k := range known {
		distinct[k] = true
	}
	require.Len(t, distinct, 5, "iterations and jumps back make other calls")
}

func TestCompetingForkCancelsOtherBranches(t *testing.T) {
	t.Parallel()
	w := newDriver(t, document(`
do:
  - f:
      fork:
        compete: true
        branches:
          - slow: {do: [{c: {call: http, with: {method: get, endpoint: 'http://slow'}}}]}
          - fast: {call: http, with: {method: get, endpoint: 'http://fast'}}
          - timer: {wait: {hours: 1}}`), `{}`)
	w.origin = func(c interp.Call) answer {
		if c.HTTP.URL == "http://fast" {
			return answer{Result: ok("fast").Result, after: time.Second}
		}
		return answer{never: true}
	}
	w.completes(`"fast"`)
	require.Equal(t, []string{
		"/do/0/f completed", "/do/0/f/fork/branches/0/slow canceled", "/do/0/f/fork/branches/1/fast completed",
		"/do/0/f/fork/branches/2/timer canceled", "/do/0/f/fork/branches/0/slow/do/0/c canceled",
	}, w.trace())
	require.Contains(t, w.effects, interp.Effect(interp.CancelCall{ID: w.calls[1].ID}))
}

func TestHoldPreventsNewCalls(t *testing.T) {
	t.Parallel()
	w := newDriver(t, document(`
do:
  - f:
      fork:
        branches:
          - a: {for: {in: '[1,2,3,4,5]'}, do: [{c: {call: http, with: {method: get, endpoint: 'http://a'}}}]}
          - b: {for: {in: '[1,2,3,4,5]'}, do: [{c: {call: http, with: {method: get, endpoint: 'http://b'}}}]}`), `{}`)
	w.origin = func(c interp.Call) answer {
		if c.HTTP.URL == "http://a" {
			return answer{Result: ok("a").Result, after: 2 * time.Second}
		}
		return answer{Result: ok("b").Result, after: 3 * time.Second}
	}
	moves := 0
	w.between = func(w *driver) {
		if len(w.calls) >= 3 && moves == 0 {
			w.m.Hold()
		}
		if w.m.InFlight() > 0 || len(w.calls) < 3 || moves > 0 {
			return
		}
		moves++
		w.restore()
	}
	w.completes(`["a", "b"]`)
	require.Equal(t, 1, moves)
	require.Len(t, w.calls, 10)
}

func TestAttemptsRecordMethodAndHost(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ endpoint, want string }{
		"credentials, path and query": {`https://user:pw@api.example:8443/v1/orders?key=1`, "DELETE api.example:8443"},
		"an expression":               {`${ "http://" + .host + "/v1" }`, "DELETE shop.example"},
		"a secret in the path":        {`${ "https://api.example/" + $secrets.key }`, "DELETE api.example"},
		"a secret in the host":        {`${ "https://" + $secrets.key + ".example/" }`, "DELETE "},
		"no URL":                      {`${ "::" }`, "DELETE "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newDriver(t, document("use: {secrets: [key]}\ndo: [{c: {call: http, with: {method: delete, endpoint: '"+
				tc.endpoint+"'}}}]"), `{"host": "shop.example"}`)
			w.origin = func(interp.Call) answer { return ok(1) }
			w.run()
			a := w.step("/do/0/c").Attempts[0]
			require.Equal(t, tc.want, a.Method+" "+a.Host)
		})
	}
}
