package redact_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/internal/redact"
	"github.com/signalbox-dev/signalbox/internal/stopwatch"
)

const document = `document:
  dsl: 1.0.3
  namespace: examples
  name: order
  version: 1.0.0
  metadata:
    sensitive: [/input/card/cvv, /input/people/*/born, /output/receipt, /tasks/pay/output/reference]
input:
  schema:
    document:
      type: object
      properties:
        pin: {type: string, writeOnly: true}
        accounts: {type: array, items: {$ref: '#/$defs/account'}}
      $defs:
        account: {type: object, properties: {iban: {type: string, format: password}, bank: {type: string}}}
do:
  - pay:
      output:
        schema:
          document: {type: object, properties: {slip: {format: password}}}
      set: {reference: '${ .x }'}
  - tell:
      metadata: {sensitive: [/output/whisper]}
      set: {whisper: '${ .x }'}
`

func parse(t testing.TB, source string) *dsl.Document {
	t.Helper()
	doc, violations := dsl.Parse([]byte(source))
	require.NotNil(t, doc, "%v", violations)
	return doc
}

func TestSensitiveLocations(t *testing.T) {
	t.Parallel()
	p := redact.For(parse(t, document))
	pay := redact.Location{Pointer: "/do/0/pay", Task: "pay", Output: true}
	for _, tt := range []struct {
		at        redact.Location
		value     string
		want      string
		wantFound []string
	}{
		{redact.Location{}, `{"card":{"cvv":"123","name":"Ada"}, "n": 1.0}`, `{"card":{"cvv":"M","name":"Ada"}, "n": 1.0}`,
			[]string{"123"}},
		{redact.Location{}, `{"people":[{"born":1990},{"born":"1991","x":[]}]}`,
			`{"people":[{"born":"M"},{"born":"M","x":[]}]}`, []string{"1990", "1991"}},
		{redact.Location{}, `{"pin":"1234","accounts":[{"iban":"DE1","bank":"b"}]}`,
			`{"pin":"M","accounts":[{"iban":"M","bank":"b"}]}`, []string{"1234", "DE1"}},
		{redact.Location{}, `{"receipt":"open"}`, `{"receipt":"open"}`, nil},
		{redact.Location{Output: true}, `{"receipt":{"no":"R-7","sum":[true,2]}}`, `{"receipt":"M"}`,
			[]string{"no", "R-7", "sum", "2"}},
		{pay, `{"reference":"abc","slip":"s","card":{"cvv":"1"}}`, `{"reference":"M","slip":"M","card":{"cvv":"M"}}`,
			[]string{"abc", "s", "1"}},
		{redact.Location{Pointer: "/do/1/tell", Task: "tell", Output: true}, `{"reference":"abc","whisper":"s"}`,
			`{"reference":"abc","whisper":"M"}`, []string{"s"}},
		{redact.Location{}, `{"password":"hunter22","Authorization":"Bearer xyz","db_passwd":7,"api-key":"k","apiKey":["a","b"]}`,
			`{"password":"M","Authorization":"M","db_passwd":"M","api-key":"M","apiKey":"M"}`, []string{
				"hunter22", "Bearer xyz", "7", "k", "a", "b"}},
		{redact.Location{}, `{"token":null,"secret":false,"password":"","credentials":{},"tokens":3,"nextPageToken":"p"}`,
			`{"token":null,"secret":false,"password":"","credentials":{},"tokens":3,"nextPageToken":"p"}`, nil},
		{redact.Location{}, `{"p\u0061ssword" : "x\"y"}`, `{"p\u0061ssword" : "M"}`, []string{`x"y`}},
		{redact.Location{}, `{"password":"M"}`, `{"password":"M"}`, nil},
		{redact.Location{}, `not json`, `"M"`, nil},
		{redact.Location{}, `{"a":1} x`, `"M"`, nil},
	} {
		shown, found := p.Value(tt.at, json.RawMessage(strings.ReplaceAll(tt.value, "M", redact.Mark)), nil)
		require.Equal(t, strings.ReplaceAll(tt.want, "M", redact.Mark), string(shown))
		if tt.wantFound != nil {
			require.Subset(t, found, without(tt.wantFound, "no", "sum"), tt.value)
		}
	}
}

