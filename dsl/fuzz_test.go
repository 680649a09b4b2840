package dsl_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/txtar"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/jq"
)

// FuzzParse finds panics, documents without violations that differ after a parse of their canonical form, and
// violations without a position.
func FuzzParse(f *testing.F) {
	f.Add([]byte(richDocument))
	files, err := filepath.Glob("testdata/violations/*.txtar")
	require.NoError(f, err)
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		require.NoError(f, err)
		f.Add(archive.Files[0].Data)
	}
	for _, s := range []string{
		"", "{}", "[", "{\"a\":", "a: &a [*a]", "? a\n: b", "--- |\n x", "!!map {}", "<<: {a: 1}", "%YAML 1.2\n---\na: 1",
		"a: 0o17\nb: 0x\nc: -.inf\nd: +1\ne: 1e5\nf: .5\ng: 5.", "\ufeffa: 1", "a: \"\\ud800\"",
		`{"a":"\ud83d\ude00","a":1e400}`} {
		f.Add([]byte(s))
	}
	if dir := os.Getenv("OWS_DIR"); dir != "" {
		examples, err := filepath.Glob(filepath.Join(dir, "examples", "*.yaml"))
		require.NoError(f, err)
		for _, file := range examples {
			data, err := os.ReadFile(file)
			require.NoError(f, err)
			f.Add(data)
		}
	}
	limits := dsl.DefaultLimits()
	limits.MaxBytes = 1 << 16
	f.Fuzz(func(t *testing.T, source []byte) {
		doc, violations := dsl.Parse(source, dsl.WithLimits(limits))
		require.Equal(t, doc == nil, violations.HasErrors())
		_, again := dsl.Parse(source, dsl.WithLimits(limits))
		require.Equal(t, violations, again, "the same violations every time")
		if doc == nil {
			return
		}
		canonical, rest := dsl.Parse(doc.Canonical(), dsl.WithLimits(limits))
		require.NotNil(t, canonical, rest)
		require.Equal(t, doc.Hash(), canonical.Hash())
	})
}

// FuzzDescription finds panics on descriptions of services, operations that the canonical form of a document has not,
// and arguments that make different requests.
func FuzzDescription(f *testing.F) {
	for _, text := range []string{orders, describedStub, schemas, richDescription, "swagger: 2.0", "openapi: 3.1.0\npaths: []"} {
		f.Add([]byte(text), "getOrder", []byte(`{"id": 1, "body": {"sku": "a"}}`))
	}
	f.Add([]byte(richDescription), "self", []byte(`{"id": 1, "body": {}}`))
	f.Add([]byte(richDescription), "put", []byte(`{"id": ["a"], "form": {"a": [1, "b"], "b": null}, "deep": {"a": {"b": 1}}}`))
	limits := dsl.DefaultLimits()
	limits.MaxBytes, limits.MaxNodes = 1<<16, 1<<12
	f.Fuzz(func(t *testing.T, description []byte, operation string, arguments []byte) {
		given, err := jq.DecodeJSON(arguments)
		if err != nil {
			return
		}
		source, err := jq.EncodeJSON(map[string]any{
			"document": map[string]any{"dsl": "1.0.3", "namespace": "a", "name": "b", "version": "1.0.0"},
			"do": []any{map[string]any{"c": map[string]any{"call": "openapi", "with": map[string]any{
				"document": map[string]any{"endpoint": "d.yaml"}, "operationId": operation}}}}})
		require.NoError(t, err)
		parse := func(source []byte) *dsl.Document {
			resources := dsl.NewResources()
			resources.Add("d.yaml", description)
			doc, _ := dsl.Parse(source, dsl.WithResources(resources), dsl.WithLimits(limits))
			return doc
		}
		doc := parse(source)
		if doc == nil {
			return
		}
		canonical, _, err := dsl.Unpack(doc.Canonical())
		require.NoError(t, err)
		again := parse(canonical)
		require.NotNil(t, again)
		object, _ := given.(map[string]any)
		request, units, err := doc.Do[0].Body.(*dsl.OpenAPICall).Request(object, 1<<20)
		same, sameUnits, sameErr := again.Do[0].Body.(*dsl.OpenAPICall).Request(object, 1<<20)
		require.Equal(t, request, same)
		require.Equal(t, units, sameUnits)
		require.Equal(t, err, sameErr)
	})
}

// richDescription has what descriptions in the format 2.0 have, and references in circles.
const richDescription = `
swagger: '2.0'
host: shop.example
consumes: [application/x-www-form-urlencoded]
definitions: {Self: {allOf: [{$ref: '#/definitions/Self'}]}, Tree: {properties: {t: {$ref: '#/definitions/Tree'}}}}
parameters: {p: {name: p, in: header, type: string, pattern: a+}}
paths:
  /get/{id}:
    parameters: [{name: id, in: path, type: array, items: {type: string}}, {$ref: '#/parameters/p'}]
    get: {operationId: getOrder, parameters: [{name: body, in: body, schema: {$ref: '#/definitions/Tree'}}]}
    put:
      operationId: put
      parameters: [{name: a, in: formData, type: array, items: {type: integer}}, {name: b, in: formData, type: file}]
    post: {operationId: self, parameters: [{name: body, in: body, schema: {$ref: '#/definitions/Self'}}]}
`

// FuzzFunction finds panics on functions that are published by themselves, and those that are accepted although no
// document can call them.
func FuzzFunction(f *testing.F) {
	for _, text := range []string{
		"set: {x: 1}", "do: [{a: {call: 'b:1.0.0@default'}}]", "input: {schema: {document: {type: object}}}\nset: '${ . }'",
		"call: http\nwith: {method: get, endpoint: 'https://a/{b}'}", "[]", "run: {script: {language: js, code: '1'}}",
		"try: [{a: {raise: {error: {type: a, status: 1}}}}]\ncatch: {}",
	} {
		f.Add([]byte(text))
	}
	limits := dsl.DefaultLimits()
	limits.MaxBytes = 1 << 16
	f.Fuzz(func(t *testing.T, function []byte) {
		violations := dsl.CheckFunction("f:1.0.0@default", function, dsl.WithLimits(limits))
		require.Equal(t, violations, dsl.CheckFunction("f:1.0.0@default", function, dsl.WithLimits(limits)))
		if violations.HasErrors() {
			return
		}
		resources := dsl.NewResources()
		resources.Add("f:1.0.0@default", function)
		source := []byte(referring + "do: [{a: {call: 'f:1.0.0@default'}}]")
		for range dsl.MaxFunctionDepth {
			_, violations = dsl.Parse(source, dsl.WithResources(resources), dsl.WithLimits(limits))
			for _, missing := range resources.Missing() {
				resources.Postpone(missing.URI)
			}
		}
		for _, v := range violations {
			if v.Severity == dsl.SeverityError {
				require.Contains(t, v.Message, "secret", "%s", v)
			}
		}
	})
}
