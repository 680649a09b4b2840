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
	// large has a schema with many properties, in parts.
	large := func(parts, parameters int) *openapi.Description {
		schemas, all := map[string]any{}, []any{}
		for i := range parts {
			properties := map[string]any{}
			for j := range 1000 {
				properties[fmt.Sprint("property", j)] = map[string]any{"type": "string"}
			}
			schemas[fmt.Sprint("Part", i)] = map[string]any{"properties": properties}
			all = append(all, map[string]any{"$ref": fmt.Sprint("#/components/schemas/Part", i)})
		}
		schemas["Large"] = map[string]any{"allOf": all}
		list := []any{}
		for i := range parameters {
			list = append(list, map[string]any{"name": fmt.Sprint("v", i), "in": "query",
				"schema": map[string]any{"$ref": "#/components/schemas/Large"}})
		}
		d, err := openapi.Read(map[string]any{
			"openapi": "3.0.3", "components": map[string]any{"schemas": schemas}, "paths": map[string]any{
				"/small": map[string]any{"get": map[string]any{"operationId": "small"}},
				"/large": map[string]any{"get": map[string]any{"operationId": "large", "parameters": list}},
			}}, home, noTexts)
		require.NoError(t, err)
		return d
	}
	d := large(26, 1)
	_, err := d.Operation("small")
	require.NoError(t, err, "the rest of the description does not matter")
	_, err = d.Operation("large")
	require.ErrorContains(t, err, "the limit is 50000")
	_, err = large(4, 100).Operation("large")
	require.ErrorContains(t, err, "bytes, each with all that it refers to")
}

const typed = `
openapi: 3.0.3
servers: [{url: 'https://s/'}, {url: 'https://never'}]
components:
  schemas:
    Issue: {type: object, properties: {title: {type: string}, body: {type: string}}}
  parameters: {trace: {name: X-Trace, in: header, schema: {type: string}}}
paths:
  /issues/{n}:
    parameters:
      - {name: n, in: path, required: true, schema: {type: integer}}
      - {$ref: '#/components/parameters/trace'}
    get:
      operationId: get
      parameters:
        - {name: all, in: query, schema: {type: boolean}}
        - {name: name, in: query, schema: {type: string}}
        - {name: ids, in: query, explode: false, schema: {type: array, items: {type: integer}}}
        - {name: filter, in: query, content: {application/json: {schema: {type: object}}}}
        - {name: path, in: query, allowReserved: true, schema: {type: string}}
    post:
      operationId: post
      requestBody: {content: {text/plain: {}, application/merge-patch+json: {schema: {$ref: '#/components/schemas/Issue'}}}}
    put:
      operationId: put
      servers: [{url: 'https://{tenant}.s', variables: {tenant: {default: a}}}]
      requestBody: {content: {text/csv: {schema: {type: string}}}}
    patch:
      operationId: patch
      requestBody:
        content:
          multipart/form-data: {schema: {type: object}}
          application/x-www-form-urlencoded:
            schema: {type: object, properties: {a: {type: array, items: {type: string}}, b: {type: array, items: {type: string}}}}
            encoding: {b: {style: pipeDelimited}}
    delete:
      operationId: delete
      requestBody: {content: {application/octet-stream: {}}}
`

func TestValuesAreReadAsTheirTypes(t *testing.T) {
	t.Parallel()
	o := operation(t, typed, "get")
	for given, want := range map[string]string{
		"{n: '7', all: 'true', name: 5, ids: 3}":                   "GET https://s/issues/7?all=true&ids=3&name=5",
		"{n: 7, all: true, name: true, ids: ['3', 4], x-trace: a}": "GET https://s/issues/7?all=true&ids=3,4&name=true\nX-Trace: a",
		"{n: 1.0, filter: {a: [1, 'b c']}}":                        "GET https://s/issues/1?filter=%7B%22a%22%3A%5B1%2C%22b%20c%22%5D%7D",
		"{n: 7, path: 'a/b?c=d&e#f', name: 'a&b'}":                 "GET https://s/issues/7?name=a%26b&path=a/b?c=d%26e%23f",
		"{n: null}":        `the path parameter "n" is missing`,
		"{n: 1, other: 1}": `the operation "get" has no parameter "other"`,
	} {
		require.Equal(t, want, request(t, o, given), given)
	}
}

func TestBodies(t *testing.T) {
	t.Parallel()
	const address = "https://s/issues/7\n"
	for _, tt := range []struct{ id, given, want string }{
		{"post", "{n: 7, title: a, body: b}",
			"POST " + address + "Content-Type: application/merge-patch+json\n{\"body\":\"b\",\"title\":\"a\"}"},
		{"post", "{n: 7}", "POST https://s/issues/7"},
		{"put", "{n: 7, body: 'a,b', tenant: t-1}", "PUT https://t-1.s/issues/7\nContent-Type: text/csv\n\"a,b\""},
		{"put", "{n: 7, body: {a: 1}}", "the body is of the type text/csv and must be a text, got an object"},
		{"put", "{n: 7, tenant: 'evil.example/'}", "the variable \"tenant\" of the server must have letters, digits, dots, hyphens, " +
			"underscores and tildes only, got \"evil.example/\""},
		{"patch", "{n: 7, a: [x, y], b: [x, y], c: 1}", "PATCH " + address +
			"Content-Type: application/x-www-form-urlencoded\n{\"a\":[\"x\",\"y\"],\"b\":\"x|y\",\"c\":1}"},
		{"patch", "{n: 7, a: {b: c}}",
			"the body is a form, whose field \"a\" must be a text, a number, a boolean or a list of them"},
		{"delete", "{n: 7, body: abc}", "DELETE " + address + "Content-Type: application/octet-stream\n\"abc\""},
	} {
		require.Equal(t, tt.want, request(t, operation(t, typed, tt.id), tt.given), "%s %s", tt.id, tt.given)
	}
}