func TestSchemasThatReferToThemselves(t *testing.T) {
	t.Parallel()
	source := `document: {dsl: 1.0.3, namespace: a, name: b, version: 1.0.0}
input: {schema: {document: {$ref: '#/$defs/node', $defs: {node: {type: object, properties: {
  plain: {type: string}, pin: {type: string%s},
  a: {$ref: '#/$defs/node'}, b: {$ref: '#/$defs/node'}, c: {$ref: '#/$defs/node'}, d: {$ref: '#/$defs/node'}, e: {$ref: '#'}}}}}}}
do: [{a: {set: {n: 1}}}]
`
	deep := strings.Repeat(`{"e":`, 40) + `{"pin":"1234"}` + strings.Repeat("}", 40)
	watch := stopwatch.Start(t)
	p := redact.For(parse(t, fmt.Sprintf(source, ", writeOnly: true")))
	require.Less(t, watch.Elapsed(), 2*time.Second)
	shown, _ := p.Value(redact.Location{},
		json.RawMessage(`{"plain":"x","a":{"plain":"x","e":{"pin":"1234","plain":"x"}}}`), nil)
	require.JSONEq(t, `{"plain":"x","a":{"plain":"x","e":{"pin":"`+redact.Mark+`","plain":"x"}}}`, string(shown))
	shown, _ = p.Value(redact.Location{}, json.RawMessage(deep), nil)
	require.NotContains(t, string(shown), "1234", "parts beyond the depth limit are hidden")
	require.Contains(t, string(shown), `{"e":{"e":{"e":`)
	shown, _ = redact.For(parse(t, fmt.Sprintf(source, ""))).Value(redact.Location{}, json.RawMessage(deep), nil)
	require.Equal(t, deep, string(shown), "nothing in it is sensitive")
}

