package vocabulary_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/vocabulary"
)

// sampler builds documents that have an object of each type.
type sampler struct{ v *vocabulary.Vocabulary }

// value returns a small value of a type.
func (s sampler) value(name string, depth int) any {
	t := s.v.Type(name)
	if depth > 12 {
		return map[string]any{}
	}
	switch t.Form {
	case vocabulary.Text, vocabulary.Expression, vocabulary.Wrapped:
		return s.text(t)
	case vocabulary.Integer:
		return 1
	case vocabulary.Boolean:
		return true
	case vocabulary.Structure:
		out := map[string]any{}
		for _, key := range t.Keys {
			if key.Required || slices.Contains(append(t.OneOf[:min(1, len(t.OneOf))], t.AnyOf...), key.Name) {
				out[key.Name] = s.value(key.Type, depth+1)
			}
		}
		if t.Least > 0 && len(out) == 0 {
			out[t.Keys[0].Name] = s.value(t.Keys[0].Type, depth+1)
		}
		return out
	case vocabulary.Map:
		out := map[string]any{"one": s.value(t.Item, depth+1)}
		for _, key := range t.Keys {
			if key.Required {
				out[key.Name] = s.value(key.Type, depth+1)
			}
		}
		return out
	case vocabulary.List:
		return []any{s.value(t.Item, depth+1)}
	case vocabulary.Named:
		if t.Item == vocabulary.Task {
			return []any{map[string]any{"one": map[string]any{"set": map[string]any{"a": 1}}}}
		}
		return []any{map[string]any{"one": s.value(t.Item, depth+1)}}
	case vocabulary.Choice, vocabulary.Variant:
		return s.value(t.Options[0], depth+1)
	case vocabulary.Any:
	}
	return map[string]any{"a": 1}
}

func (s sampler) text(t *vocabulary.Type) string {
	switch {
	case t.Form != vocabulary.Text:
		return "${ . }"
	case len(t.Words) > 0:
		return t.Words[0]
	}
	switch t.Name {
	case "dsl version":
		return "1.0.3"
	case "version", "version or latest":
		return "1.0.0"
	case "flow":
		return "end"
	case "uri", "text":
		return "https://one.example/a"
	case "duration text":
		return "PT1S"
	}
	return "one"
}

// root holds a document.
type root struct{ document any }

// place is an object in a document.
type place struct {
	document *root
	path     string
	object   map[string]any
	kind     *vocabulary.Type
}

// places returns a document for each type of objects, with an object of that type at its path.
func (s sampler) places() []place {
	var out []place
	seen := map[string]bool{}
	var visit func(name string, build func() (*root, string, func(any)))
	visit = func(name string, build func() (*root, string, func(any))) {
		if seen[name] {
			return
		}
		seen[name] = true
		t := s.v.Type(name)
		switch t.Form {
		case vocabulary.Choice, vocabulary.Variant:
			for _, option := range t.Options {
				visit(option, build)
			}
		case vocabulary.List, vocabulary.Named, vocabulary.Map:
			for _, key := range t.Keys {
				s.into(build, name, key.Name, key.Type, visit)
			}
			s.into(build, name, "", t.Item, visit)
		case vocabulary.Structure:
			document, path, set := build()
			object, _ := s.value(name, 0).(map[string]any)
			set(object)
			out = append(out, place{document, path, object, t})
			for _, key := range t.Keys {
				s.into(build, name, key.Name, key.Type, visit)
			}
		case vocabulary.Any, vocabulary.Text, vocabulary.Expression, vocabulary.Wrapped, vocabulary.Integer,
			vocabulary.Boolean:
		}
	}
	visit(vocabulary.Document, func() (*root, string, func(any)) {
		root := &root{}
		return root, "", func(v any) { root.document = v }
	})
	return out
}