func TestSecretsAreTextsOfTheirOwn(t *testing.T) {
	t.Parallel()
	s := openapi.Secret{Value: "s"}
	r, _, err := operation(t, typed, "get").Request(map[string]any{"n": s, "name": s, "X-Trace": s}, 1000)
	require.NoError(t, err)
	require.Equal(t, "GET https://s/issues/<s>\n? name=<s>\nX-Trace: <s>", show(r))
	r, _, err = operation(t, typed, "post").Request(map[string]any{"n": 1, "title": s}, 1000)
	require.NoError(t, err)
	require.Equal(t, map[string]any{"title": s}, r.Body)
	for name, v := range map[string]any{"filter": s, "ids": []any{s}} {
		_, _, err = operation(t, typed, "get").Request(map[string]any{"n": 1, name: v}, 1000)
		require.ErrorContains(t, err, "secret", name)
	}
}

func TestAddressesOfServers(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"openapi: 3.0.3":                                   "https://example.com/a",
		"openapi: 3.0.3\nservers: [{url: v1}]":             "https://example.com/api/v1/a",
		"openapi: 3.0.3\nservers: [{url: /v1/}]":           "https://example.com/v1/a",
		"openapi: 3.0.3\nservers: [{url: '//other/v1'}]":   "https://other/v1/a",
		"swagger: '2.0'":                                   "https://example.com/a",
		"swagger: '2.0'\nbasePath: /v2":                    "https://example.com/v2/a",
		"swagger: '2.0'\nhost: other":                      "https://other/a",
		"swagger: '2.0'\nhost: other\nschemes: [ws, http]": "http://other/a",
		"openapi: 3.0.3\nservers: [{url: 'ftp://a'}]":      "the scheme \"ftp\": only http and https",
		"openapi: 3.0.3\nservers: [{url: 'http://a:b@c'}]": "has a user in its address",
		"openapi: 3.0.3\nservers: [{url: 'http://{a}'}]":   "the variable \"a\", which is not described",
	} {
		o, err := read(t, text+"\npaths: {/a: {get: {operationId: a}}}").Operation("a")
		if err != nil {
			require.ErrorContains(t, err, want, text)
			continue
		}
		require.Equal(t, "GET "+want, request(t, o, "{}"), text)
	}
}

func TestOperationsOfOtherTexts(t *testing.T) {
	t.Parallel()
	d := readAt(t, "openapi: 3.1.0\nservers: [{url: 'https://s'}]\npaths: {/a: {$ref: 'paths/a.yaml'}, /b: {$ref: 'paths/b.yaml#/b'}}",
		"api/openapi.yaml", func(uri string) ([]byte, error) {
			switch uri {
			case "api/paths/a.yaml":
				return []byte(`{"get": {"operationId": "a", "parameters": [{"$ref": "../shared.yaml#/p"}]}}`), nil
			case "api/paths/b.yaml":
				return []byte(`{"b": {"get": {"operationId": "b"}}}`), nil
			case "api/shared.yaml":
				return []byte(`{"p": {"name": "p", "in": "query", "schema": {"$ref": "#/q"}}, "q": {"type": "integer"}}`), nil
			}
			return noTexts(uri)
		})
	for id, want := range map[string]string{"a": "GET https://s/a?p=1", "b": "GET https://s/b?p=1"} {
		o, err := d.Operation(id)
		require.NoError(t, err)
		if id == "b" {
			require.Equal(t, "GET https://s/b", request(t, o, "{}"))
			continue
		}
		require.Equal(t, want, request(t, o, "{p: '1'}"))
	}
}

// TestHostileDescriptions has what took a reader without bounds forever, or ended it.
func TestHostileDescriptions(t *testing.T) {
	t.Parallel()
	self := strings.Repeat("{$ref: '#/components/schemas/A'}, ", 200)
	for name, text := range map[string]string{
		"a schema of itself":       "components: {schemas: {A: {$ref: '#/components/schemas/A'}}}",
		"all of itself":            "components: {schemas: {A: {allOf: [" + self + "]}}}",
		"properties of itself":     "components: {schemas: {A: {type: object, properties: {a: {$ref: '#/components/schemas/A'}}}}}",
		"a list of itself":         "components: {schemas: {A: {type: array, items: {$ref: '#/components/schemas/A'}}}}",
		"no components":            "security: [{none: []}]",
		"a target of no schema":    "components: {schemas: {A: 1}}",
		"a path without an end":    "components: {schemas: {A: {$ref: '#/components/schemas/A/properties/a/properties/a'}}}",
		"a schema of an operation": "components: {schemas: {A: {$ref: '#/paths/~1a/post/requestBody'}}}",
	} {
		d := read(t, "openapi: 3.1.0\n"+text+`
paths:
  /a:
    post:
      operationId: a
      parameters: [{name: p, in: query, schema: {$ref: '#/components/schemas/A'}}]
      requestBody: {content: {application/json: {schema: {$ref: '#/components/schemas/A'}}}}
`)
		o, err := d.Operation("a")
		if err != nil {
			require.ErrorContains(t, err, "cannot be read", name)
			continue
		}
		_ = request(t, o, "{p: 1, body: {}}")
	}
}
