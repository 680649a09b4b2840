package rpc_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"path"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/signalbox-dev/signalbox/api"
	"github.com/signalbox-dev/signalbox/api/signalbox/v1/signalboxv1connect"
	"github.com/signalbox-dev/signalbox/internal/rpc/permission"
)

// described is one operation of the OpenAPI document.
type described struct {
	id, method string
	path       *regexp.Regexp
	// request is nil for an operation without a body in JSON. Answers are by status; those without JSON are nil.
	request *jsonschema.Schema
	answers map[string]*jsonschema.Schema
}

// document is the OpenAPI document with its schemas.
var document = sync.OnceValues(readDocument)

const documentURL = "file:///openapi.json"

func readDocument() ([]described, error) {
	var content map[string]any
	if err := yaml.Unmarshal([]byte(api.OpenAPI()), &content); err != nil {
		return nil, err
	}
	text, err := json.Marshal(content)
	if err != nil {
		return nil, err
	}
	root, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	compiler.AssertFormat()
	if err := compiler.AddResource(documentURL, root); err != nil {
		return nil, err
	}
	schema := func(pointer string) (*jsonschema.Schema, error) {
		return compiler.Compile(documentURL + "#" + pointer)
	}
	var all []described
	for route, item := range content["paths"].(map[string]any) {
		variable := regexp.MustCompile(`\\\{(\w+)\\\}`)
		pattern := variable.ReplaceAllStringFunc(regexp.QuoteMeta(route), func(name string) string {
			if strings.Contains(name, "workflow") {
				return `[^:]+` // its slash may stand as it is
			}
			return `[^/:]+`
		})
		for method, operation := range item.(map[string]any) {
			d := described{
				id: operation.(map[string]any)["operationId"].(string), method: strings.ToUpper(method),
				path: regexp.MustCompile("^" + pattern + "$"), answers: map[string]*jsonschema.Schema{},
			}
			at := "/paths/" + strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D").Replace(route) + "/" + method
			if hasJSON(operation.(map[string]any)["requestBody"]) {
				if d.request, err = schema(at + "/requestBody/content/application~1json/schema"); err != nil {
					return nil, err
				}
			}
			for status, answer := range operation.(map[string]any)["responses"].(map[string]any) {
				pointer := at + "/responses/" + status
				if ref, ok := answer.(map[string]any)["$ref"].(string); ok {
					pointer = strings.TrimPrefix(ref, "#")
					answer = content["components"].(map[string]any)["responses"].(map[string]any)[strings.TrimPrefix(ref, "#/components/responses/")]
				}
				d.answers[status] = nil
				if hasJSON(answer) {
					if d.answers[status], err = schema(pointer + "/content/application~1json/schema"); err != nil {
						return nil, err
					}
				}
			}
			all = append(all, d)
		}
	}
	return all, nil
}

func hasJSON(part any) bool {
	body, _ := part.(map[string]any)
	content, _ := body["content"].(map[string]any)
	return content["application/json"] != nil
}

// requireDescribed fails the test unless an answer of a REST path, and the request if it was accepted, are as the
// OpenAPI document describes.
func requireDescribed(t testing.TB, method, target, body string, a answer) {
	t.Helper()
	all, err := document()
	require.NoError(t, err)
	bare, _, _ := strings.Cut(target, "?")
	for _, d := range all {
		if d.method != method || !d.path.MatchString(bare) {
			continue
		}
		schema, ok := d.answers[strconv.Itoa(a.status)]
		if !ok {
			schema = d.answers["default"]
		}
		if schema != nil && a.body != "" && a.header.Get("Content-Encoding") == "" &&
			strings.HasPrefix(a.header.Get("Content-Type"), "application/json") {
			requireValid(t, schema, a.body, fmt.Sprintf("the answer of %s, which is %d", d.id, a.status))
		}
		if d.request != nil && strings.HasPrefix(body, "{") && a.status == http.StatusOK { // others are compressed
			requireValid(t, d.request, body, "the request of "+d.id)
		}
	}
}

func requireValid(t testing.TB, schema *jsonschema.Schema, text, what string) {
	t.Helper()
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	require.NoError(t, err, text)
	require.NoError(t, schema.Validate(value), "%s is not as api/openapi.yaml describes it: %s", what, text)
}

func TestDocumentIsServedWithoutToken(t *testing.T) {
	t.Parallel()
	for name, p := range map[string]*platform{
		"without tokens": start(t, withUI(t)), "with tokens": startGuarded(t, withUI(t)).platform} {
		for _, accept := range []string{"*/*", browser} {
			got := p.do("GET", "/openapi.yaml", "", "Accept", accept)
			require.Equal(t, http.StatusOK, got.status, name)
			require.Equal(t, "application/yaml", got.header.Get("Content-Type"))
			require.Equal(t, api.OpenAPI(), got.body)
		}
		p.do("POST", "/openapi.yaml", "{}").fails(405, "UNIMPLEMENTED")
	}
}

// What the document does not have is a stream, or the method behind the CloudEvents binding, which it has.
func TestDocumentHasEveryRESTPath(t *testing.T) {
	t.Parallel()
	all, err := document()
	require.NoError(t, err)
	ids := map[string]bool{}
	for _, d := range all {
		ids[strings.ToLower(d.id)] = true
	}
	var missing []string
	for _, rule := range permission.Table() {
		if !ids[strings.ToLower(path.Base(rule.Procedure))] {
			missing = append(missing, rule.Procedure)
		}
	}
	require.ElementsMatch(t, []string{
		signalboxv1connect.RunServiceWatchRunProcedure, signalboxv1connect.WatchServiceWatchProcedure}, missing)
}

// Generators of Go refuse a schema with a set of types, and give the types of a security scheme the name of the scheme.
func TestGeneratorsReadDocument(t *testing.T) {
	t.Parallel()
	var content struct {
		Components struct {
			Schemas         map[string]any
			SecuritySchemes map[string]any `yaml:"securitySchemes"`
		}
	}
	require.NoError(t, yaml.Unmarshal([]byte(api.OpenAPI()), &content))
	require.NotEmpty(t, content.Components.Schemas)
	require.NotEmpty(t, content.Components.SecuritySchemes)
	for name := range content.Components.SecuritySchemes {
		for schema := range content.Components.Schemas {
			require.False(t, strings.EqualFold(name, schema), "a security scheme has the name of the schema %s", schema)
		}
	}
	var all any
	require.NoError(t, yaml.Unmarshal([]byte(api.OpenAPI()), &all))
	requireOneType(t, "", all)
}

// requireOneType requires that no schema below a value of the document has a set of types.
func requireOneType(t *testing.T, at string, value any) {
	t.Helper()
	switch v := value.(type) {
	case []any:
		for i, item := range v {
			requireOneType(t, at+"/"+strconv.Itoa(i), item)
		}
	case map[string]any:
		for name, item := range v {
			if _, set := item.([]any); set && name == "type" {
				require.Fail(t, "a schema has a set of types", at)
			}
			requireOneType(t, at+"/"+name, item)
		}
	}
}
