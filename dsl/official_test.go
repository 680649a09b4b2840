package dsl_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/jq"
)

// officialData is the folder with the specification's schema, examples and conformance kit.
func officialData(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("OWS_DIR")
	if dir == "" {
		dir = filepath.Join("..", "..", "shared", "open-workflow")
	}
	if _, err := os.Stat(filepath.Join(dir, "workflow.yaml")); err != nil {
		t.Skipf("the specification's data is not in %q; set OWS_DIR to its folder", dir)
	}
	return dir
}

// lookaround implements the two patterns of the official schema that Go's engine does not support.
type lookaround struct {
	source string
	match  func(string) bool
}

func (l lookaround) MatchString(s string) bool { return l.match(s) }
func (l lookaround) String() string            { return l.source }

func compileOfficialPattern(source string) (jsonschema.Regexp, error) {
	switch {
	case strings.Contains(source, "P(?!$)"):
		re := regexp.MustCompile(strings.NewReplacer("(?!$)", "", `(?=\d)`, "").Replace(source))
		return lookaround{source, func(s string) bool {
			return s != "P" && !strings.HasSuffix(s, "T") && re.MatchString(s)
		}}, nil
	case strings.Contains(source, `(?!\s*\$\{)(?=\S)`):
		re := regexp.MustCompile(strings.Replace(source, `(?!\s*\$\{)(?=\S)`, "", 1))
		return lookaround{source, func(s string) bool {
			return strings.TrimSpace(s[:min(len(s), 1)]) != "" && !strings.HasPrefix(strings.TrimSpace(s), "${") &&
				re.MatchString(s)
		}}, nil
	}
	return regexp.Compile(source)
}

func officialSchema(t *testing.T, dir string) *jsonschema.Schema {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "workflow.yaml"))
	require.NoError(t, err)
	var definition any
	require.NoError(t, yaml.Unmarshal(data, &definition))
	c := jsonschema.NewCompiler()
	c.UseRegexpEngine(compileOfficialPattern)
	require.NoError(t, c.AddResource("workflow.json", jq.Normalize(definition)))
	schema, err := c.Compile("workflow.json")
	require.NoError(t, err)
	return schema
}

// officialDocuments returns the examples and the kit's definitions by name.
func officialDocuments(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	out := make(map[string][]byte)
	examples, err := filepath.Glob(filepath.Join(dir, "examples", "*.yaml"))
	require.NoError(t, err)
	for _, file := range examples {
		out[filepath.Base(file)], err = os.ReadFile(file)
		require.NoError(t, err)
	}
	features, err := filepath.Glob(filepath.Join(dir, "ctk", "*.feature"))
	require.NoError(t, err)
	for _, file := range features {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		parts := strings.Split(string(data), "Given a workflow with definition:")
		for i, part := range parts[1:] {
			definition := strings.Split(part, `"""`)[1]
			out[fmt.Sprintf("%s %d", filepath.Base(file), i+1)] = []byte(strings.TrimPrefix(definition, "yaml"))
		}
	}
	require.Len(t, out, 68+21)
	return out
}

// describedStub is a description of the services that the examples call.
const describedStub = `
openapi: 3.0.3
servers: [{url: 'https://example.com'}]
paths:
  /pets: {get: {operationId: findPetsByStatus, parameters: [{name: status, in: query}]}}
  /pets/{petId}: {get: {operationId: getPetById, parameters: [{name: petId, in: path}]}}
  /log: {post: {operationId: logreading}}
  /report: {post: {operationId: produceReport}}
`

// parseWithStubs parses a document with a function, or a description of a service, in place of each resource.
func parseWithStubs(source []byte) (*dsl.Document, dsl.Violations) {
	resources := dsl.NewResources()
	_, _ = dsl.Parse(source, dsl.WithResources(resources))
	for _, missing := range resources.Missing() {
		stub := "set: {stub: true}"
		if strings.HasSuffix(missing.URI, ".json") {
			stub = describedStub
		}
		resources.Add(missing.URI, []byte(stub))
	}
	return dsl.Parse(source, dsl.WithResources(resources))
}

