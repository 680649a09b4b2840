package openapi_test

import (
	"errors"
	"fmt"
	"sort"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/signalbox-dev/signalbox/dsl/internal/openapi"
	"github.com/signalbox-dev/signalbox/dsl/internal/value"
)

const home = "https://example.com/api/openapi.yaml"

// noTexts is a Load for descriptions that refer to no other text.
func noTexts(uri string) ([]byte, error) { return nil, fmt.Errorf("%s is not there", uri) }

func read(t *testing.T, text string) *openapi.Description {
	t.Helper()
	return readAt(t, text, home, noTexts)
}

func readAt(t *testing.T, text, uri string, load openapi.Load) *openapi.Description {
	t.Helper()
	d, err := openapi.Read(plain(t, text), uri, load)
	require.NoError(t, err)
	return d
}

func plain(t *testing.T, text string) any {
	t.Helper()
	var v any
	require.NoError(t, yaml.Unmarshal([]byte(text), &v))
	return value.Normalize(v)
}

func operation(t *testing.T, text, id string) *openapi.Operation {
	t.Helper()
	o, err := read(t, text).Operation(id)
	require.NoError(t, err)
	return o
}

// text returns a text with its secrets in angle brackets.
func text(parts openapi.Text) string {
	var b strings.Builder
	for _, part := range parts {
		if s, secret := part.(openapi.Secret); secret {
			part = fmt.Sprintf("<%v>", s.Value)
		}
		b.WriteString(part.(string))
	}
	return b.String()
}

// show returns a request as lines.
func show(r *openapi.Request) string {
	lines := []string{r.Method + " " + text(r.URL)}
	var more []string
	for name, v := range r.Query {
		more = append(more, "? "+name+"="+text(v))
	}
	for name, v := range r.Headers {
		more = append(more, name+": "+text(v))
	}
	sort.Strings(more)
	lines = append(lines, more...)
	if r.HasBody {
		body, err := value.Encode(r.Body)
		if err != nil {
			body = fmt.Append(nil, r.Body)
		}
		lines = append(lines, string(body))
	}
	return strings.Join(lines, "\n")
}

func request(t *testing.T, o *openapi.Operation, arguments string) string {
	t.Helper()
	given, _ := plain(t, arguments).(map[string]any)
	r, _, err := o.Request(given, 1<<30)
	if problems, ok := errors.AsType[*openapi.ProblemsError](err); ok {
		return problems.Error()
	}
	require.NoError(t, err)
	return show(r)
}

// TestStyles has the table of styles of the specification.
func TestStyles(t *testing.T) {
	t.Parallel()
	const (
		list   = "v: [blue, black]"
		object = "v: {R: 100, G: 200}"
		one    = "v: 'a b/ü'"
	)
	for _, tt := range []struct{ in, style, explode, given, want string }{
		{"path", "simple", "false", one, "/x/a%20b%2F%C3%BC"},
		{"path", "simple", "false", list, "/x/blue,black"},
		{"path", "simple", "true", list, "/x/blue,black"},
		{"path", "simple", "false", object, "/x/G,200,R,100"},
		{"path", "simple", "true", object, "/x/G=200,R=100"},
		{"path", "label", "false", one, "/x/.a%20b%2F%C3%BC"},
		{"path", "label", "false", list, "/x/.blue,black"},
		{"path", "label", "true", list, "/x/.blue.black"},
		{"path", "label", "false", object, "/x/.G,200,R,100"},
		{"path", "label", "true", object, "/x/.G=200.R=100"},
		{"path", "matrix", "false", one, "/x/;v=a%20b%2F%C3%BC"},
		{"path", "matrix", "false", list, "/x/;v=blue,black"},
		{"path", "matrix", "true", list, "/x/;v=blue;v=black"},
		{"path", "matrix", "false", object, "/x/;v=G,200,R,100"},
		{"path", "matrix", "true", object, "/x/;G=200;R=100"},
		{"query", "form", "true", one, "/x?v=a%20b%2F%C3%BC"},
		{"query", "form", "true", list, "/x?v=blue&v=black"},
		{"query", "form", "false", list, "/x?v=blue,black"},
		{"query", "form", "true", object, "/x?G=200&R=100"},
		{"query", "form", "false", object, "/x?v=G,200,R,100"},
		{"query", "form", "true", "v: []", "/x"},
		{"query", "form", "true", "v: ''", "/x?v="},
		{"query", "spaceDelimited", "false", list, "/x?v=blue%20black"},
		{"query", "pipeDelimited", "false", list, "/x?v=blue%7Cblack"},
		{"query", "deepObject", "true", object, "/x?v%5BG%5D=200&v%5BR%5D=100"},
		{"query", "deepObject", "true", "v: {a: {b: [1, 2]}}", "/x?v%5Ba%5D%5Bb%5D=1&v%5Ba%5D%5Bb%5D=2"},
		{"header", "simple", "false", list, "/x\nv: blue,black"},
		{"header", "simple", "true", object, "/x\nv: G=200,R=100"},
		{"cookie", "form", "true", one, "/x\nCookie: v=a%20b%2F%C3%BC"},
		{"cookie", "form", "false", list, "/x\nCookie: v=blue,black"},
		{"path", "simple", "false", "v: ..", `the path parameter "v" is empty or a step to another path`},
		{"path", "simple", "false", "v: ''", `the path parameter "v" is empty or a step to another path`},
		{"query", "form", "true", "v: [[1]]",
			`the query parameter "v" has lists or objects within each other, which its style cannot carry`},
		{"query", "deepObject", "true", "v: 1", `the query parameter "v" has the style deepObject and must be an object`},
	} {
		path := "/x"
		if tt.in == "path" {
			path = "/x/{v}"
		}
		o := operation(t, fmt.Sprintf(`
openapi: 3.1.0
servers: [{url: 'https://s'}]
paths:
  %s:
    get: {operationId: a, parameters: [{name: v, in: %s, style: %s, explode: %s, required: true, schema: {}}]}
`, path, tt.in, tt.style, tt.explode), "a")
		got := strings.TrimPrefix(request(t, o, tt.given), "GET https://s")
		require.Equal(t, tt.want, got, "%v", tt)
	}
}