// TestReferencesOfSchemas checks that parts are found by every kind of reference.
func TestReferencesOfSchemas(t *testing.T) {
	t.Parallel()
	for name, schema := range map[string]string{
		"pointer":       `{properties: {a: {$ref: '#/$defs/pin'}}, $defs: {pin: {writeOnly: true}}}`,
		"escaped":       `{properties: {a: {$ref: '#/$defs/my%20pin'}}, $defs: {my pin: {writeOnly: true}}}`,
		"into a list":   `{properties: {a: {$ref: '#/allOf/0'}}, allOf: [{properties: {a: {format: password}}, writeOnly: true}]}`,
		"anchor":        `{properties: {a: {$ref: '#pin'}}, $defs: {x: {$anchor: pin, format: password}}}`,
		"id":            `{properties: {a: {$ref: 'pin.json'}}, $defs: {x: {$id: 'https://example.com/pin.json', format: password}}}`,
		"root's id":     `{$id: 'https://example.com/all.json', properties: {a: {$ref: 'all.json#/$defs/pin'}}, $defs: {pin: {writeOnly: true}}}`,
		"within an id":  `{properties: {a: {$ref: 'https://example.com/b.json'}}, $defs: {x: {$id: 'https://example.com/b.json', $ref: '#/$defs/pin', $defs: {pin: {writeOnly: true}}}}}`,
		"id and anchor": `{properties: {a: {$ref: 'https://example.com/b.json#pin'}}, $defs: {x: {$id: 'https://example.com/b.json', $defs: {y: {$anchor: pin, writeOnly: true}}}}}`,
		"dynamic":       `{properties: {a: {$dynamicRef: '#pin'}}, $defs: {x: {$dynamicAnchor: pin, type: string}, y: {$id: 'https://example.com/y.json', $dynamicAnchor: pin, writeOnly: true}}}`,
		"dependent":     `{dependentSchemas: {b: {properties: {a: {writeOnly: true}}}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := redact.For(parse(t, "document: {dsl: 1.0.3, namespace: a, name: b, version: 1.0.0}\ninput: {schema: "+
				"{document: "+schema+"}}\ndo: [{a: {set: {n: 1}}}]\n"))
			shown, _ := p.Value(redact.Location{}, json.RawMessage(`{"a":"1234","b":"x"}`), nil)
			if name == "into a list" {
				require.NotContains(t, string(shown), "1234")
				return
			}
			require.JSONEq(t, `{"a":"`+redact.Mark+`","b":"x"}`, string(shown))
		})
	}
}

func without(list []string, words ...string) (out []string) {
	for _, v := range list {
		if !strings.Contains(" "+strings.Join(words, " ")+" ", " "+v+" ") {
			out = append(out, v)
		}
	}
	return out
}

func TestSecretsAreFoundInOtherValues(t *testing.T) {
	t.Parallel()
	p := redact.For(parse(t, document))
	var secrets redact.SecretSet
	require.Equal(t, []string{`hunter "22" & more`, `"22" & more`, "Bearer abcdefgh1234", "abcdefgh1234", "123456789"},
		secrets.Add(`hunter "22" & more`, "short", "Bearer abcdefgh1234", "123456789", "short"))
	require.Empty(t, secrets.Add("abcdefgh1234"))
	value := `{"url":"https://x/?q=hunter+%2222%22+%26+more","said":"it was hunter \"22\" & more!","auth":"abcdefgh1234","n":123456789,"m":1234567890,"ok":[1,"fine"]}`
	shown, found := p.Value(redact.Location{Pointer: "/do/9"}, json.RawMessage(value), &secrets)
	require.Empty(t, found)
	require.Equal(t, strings.ReplaceAll(
		`{"url":"https://x/?q=M","said":"it was M!","auth":"M","n":"M","m":1234567890,"ok":[1,"fine"]}`, "M", redact.Mark),
		string(shown))
	require.True(t, json.Valid(shown))
	text, changed := secrets.Text(`POST failed: {"p":"hunter \"22\" & more"} YWJjZGVmZ2gxMjM0`)
	require.True(t, changed)
	require.Equal(t, `POST failed: {"p":"`+redact.Mark+`"} `+redact.Mark, text)
	text, changed = secrets.Text("nothing of it")
	require.False(t, changed)
	require.Equal(t, "nothing of it", text)
}

func TestNamesOfMembersAreNotSecrets(t *testing.T) {
	t.Parallel()
	p := redact.For(parse(t, document))
	_, found := p.Value(redact.Location{},
		json.RawMessage(`{"token":{"customerId":"correcthorse","4111-1111":[{"customerId":{}}, "customerId-7"]}}`), nil)
	require.Equal(t, []string{"correcthorse", "4111-1111", "customerId-7"}, found)
	var secrets redact.SecretSet
	secrets.Add(found...)
	shown, _ := p.Value(redact.Location{Output: true},
		json.RawMessage(`{"customerId":{"4111-1111":1},"correct\u0068orse":2,"receipt":"R"}`), &secrets)
	require.Equal(t, strings.ReplaceAll(`{"customerId":{"M":1},"M":2,"receipt":"M"}`, "M", redact.Mark), string(shown))
}

func TestValueWithoutSecretsIsNotCopied(t *testing.T) {
	t.Parallel()
	value := json.RawMessage(`{"a": [1, 2.50, {"b": "c"}], "d": null}`)
	shown, found := redact.For(parse(t, document)).Value(redact.Location{}, value, &redact.SecretSet{})
	require.Empty(t, found)
	require.Same(t, &value[0], &shown[0])
	shown, _ = redact.Everything().Value(redact.Location{}, value, nil)
	require.Equal(t, `"`+redact.Mark+`"`, string(shown))
}

func TestProblemsOfInvalidPointers(t *testing.T) {
	t.Parallel()
	require.Empty(t, redact.Violations(parse(t, document)))
	wrong := strings.Replace(document, "[/input/card/cvv,",
		"[card.cvv, /tasks/pay, /context/x, 7, /tasks/gone/input/x, /tasks/*/input/x,", 1)
	violations := redact.Violations(parse(t, wrong))
	require.Len(t, violations, 5)
	require.Equal(t, redact.Violation{
		Path: "/document/metadata/sensitive/0", Message: `"card.cvv" does not point into an input or output`,
		Suggestion: "write /input/…, /output/… or /tasks/NAME/input/…",
	}, violations[0])
	require.Equal(t, `a sensitive location is a JSON pointer, not 7`, violations[3].Message)
	require.Equal(t, `"/tasks/gone/input/x" names no task: the document has no task "gone"`, violations[4].Message)
	wrong = strings.Replace(document,
		"[/input/card/cvv, /input/people/*/born, /output/receipt, /tasks/pay/output/reference]", "/input/card", 1)
	violations = redact.Violations(parse(t, wrong))
	require.Len(t, violations, 1)
	require.Equal(t, "/document/metadata/sensitive", violations[0].Path)

	nested := parse(t, "document: {dsl: 1.0.3, namespace: a, name: b, version: 1.0.0}\ndo:\n"+
		"  - each:\n      for: {in: '${ [] }'}\n      do:\n        - a: {set: {n: 1}, metadata: {sensitive: [/input/x, x, "+
		"/tasks/each/input/x]}}\n")
	violations = redact.Violations(nested)
	require.Len(t, violations, 2)
	require.Equal(t, "/do/0/each/do/0/a/metadata/sensitive/1", violations[0].Path)
	require.Equal(t, "/do/0/each/do/0/a/metadata/sensitive/2", violations[1].Path)
}

// FuzzValue checks that valid JSON stays valid when secrets are replaced.
func FuzzValue(f *testing.F) {
	f.Add(`{"password":"plantedsecret","x":["plantedsecret",{"y":"a plantedsecret b"}]}`)
	f.Add(`{"card":{"cvv":{"a":["plantedsecret"]}},"n":-1.5e3,"t":true}`)
	p := redact.For(parse(f, document))
	f.Fuzz(func(t *testing.T, value string) {
		var secrets redact.SecretSet
		_, found := p.Value(redact.Location{}, json.RawMessage(value), nil)
		secrets.Add(found...)
		shown, _ := p.Value(redact.Location{}, json.RawMessage(value), &secrets)
		if json.Valid([]byte(value)) {
			require.True(t, json.Valid(shown), "%q became %q", value, shown)
		}
	})
}

func BenchmarkNothingSensitive(b *testing.B) {
	p := redact.For(parse(b, strings.Replace(document, "sensitive: [/input/card/cvv, ", "owner: [", 1)))
	var rows []string
	for i := range 100 {
		rows = append(rows, fmt.Sprintf(`{"id":%d,"name":"customer %d","price":12.50,"tags":["a","b"]}`, i, i))
	}
	value := json.RawMessage(`{"rows":[` + strings.Join(rows, ",") + `]}`)
	b.SetBytes(int64(len(value)))
	b.ReportAllocs()
	for b.Loop() {
		p.Value(redact.Location{}, value, &redact.SecretSet{})
	}
}