// into visits the value of a key of a type, or its item.
func (s sampler) into(build func() (*root, string, func(any)), parent, key, name string,
	visit func(string, func() (*root, string, func(any)))) {
	visit(name, func() (*root, string, func(any)) {
		document, path, set := build()
		switch t := s.v.Type(parent); t.Form {
		case vocabulary.List:
			list := []any{nil}
			set(list)
			return document, path + "/0", func(v any) { list[0] = v }
		case vocabulary.Named:
			item := map[string]any{}
			set([]any{item})
			return document, path + "/0/one", func(v any) { item["one"] = v }
		case vocabulary.Map:
			object := s.value(parent, 0).(map[string]any)
			if key == "" {
				key = "one"
			}
			set(object)
			return document, path + "/" + key, func(v any) { object[key] = v }
		default:
			object := s.value(parent, 0).(map[string]any)
			for _, other := range t.OneOf {
				if other != key && slices.Contains(t.OneOf, key) {
					delete(object, other)
				}
			}
			set(object)
			return document, path + "/" + key, func(v any) { object[key] = v }
		}
	})
}

func violationsOf(t *testing.T, r *root) dsl.Violations {
	t.Helper()
	text, err := json.Marshal(r.document)
	require.NoError(t, err)
	resources := dsl.NewResources()
	_, violations := dsl.Parse(text, dsl.WithResources(resources))
	return violations
}

// Every object has the keys that package dsl accepts, and no others.
func TestTheVocabularyAgreesWithTheParser(t *testing.T) {
	t.Parallel()
	s := sampler{vocabulary.New()}
	places := s.places()
	require.Greater(t, len(places), 60)
	pool := map[string]bool{"zzz": true}
	for _, p := range places {
		for _, key := range p.kind.Keys {
			pool[key.Name] = true
		}
	}
	for _, p := range places {
		requireKeys(t, s, p, pool)
		requireAgreement(t, p)
	}
}

// requireKeys fails unless package dsl accepts the keys of an object and refuses all others of the pool.
func requireKeys(t *testing.T, s sampler, p place, pool map[string]bool) {
	t.Helper()
	refused := func(violations dsl.Violations, key string) bool {
		return slices.ContainsFunc(violations, func(v dsl.Violation) bool {
			whole := v.Path == p.path && strings.Contains(v.Message, "a duration has no ") // it is refused as a whole
			return whole || v.Path == p.path+"/"+key && (v.Code == dsl.CodeUnknownKey || v.Code == dsl.CodeUnsupported)
		})
	}
	var unknown []string
	for key := range pool {
		known := p.kind.Key(key)
		if known == nil {
			if !s.selects(p.kind, key) {
				unknown = append(unknown, key)
			}
			continue
		}
		before, had := p.object[key]
		p.object[key] = s.value(known.Type, 0)
		violations := violationsOf(t, p.document)
		require.False(t, refused(violations, key), "%s: %s: the key %q\n%v", p.kind.Name, p.path, key, violations)
		delete(p.object, key)
		if had {
			p.object[key] = before
		}
	}
	for _, key := range unknown {
		p.object[key] = nil
	}
	violations := violationsOf(t, p.document)
	for _, key := range unknown {
		require.True(t, refused(violations, key), "%s: %s: the key %q\n%v", p.kind.Name, p.path, key, violations)
		delete(p.object, key)
	}
}

// selects reports whether a key selects another kind than the one of an object: then the object is refused as a whole.
func (s sampler) selects(t *vocabulary.Type, key string) bool {
	for _, variant := range s.v.Types() {
		if variant.Form == vocabulary.Variant && slices.Contains(variant.Options, t.Name) &&
			slices.ContainsFunc(variant.Options, func(option string) bool { return s.v.Type(option).Key(key) != nil }) {
			return true
		}
	}
	return false
}