// TestOfficialDocuments: none of them has a violation but that a part is not run yet, and none loses anything. One
// example has a path without ${ } in strict mode, which is a text.
func TestOfficialDocuments(t *testing.T) {
	t.Parallel()
	dir := officialData(t)
	accepted := 0
	for name, source := range officialDocuments(t, dir) {
		doc, violations := parseWithStubs(source)
		for _, p := range violations {
			require.Contains(t, []dsl.Code{dsl.CodeUnsupported, dsl.CodeExtensionKey, dsl.CodeLiteral}, p.Code, "%s: %s", name, p)
			if p.Code == dsl.CodeLiteral {
				require.Contains(t, p.Message, "is used as a text", name)
				t.Logf("%s: %s", name, p)
			}
		}
		if doc == nil {
			continue
		}
		accepted++
		var plain any
		require.NoError(t, yaml.Unmarshal(source, &plain))
		require.Equal(t, jq.Normalize(plain), doc.Definition, name)
		inner, _, err := dsl.Unpack(doc.Canonical())
		require.NoError(t, err)
		again, violations := parseWithStubs(inner)
		for _, p := range violations {
			require.Equal(t, dsl.SeverityWarning, p.Severity, "%s: %s", name, p)
		}
		require.Equal(t, doc.Hash(), again.Hash(), name)
		require.Equal(t, doc.Definition, again.Definition, name)
	}
	t.Logf("%d of 89 documents run in this version", accepted)
	require.GreaterOrEqual(t, accepted, 82)
}

// TestAgainstOfficialSchema: what we accept, the official schema accepts, for all documents and seeded mutations of
// them. The other way round we are stricter on purpose; the test prints how.
func TestAgainstOfficialSchema(t *testing.T) {
	t.Parallel()
	dir := officialData(t)
	schema := officialSchema(t, dir)
	const seed, mutations = 20260701, 40
	random := rand.New(rand.NewPCG(seed, seed))
	documents := officialDocuments(t, dir)
	for i := range 8 { // the official documents show little of what we run
		documents[fmt.Sprint("rich ", i)] = []byte(richDocument)
	}
	stricter := map[string]int{}
	both, neither := 0, 0
	for _, name := range slices.Sorted(maps.Keys(documents)) {
		original, err := jq.EncodeJSON(plainYAML(t, documents[name]))
		require.NoError(t, err)
		for i := range mutations {
			value, err := jq.DecodeJSON(original)
			require.NoError(t, err)
			for range min(i, 1+random.IntN(2)) {
				value = mutate(random, value)
			}
			text, err := jq.EncodeJSON(value)
			require.NoError(t, err)
			doc, violations := dsl.Parse(text)
			refusal := schema.Validate(value)
			require.False(t, doc != nil && refusal != nil, "seed %d, %s: accepted, but the official schema says %v\n%s", seed,
				name, refusal, text)
			switch {
			case doc != nil:
				both++
			case refusal != nil:
				neither++
			default:
				for _, p := range violations {
					stricter[string(p.Code)]++
				}
			}
		}
	}
	t.Logf("accepted by both %d, refused by both %d, refused by us alone by code: %v", both, neither, stricter)
	require.NotZero(t, both)
	require.NotZero(t, neither)
}

func plainYAML(t *testing.T, source []byte) any {
	t.Helper()
	var v any
	require.NoError(t, yaml.Unmarshal(source, &v))
	return jq.Normalize(v)
}

// mutate changes one random part of a value.
func mutate(random *rand.Rand, v any) any {
	switch v := v.(type) {
	case map[string]any:
		keys := slices.Sorted(maps.Keys(v))
		if len(keys) == 0 {
			return map[string]any{"added": 1}
		}
		key := keys[random.IntN(len(keys))]
		switch random.IntN(10) {
		case 0:
			delete(v, key)
		case 1:
			v[key+"X"] = v[key]
			delete(v, key)
		case 2:
			v["added"] = "x"
		case 3:
			v[[]string{"if", "then", "set", "do", "wait", "for", "output", "timeout", "until", "any", "all", "with",
				"read"}[random.IntN(13)]] = oddValue(random)
		case 4:
			v[key] = oddValue(random)
		default:
			v[key] = mutate(random, v[key])
		}
		return v
	case []any:
		if len(v) == 0 || random.IntN(6) == 0 {
			return append(v, oddValue(random))
		}
		i := random.IntN(len(v))
		v[i] = mutate(random, v[i])
		return v
	}
	return oddValue(random)
}

func oddValue(random *rand.Rand) any {
	odd := []any{nil, true, 0, -3, 1.5, "", "text", "${ .x }", ".x", "PT5S", "P", "end", "https://example.com/{a}",
		" https://e.com", []any{}, []any{"x"}, map[string]any{}, map[string]any{"seconds": 1},
		map[string]any{"after": "PT1S"}, map[string]any{"as": ".x"},
		map[string]any{"any": []any{}}, map[string]any{"one": map[string]any{"with": map[string]any{"type": "t"}}},
		map[string]any{"with": map[string]any{"type": "t"}}}
	return odd[random.IntN(len(odd))]
}
