package eventfilter_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/signalbox-dev/signalbox/dsl/eventfilter"
	"github.com/signalbox-dev/signalbox/dsl/jq"
)

const heartbeat = `{"specversion": "1.0", "id": "1", "source": "/sensors/7", "type": "com.example.temperature", "time": "2026-01-31T08:00:00Z",
	"roomid": "kitchen", "urgent": false, "data": {"celsius": 38.5, "unit": {"name": "C", "scale": 1}, "tags": ["a", "b"]}}`

func event(t require.TestingT, text string) map[string]any {
	v, err := jq.DecodeJSON([]byte(text))
	require.NoError(t, err)
	object, ok := v.(map[string]any)
	require.True(t, ok)
	return object
}

func matcher(t require.TestingT, filter string) *eventfilter.Matcher {
	var f eventfilter.Filter
	require.NoError(t, json.Unmarshal([]byte(filter), &f))
	m, err := eventfilter.Compile(f, jq.NewCompiler())
	require.NoError(t, err)
	return m
}

func TestMatch(t *testing.T) {
	t.Parallel()
	for filter, missed := range map[string]string{
		`{"with": {"type": {"literal": "com.example.temperature"}}}`:  "",
		`{"with": {"type": {"literal": "com.example.TEMPERATURE"}}}`:  "type",
		`{"with": {"type": {"literal": "com.example.*"}}}`:            "type",
		`{"with": {"type": {"expr": "startswith(\"com.\")"}}}`:        "",
		`{"with": {"type": {"expr": "\"com.example.temperature\""}}}`: "",
		`{"with": {"type": {"expr": "test(\"humidity\")"}}}`:          "type",
		// the attribute's own value is the input
		`{"with": {"data": {"expr": ".celsius > 38"}}}`:                 "",
		`{"with": {"data": {"expr": ".celsius > 39"}}}`:                 "data",
		`{"with": {"data": {"expr": ".celsius.of.what"}}}`:              "data", // fails
		`{"with": {"data": {"expr": "empty"}}}`:                         "data",
		`{"with": {"data": {"expr": "null"}}}`:                          "data",
		`{"with": {"data": {"expr": "."}}}`:                             "",
		`{"with": {"urgent": {"expr": "."}}}`:                           "urgent", // false means no match
		`{"with": {"urgent": {"expr": ". | not"}}}`:                     "",
		`{"with": {"urgent": {"literal": false}}}`:                      "",
		`{"with": {"subject": {"expr": "."}}}`:                          "subject", // absent
		`{"with": {"subject": {"literal": null}}}`:                      "",
		`{"with": {"subject": {"expr": ". == null"}}}`:                  "",
		`{"with": {"data": {"expr": "[limit(100000000; repeat(1))]"}}}`: "data", // over its budget
		`{"with": {"time": {"literal": "2026-01-31T09:00:00+01:00"}}}`:  "",
		`{"with": {"time": {"literal": "2026-01-31T08:00:01Z"}}}`:       "time",
		`{"with": {"id": {"literal": "2026-01-31T09:00:00+01:00"}}}`:    "id",
		`{"with": {"data": {"members": {"unit": {"members": {"name": {"literal": "C"}}}, "celsius": {"expr": ". > 38"}}}}}`: "",
		`{"with": {"data": {"members": {"unit": {"literal": {"name": "C"}}}}}}`:                                             "data",
		`{"with": {"data": {"members": {"unit": {"literal": {"scale": 1.0, "name": "C"}}}}}}`:                               "",
		`{"with": {"data": {"members": {"celsius": {"members": {"x": {"literal": 1}}}}}}}`:                                  "data",
		`{"with": {"data": {"members": {"tags": {"literal": ["a", "b"]}}}}}`:                                                "",
		`{"with": {"data": {"members": {"tags": {"literal": ["a"]}}}}}`:                                                     "data",
		`{"with": {"id": {"literal": "1"}, "source": {"literal": "/sensors/8"}}}`:                                           "source",
		`{"with": {"id": {"literal": "1"}}, "correlate": {"room": {"from": ".roomid"}}}`:                                    "",
		`{"correlate": {"room": {"from": ".roomid", "expect": "kitchen"}}}`:                                                 "",
		`{"correlate": {"room": {"from": ".roomid", "expect": "hall"}}}`:                                                    "correlate.room",
		`{"correlate": {"a": {"from": ".roomid"}, "room": {"from": ".data.room"}}}`:                                         "correlate.room",
		`{"correlate": {"room": {"from": ".data.room", "expect": null}}}`:                                                   "correlate.room",
		`{"correlate": {"room": {"from": ".id.x"}}}`:                                                                        "correlate.room",
		`{}`: "",
	} {
		m := matcher(t, filter).Match(event(t, heartbeat))
		require.Equal(t, missed, m.Missed, filter)
		require.Equal(t, missed == "", m.OK, filter)
		unmet := matcher(t, filter).Unmet(event(t, heartbeat))
		require.Equal(t, missed == "", len(unmet) == 0, filter)
		require.True(t, missed == "" || unmet[0] == missed, "%s: %v", filter, unmet)
		require.LessOrEqual(t, m.Fuel, int64(eventfilter.Fuel)+10_000, filter)
	}
}