// requireAgreement fails unless package dsl requires the keys that the vocabulary requires.
func requireAgreement(t *testing.T, p place) {
	t.Helper()
	missing := func() []string {
		var out []string
		for _, v := range violationsOf(t, p.document) {
			if v.Code == dsl.CodeMissingKey && v.Path == p.path {
				out = append(out, v.Message)
			}
		}
		return out
	}
	require.Empty(t, missing(), "%s: %s: %v", p.kind.Name, p.path, p.document.document)
	for i, key := range p.kind.Keys {
		if !key.Required || i == 0 && strings.HasSuffix(p.kind.Name, " task") {
			continue
		}
		before := p.object[key.Name]
		delete(p.object, key.Name)
		violations := violationsOf(t, p.document)
		require.True(t, violations.HasErrors(), "%s: %s without %q", p.kind.Name, p.path, key.Name)
		p.object[key.Name] = before
	}
}

func schema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	text := vocabulary.New().Schema()
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	require.NoError(t, err)
	compiler := jsonschema.NewCompiler()
	require.NoError(t, compiler.AddResource("urn:workflow", document))
	compiled, err := compiler.Compile("urn:workflow")
	require.NoError(t, err)
	return compiled
}

// The schema accepts every example that package dsl accepts.
func TestTheSchemaAcceptsValidDocuments(t *testing.T) {
	t.Parallel()
	compiled := schema(t)
	checked := 0
	for _, path := range documents(t) {
		source, err := os.ReadFile(path)
		require.NoError(t, err)
		doc, _ := dsl.Parse(source)
		if doc == nil {
			continue
		}
		checked++
		require.NoError(t, compiled.Validate(plain(t, doc.Definition)), path)
	}
	require.Greater(t, checked, 30)
}

func documents(t *testing.T) []string {
	t.Helper()
	folder := os.Getenv("OWS_DIR")
	if folder == "" {
		folder = filepath.Join("..", "..", "..", "shared", "open-workflow")
	}
	var out []string
	for _, pattern := range []string{filepath.Join(folder, "examples", "*.yaml"), "../../examples/workflows/*.yaml"} {
		found, err := filepath.Glob(pattern)
		require.NoError(t, err)
		out = append(out, found...)
	}
	return out
}

// plain returns a value as the validator reads it.
func plain(t *testing.T, v any) any {
	t.Helper()
	text, err := json.Marshal(v)
	require.NoError(t, err)
	out, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	require.NoError(t, err)
	return out
}

// The schema refuses documents with unknown, missing and mistyped keys.
func TestTheSchemaRefusesInvalidDocuments(t *testing.T) {
	t.Parallel()
	compiled := schema(t)
	const header = `"document": {"dsl": "1.0.3", "namespace": "shop", "name": "order", "version": "1.0.0"}`
	for _, rest := range []string{
		``,
		`, "do": {}`,
		`, "do": [], "zzz": 1`,
		`, "do": [{"a": {}}]`,
		`, "do": [{"a": {"set": {}}}]`,
		`, "do": [{"a": {"set": {"x": 1}}, "b": {"set": {"x": 1}}}]`,
		`, "do": [{"a": {"set": {"x": 1}, "zzz": 1}}]`,
		`, "do": [{"a": {"set": {"x": 1}, "wait": "PT1S"}}]`,
		`, "do": [{"a": {"call": "http"}}]`,
		`, "do": [{"a": {"call": "http", "with": {"method": "get"}}}]`,
		`, "do": [{"a": {"call": "http", "with": {"method": "get", "endpoint": "https://a.example", "output": "all"}}}]`,
		`, "do": [{"a": {"for": {"in": ".x"}}}]`,
		`, "do": [{"a": {"wait": {"weeks": 1}}}]`,
		`, "do": [{"a": {"listen": {"to": {"one": {"with": {"type": "a"}}, "all": []}}}}]`,
		`, "do": [{"a": {"switch": [{"one": {"when": ".x"}}]}}]`,
		`, "do": [], "schedule": {}`,
		`, "do": [], "use": {"secrets": {"a": "b"}}`,
	} {
		document, err := jsonschema.UnmarshalJSON(strings.NewReader("{" + header + rest + "}"))
		require.NoError(t, err, rest)
		require.Error(t, compiled.Validate(document), rest)
	}
}