const petstore = `
swagger: 2.0
host: petstore.swagger.io
basePath: /v2
schemes: [http, https]
securityDefinitions:
  api_key: {type: apiKey, name: api_key, in: header}
  auth: {type: oauth2, flow: implicit, authorizationUrl: 'https://a', scopes: {}}
parameters:
  limit: {name: limit, in: query, type: integer, maximum: 5}
definitions:
  Pet:
    required: [name, id]
    properties: {id: {type: integer, readOnly: true}, name: {type: string}, parent: {$ref: '#/definitions/Pet'}}
paths:
  /pet/findByStatus:
    get:
      operationId: findPetsByStatus
      security: [{auth: []}]
      parameters:
        - {name: status, in: query, required: true, type: array, items: {type: string}, collectionFormat: multi}
        - {name: tags, in: query, type: array, items: {type: string}}
        - $ref: '#/parameters/limit'
  /pet:
    post: {operationId: addPet, parameters: [{name: pet, in: body, required: true, schema: {$ref: '#/definitions/Pet'}}]}
  /pet/{petId}:
    parameters: [{name: petId, in: path, required: true, type: integer}]
    get: {operationId: getPetById, security: [{api_key: []}]}
    post:
      operationId: updatePet
      parameters:
        - {name: name, in: formData, type: string, required: true}
        - {name: tags, in: formData, type: array, items: {type: string}}
`

func TestSwagger(t *testing.T) {
	t.Parallel()
	d := read(t, petstore)
	for _, tt := range []struct{ id, given, want string }{
		{"findPetsByStatus", "status: available", "GET https://petstore.swagger.io/v2/pet/findByStatus?status=available"},
		{"findPetsByStatus", "{status: [a, b], tags: [c, d], limit: 3}",
			"GET https://petstore.swagger.io/v2/pet/findByStatus?limit=3&status=a&status=b&tags=c,d"},
		{"getPetById", "{petId: '1', api_key: x}", "GET https://petstore.swagger.io/v2/pet/1\napi_key: x"},
		{"addPet", "{pet: {name: a}}",
			"POST https://petstore.swagger.io/v2/pet\nContent-Type: application/json\n{\"name\":\"a\"}"},
		{"addPet", "{name: a}",
			"POST https://petstore.swagger.io/v2/pet\nContent-Type: application/json\n{\"name\":\"a\"}"},
		{"addPet", "{}", "the body is missing: its members are arguments (id, name, parent)"},
		{"updatePet", "{petId: 1, name: a, tags: [b, c]}", "POST https://petstore.swagger.io/v2/pet/1\n" +
			"Content-Type: application/x-www-form-urlencoded\n{\"name\":\"a\",\"tags\":\"b,c\"}"},
	} {
		o, err := d.Operation(tt.id)
		require.NoError(t, err)
		require.Equal(t, tt.want, request(t, o, tt.given), tt.id)
	}
}

func TestOperationsAreBounded(t *testing.T) {
	t.Parallel()
	large := func(properties int, parameters string) string {
		var many strings.Builder
		for i := range properties {
			fmt.Fprintf(&many, "property%d: {type: string}, ", i)
		}
		return fmt.Sprintf(`
openapi: 3.0.3
servers: [{url: 'https://s'}]
components: {schemas: {Large: {properties: {%s}}}}
paths:
  /small: {get: {operationId: small}}
  /large: {get: {operationId: large, parameters: [%s]}}
`, many.String(), parameters)
	}
	const one = "{name: v, in: query, schema: {$ref: '#/components/schemas/Large'}}"
	d := read(t, large(26_000, one))
	_, err := d.Operation("small")
	require.NoError(t, err, "the rest of the description does not matter")
	_, err = d.Operation("large")
	require.ErrorContains(t, err, "the limit is 50000")

	var parameters strings.Builder
	for i := range 200 {
		parameters.WriteString(strings.Replace(one, "name: v", fmt.Sprintf("name: v%d", i), 1) + ", ")
	}
	_, err = read(t, large(2_000, parameters.String())).Operation("large")
	require.ErrorContains(t, err, "bytes, each with all that it refers to")
}