func TestUnmetConditionsHaveValues(t *testing.T) {
	t.Parallel()
	m := matcher(t, `{"with": {"subject": {"literal": "x"}, "source": {"literal": "/other"}}, "correlate": {"a": {"from": ".id.x"}, "room": {"from": ".roomid", "expect": "hall"}}}`)
	e := event(t, heartbeat)
	require.Equal(t, []string{"source", "subject", "correlate.a", "correlate.room"}, m.Unmet(e))
	require.Equal(t, "kitchen", m.Value("correlate.room", e))
	require.Equal(t, e["source"], m.Value("source", e))
	require.Nil(t, m.Value("subject", e))
	require.Nil(t, m.Value("correlate.a", e))
	require.Nil(t, m.Value("correlate.none", e))
}

func TestKeys(t *testing.T) {
	t.Parallel()
	m := matcher(t, `{"correlate": {"room": {"from": ".roomid"}, "n": {"from": ".data.unit.scale"}}}`)
	require.Equal(t, map[string]any{"room": "kitchen", "n": 1}, m.Match(event(t, heartbeat)).Keys)
	require.True(t, m.Expecting(map[string]any{"n": 1.0}, nil).Match(event(t, heartbeat)).OK)
	other := m.Expecting(map[string]any{"n": 2}, nil).Match(event(t, heartbeat))
	require.Equal(t, []any{"correlate.n", false}, []any{other.Missed, other.OK})
	require.Nil(t, other.Keys)
	require.Positive(t, other.Fuel)
	require.True(t, m.Match(event(t, heartbeat)).OK, "the original has no expectation")
}

func TestBytes(t *testing.T) {
	t.Parallel()
	binary := event(t, `{"type": "t", "data_base64": "AAE="}`)
	require.True(t, matcher(t, `{"with": {"data": {"literal": "AAE="}}}`).Match(binary).OK)
	require.False(t, matcher(t,
		`{"with": {"data": {"literal": "AAE="}}}`).Match(event(t, `{"data": null, "data_base64": "AAE="}`)).OK)
}

func TestCompileRefuses(t *testing.T) {
	t.Parallel()
	for filter, want := range map[string]string{
		`{"with": {"type": {"expr": "."}, "data": {"members": {"a": {"expr": ".["}}}}}`: `what "data" must be: compile what "a" must be`,
		`{"with": {"data": {"expr": "$context"}}}`:                                      `what "data" must be`,
		`{"correlate": {"room": {"from": ""}}}`:                                         `the correlation key "room"`,
	} {
		var f eventfilter.Filter
		require.NoError(t, json.Unmarshal([]byte(filter), &f))
		_, err := eventfilter.Compile(f, jq.NewCompiler())
		require.ErrorContains(t, err, want, filter)
	}
	_, err := eventfilter.Compile(eventfilter.Filter{With: map[string]eventfilter.Value{"id": {Literal: []byte("{")}}},
		jq.NewCompiler())
	require.ErrorContains(t, err, `what "id" must be`)
	_, err = eventfilter.Compile(
		eventfilter.Filter{Correlate: map[string]eventfilter.Key{"k": {From: ".", Expect: []byte("{")}}}, jq.NewCompiler())
	require.ErrorContains(t, err, `what the correlation key "k" expects`)
}

func TestTypes(t *testing.T) {
	t.Parallel()
	for spec, want := range map[string][]string{
		`{"mode": "any"}`: nil,
		`{"mode": "any", "filters": [{"with": {"type": {"literal": "b"}}}, {"with": {"type": {"literal": "a"}}}, {"with": {"type": {"literal": "b"}}}]}`: {"a", "b"},
		`{"mode": "all", "filters": [{"with": {"type": {"literal": "b"}}}, {"with": {"id": {"literal": "a"}}}]}`:                                         nil,
		`{"mode": "one", "filters": [{"with": {"type": {"expr": "startswith(\"x\")"}}}]}`:                                                                nil,
	} {
		var s eventfilter.Spec
		require.NoError(t, json.Unmarshal([]byte(spec), &s))
		require.Equal(t, want, s.Types(), spec)
		text, err := json.Marshal(s)
		require.NoError(t, err)
		require.JSONEq(t, spec, string(text))
	}
}

