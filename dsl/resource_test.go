package dsl_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dsl"
)

const referring = "document: {dsl: '1.0.3', namespace: shop, name: order, version: 1.0.0}\n"

// parseWith parses a document with files and returns what is missing beside.
func parseWith(source string, files map[string]string) (*dsl.Document, dsl.Violations, []string) {
	resources := dsl.NewResources()
	for uri, content := range files {
		resources.Add(uri, []byte(content))
	}
	doc, violations := dsl.Parse([]byte(source), dsl.WithResources(resources))
	var missing []string
	for _, reference := range resources.Missing() {
		missing = append(missing, string(reference.Kind)+" "+reference.URI)
	}
	return doc, violations, missing
}

// requireValid parses a document that has no violations.
func requireValid(t *testing.T, source string, files map[string]string) *dsl.Document {
	t.Helper()
	doc, violations, missing := parseWith(source, files)
	require.Empty(t, missing)
	require.Empty(t, violations)
	require.NotNil(t, doc)
	return doc
}

// requireViolation parses a document with one violation.
func requireViolation(t *testing.T, want, source string, files map[string]string) {
	t.Helper()
	_, violations, _ := parseWith(source, files)
	require.Contains(t, violations.Error(), want)
	require.True(t, violations.HasErrors())
}

func TestReferencesAreListedUntilTheyAreLoaded(t *testing.T) {
	t.Parallel()
	source := referring + `
use:
  authentications: {token: {bearer: {token: abc}}}
  catalogs:
    ours: {endpoint: {uri: 'https://example.com/catalog/', authentication: {use: token}}}
    github: {endpoint: 'https://github.com/serverlessworkflow/catalog'}
    branch: {endpoint: 'https://github.com/serverlessworkflow/catalog/tree/main'}
    lab: {endpoint: 'https://gitlab.com/a/b'}
input: {schema: {resource: {name: order, endpoint: schemas/order.json}}}
do:
  - a: {call: 'charge:1.0.0@ours'}
  - b: {call: 'log:1.0.0@github'}
  - c: {call: 'log:1.0.0@branch'}
  - d: {call: 'log:1.0.0@lab'}
  - e: {call: 'mine:2.0.0@default'}
  - f: {call: 'https://github.com/myorg/functions/validateEmailAddress@v1.0.0'}
  - g: {call: 'https://example.com/functions/check'}
  - h: {call: './local/f.yaml'}
  - i: {call: 'https://github.com/o/r/blob/main/f.yaml#top'}
`
	_, violations, missing := parseWith(source, nil)
	require.True(t, violations.HasErrors())
	require.ElementsMatch(t, []string{
		"web https://example.com/catalog/functions/charge/1.0.0/function.yaml",
		"web https://raw.githubusercontent.com/serverlessworkflow/catalog/HEAD/functions/log/1.0.0/function.yaml",
		"web https://raw.githubusercontent.com/serverlessworkflow/catalog/main/functions/log/1.0.0/function.yaml",
		"web https://gitlab.com/a/b/-/raw/HEAD/functions/log/1.0.0/function.yaml",
		"function mine:2.0.0@default",
		"web https://raw.githubusercontent.com/myorg/functions/v1.0.0/validateEmailAddress/function.yaml",
		"web https://example.com/functions/check/function.yaml",
		"web https://raw.githubusercontent.com/o/r/main/f.yaml",
		"file local/f.yaml", "file schemas/order.json",
	}, missing)

	resources := dsl.NewResources()
	_, _ = dsl.Parse([]byte(source), dsl.WithResources(resources))
	for _, reference := range resources.Missing() {
		named := strings.HasPrefix(reference.URI, "https://example.com/catalog/")
		require.Equal(t, named, reference.Authentication != nil, "the authentication of %s", reference.URI)
		require.Positive(t, reference.Pos.Line)
		require.NotEmpty(t, reference.Path)
	}
}

func TestReferencesThatCannotBeFollowed(t *testing.T) {
	t.Parallel()
	schema := func(endpoint string) string {
		return referring + "input: {schema: {resource: {endpoint: " + endpoint + "}}}\ndo: [{a: {set: {x: 1}}}]\n"
	}
	for endpoint, want := range map[string]string{
		"'../secret.json'":                         `2:39: resource: the file "../secret.json" is outside the folder of the document`,
		"'/etc/passwd'":                            `"/etc/passwd" is not a path relative to the folder of the document`,
		"'file:///etc/passwd'":                     `has the scheme "file"`,
		"'https://user:word@example.com/s.json'":   `has a user in it: use the authentication of the endpoint`,
		"'https://example.com/{name}.json'":        `2:39: value: the URI of a resource "https://example.com/{name}.json" is not a URI without`,
		"'${ .uri }'":                              "cannot be an expression here",
		"{uri: a.json, authentication: {use: no}}": `the authentication policy "no" is not defined`,
	} {
		requireViolation(t, want, schema(endpoint), nil)
	}
	_, violations := dsl.Parse([]byte(schema("a.json")))
	require.Contains(t, violations.Error(), `the resource "a.json" is outside the document and is not loaded here`)

	resources := dsl.NewResources()
	resources.Fail("a.json", errors.New("the origin says 404"))
	_, violations = dsl.Parse([]byte(schema("a.json")), dsl.WithResources(resources))
	require.Contains(t, violations.Error(), `2:39: resource: the resource "a.json" cannot be read: the origin says 404`)
	require.Empty(t, resources.Missing())

	resources = dsl.NewResources()
	resources.Postpone("a.json")
	doc, violations := dsl.Parse([]byte(schema("a.json")), dsl.WithResources(resources))
	require.NotNil(t, doc)
	require.True(t, doc.Partial)
	require.Len(t, violations, 1)
	require.Equal(t, dsl.SeverityWarning, violations[0].Severity)
}