func TestRead(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][3]string{
		`{"id":"1","data":{"b":1,"a":[true]}}`: {
			`{"b":1,"a":[true]}`, `{"id":"1","data":{"b":1,"a":[true]}}`, `"eyJhIjpbdHJ1ZV0sImIiOjF9"`},
		`{"data":"text","datacontenttype":"text/plain"}`: {
			`"text"`, `{"data":"text","datacontenttype":"text/plain"}`, `"dGV4dA=="`},
		`{"data":"text"}`: {`"text"`, `{"data":"text"}`, `"InRleHQi"`},
		`{"data":"t","datacontenttype":"application/a+json; x=y"}`: {
			`"t"`, `{"data":"t","datacontenttype":"application/a+json; x=y"}`, `"InQi"`},
		`{"data":null}`:          {`null`, `{"data":null}`, `"bnVsbA=="`},
		`{"data_base64":"AAE="}`: {`"AAE="`, `{"data_base64":"AAE="}`, `"AAE="`},
		`{"id":"1"}`:             {`null`, `{"id":"1"}`, `null`},
	} {
		for i, form := range []eventfilter.Form{eventfilter.Data, eventfilter.Envelope, eventfilter.Raw} {
			got, err := jq.EncodeJSON(form.Read(event(t, text)))
			require.NoError(t, err)
			require.JSONEq(t, want[i], string(got), "%s of %s", form, text)
		}
	}
}

// TestStoredFiltersDecideAlike: what was stored and read again decides as before, and matching changes nothing.
func TestStoredFiltersDecideAlike(t *testing.T) {
	t.Parallel()
	values := rapid.SampledFrom([]string{`1`, `1.0`, `"x"`, `null`, `true`, `{"a":1}`, `{"a":1,"b":2}`, `[1]`})
	rapid.Check(t, func(t *rapid.T) {
		var value func(depth int) eventfilter.Value
		value = func(depth int) eventfilter.Value {
			switch rapid.IntRange(0, 1+depth).Draw(t, "kind") {
			case 0:
				return eventfilter.Value{Literal: []byte(values.Draw(t, "literal"))}
			case 1:
				return eventfilter.Value{
					Expr: rapid.SampledFrom([]string{".", ".a == 1", ".a", "length > 0", "error"}).Draw(t, "expr")}
			}
			return eventfilter.Value{Members: map[string]eventfilter.Value{"a": value(depth - 1)}}
		}
		f := eventfilter.Filter{With: map[string]eventfilter.Value{"data": value(2)}}
		if rapid.Bool().Draw(t, "correlates") {
			f.Correlate = map[string]eventfilter.Key{"k": {From: ".data.a?"}}
			if rapid.Bool().Draw(t, "expects") {
				f.Correlate["k"] = eventfilter.Key{From: ".data.a?", Expect: []byte(values.Draw(t, "expected"))}
			}
		}
		text, err := json.Marshal(f)
		require.NoError(t, err)
		first, err := eventfilter.Compile(f, jq.NewCompiler())
		require.NoError(t, err)
		var stored eventfilter.Filter
		require.NoError(t, json.Unmarshal(text, &stored))
		second, err := eventfilter.Compile(stored, jq.NewCompiler())
		require.NoError(t, err)
		body := `{"type":"t","data":` + values.Draw(t, "data") + `}`
		e := event(t, body)
		require.Equal(t, first.Match(e), second.Match(e), "%s on %s", text, body)
		require.Equal(t, event(t, body), e)
		require.True(t, f.With["data"].Expr != "error" || !first.Match(e).OK)
	})
}

// A filter has the values of the variables that its expressions use.
func TestVariables(t *testing.T) {
	t.Parallel()
	f := eventfilter.Filter{
		With:      map[string]eventfilter.Value{"data": {Members: map[string]eventfilter.Value{"bpm": {Expr: ". > $input.limit"}}}},
		Correlate: map[string]eventfilter.Key{"id": {From: ".subject + $context"}},
		Vars:      map[string]json.RawMessage{"input": json.RawMessage(`{"limit":60}`), "context": json.RawMessage(`"-x"`)},
	}
	m, err := eventfilter.Compile(f, jq.NewCompiler())
	require.NoError(t, err)
	of := func(bpm int) map[string]any {
		return map[string]any{"subject": "a", "data": map[string]any{"bpm": bpm}}
	}
	require.Equal(t, map[string]any{"id": "a-x"}, m.Match(of(61)).Keys)
	require.Equal(t, "data", m.Match(of(60)).Missed)
	require.Equal(t, []string{"data"}, m.Unmet(of(60)))
	require.Equal(t, "a-x", m.Value("correlate.id", of(60)))
	other := m.Expecting(nil, map[string]any{"input": map[string]any{"limit": 0}, "context": ""})
	require.Equal(t, map[string]any{"id": "a"}, other.Match(of(1)).Keys)

	f.Vars["input"] = json.RawMessage("{")
	_, err = eventfilter.Compile(f, jq.NewCompiler())
	require.ErrorContains(t, err, `read the variable "input"`)
	delete(f.Vars, "input")
	_, err = eventfilter.Compile(f, jq.NewCompiler())
	require.ErrorContains(t, err, "there is no variable $input")
}