func TestSchemaFromAResource(t *testing.T) {
	t.Parallel()
	source := referring + "input: {schema: {resource: {endpoint: order.yaml}}}\ndo: [{a: {set: {x: 1}}}]\n"
	doc := requireValid(t, source, map[string]string{"order.yaml": "type: object\nrequired: [id]\n"})
	require.JSONEq(t, `{"type": "object", "required": ["id"]}`, string(doc.InputSchema()))
	require.Error(t, doc.Input.Schema.Validate(map[string]any{}))

	requireViolation(t, `the schema does not compile: "/type"`, source, map[string]string{"order.yaml": "type: 7\n"})
	requireViolation(t, "order.yaml:1:4: ", source, map[string]string{"order.yaml": "a: [1\n"})
	requireViolation(t, "a schema must have either document or resource",
		strings.Replace(source, "{resource:", "{document: true, resource:", 1), map[string]string{"order.yaml": "{}"})
}

func TestSchemaWhoseEndpointOnlyARunKnows(t *testing.T) {
	t.Parallel()
	const late = "schema: {resource: {endpoint: 'https://example.com/{kind}.json'}}"
	doc := requireValid(t, referring+`
use: {functions: {f: {input: {`+late+`}, set: {x: 1}}}}
do:
  - a:
      input: {`+late+`}
      output: {schema: {format: json, resource: {name: n, endpoint: {uri: '${ $task.name }', authentication: {bearer: {token: x}}}}}}
      export: {schema: {resource: {endpoint: '${ $output.schema }'}}}
      call: f
`, nil)
	task := doc.Do[0]
	require.True(t, task.Input.Schema.Late())
	require.True(t, task.Output.Schema.Late())
	require.NotNil(t, task.Output.Schema.Source.Authentication)
	require.True(t, task.Export.Schema.Late())
	require.Empty(t, doc.Resources)

	for source, want := range map[string]string{
		"output: {" + late + "}\ndo: [{a: {set: {x: 1}}}]":                                                  "2:40: value: the URI of a resource",
		"do: [{a: {input: {schema: {resource: {endpoint: '${ $input }'}}}, set: {x: 1}}}]":                  "2:53: unknown_variable",
		"do: [{a: {input: {schema: {resource: {endpoint: '${ .a'}}}, set: {x: 1}}}]":                        "2:5",
		"do: [{a: {input: {schema: {resource: {endpoint: 'https://{'}}}, set: {x: 1}}}]":                    "the URI of an endpoint is not valid",
		"do: [{a: {input: {schema: {resource: {endpoint: '${ .a }', x: 1}}}, set: {x: 1}}}]":                `a resource has no key "x"`,
		"do: [{a: {listen: {to: {any: []}}, foreach: {output: {" + late + "}, do: [{s: {set: {x: 1}}}]}}}]": "is not a URI without variables",
	} {
		requireViolation(t, want, referring+source+"\n", nil)
	}
}

// The identity of a document covers what it refers to, and its canonical form gives an equal document.
func TestIdentityCoversResources(t *testing.T) {
	t.Parallel()
	source := referring + "do: [{a: {call: f.yaml}}]\n"
	one := requireValid(t, source, map[string]string{"f.yaml": "set: {n: 1}"})
	same := requireValid(t, source, map[string]string{"f.yaml": "set: {n: 1}", "other.yaml": "set: {n: 3}"})
	two := requireValid(t, source, map[string]string{"f.yaml": "set: {n: 2}"})
	require.Equal(t, one.Hash(), same.Hash(), "what is not referred to does not count")
	require.NotEqual(t, one.Hash(), two.Hash())
	require.Equal(t, []dsl.Resource{{URI: "f.yaml", Hash: dsl.ContentHash([]byte("set: {n: 1}")),
		Content: []byte("set: {n: 1}")}}, one.Resources)

	inner, pins, err := dsl.Unpack(one.Canonical())
	require.NoError(t, err)
	require.Equal(t, []dsl.Pin{{URI: "f.yaml", Hash: one.Resources[0].Hash}}, pins)
	again := requireValid(t, string(inner), map[string]string{"f.yaml": "set: {n: 1}"})
	require.Equal(t, one.Hash(), again.Hash())

	plain := requireValid(t, referring+"do: [{a: {set: {x: 1}}}]\n", nil)
	inner, pins, err = dsl.Unpack(plain.Canonical())
	require.NoError(t, err)
	require.Empty(t, pins)
	require.Equal(t, plain.Canonical(), inner)
	_, _, err = dsl.Unpack([]byte(`{"resources":1}`))
	require.Error(t, err)
}

func TestResourcesAreBounded(t *testing.T) {
	t.Parallel()
	requireViolation(t, "bytes, the limit is 4194304", referring+"do: [{a: {call: f.yaml}}]\n",
		map[string]string{"f.yaml": "set: {n: '" + strings.Repeat("x", dsl.MaxResourceBytes) + "'}"})
	large := "set: {n: '" + strings.Repeat("x", dsl.MaxResourceBytes/2) + "'}"
	source, files := referring+"do:\n", map[string]string{}
	for _, name := range []string{"a", "b", "c", "d"} {
		source += "  - " + name + ": {call: " + name + ".yaml}\n"
		files[name+".yaml"] = large
	}
	requireViolation(t, "more than 8388608 bytes together", source, files)
	source, files = referring+"do:\n", map[string]string{}
	for i := range dsl.MaxResources + 1 {
		name := "f" + strings.Repeat("x", i)
		source += "  - " + name + ": {call: " + name + ".yaml}\n"
		files[name+".yaml"] = "set: {n: 1}"
	}
	requireViolation(t, "more than 100 resources", source, files)
}
