package dsl_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dsl"
)

const orders = `
openapi: 3.1.0
servers: [{url: /v1}]
components:
  securitySchemes: {token: {type: http, scheme: bearer}, key: {type: apiKey, in: query, name: api_key}}
  schemas: {Order: {$ref: 'schemas.yaml#/Order'}}
paths:
  /orders/{id}:
    parameters: [{name: id, in: path, required: true, schema: {type: integer, minimum: 1}}]
    get:
      operationId: getOrder
      parameters:
        - {name: expand, in: query, schema: {type: array, items: {enum: [lines, customer]}}}
        - {name: pattern, in: query, schema: {type: string, pattern: '^(?!a)'}}
    put:
      operationId: putOrder
      security: [{token: []}, {key: []}]
      requestBody: {required: true, content: {application/json: {schema: {$ref: '#/components/schemas/Order'}}}}
  /broken:
    get: {operationId: getBroken, parameters: [{name: x, in: body}]}
  /again: {get: {operationId: twice}, post: {operationId: twice}}
`

const schemas = `
Order: {type: object, required: [sku], additionalProperties: false, properties: {sku: {type: string}, quantity: {type: integer}}}
`

// calling returns a document with one call of an operation.
func calling(with string) string {
	return referring + "use: {secrets: [s]}\ndo:\n  - a:\n      call: openapi\n      with:\n        document: {endpoint: 'https://shop.example/api/orders.yaml'}\n" +
		"        " + strings.ReplaceAll(strings.TrimSpace(with), "\n", "\n        ") + "\n"
}

func shop() map[string]string {
	return map[string]string{
		"https://shop.example/api/orders.yaml": orders, "https://shop.example/api/schemas.yaml": schemas,
	}
}

func TestOperationsAreComparedWithTheirDescription(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ with, want string }{
		{"operationId: getOrders\nparameters: {id: 1}", `8:22: unknown_reference: https://shop.example/api/orders.yaml: ` +
			`the description has no operation "getOrders" (at /do/0/a/with/operationId); did you mean "getOrder"?`},
		{"operationId: ${ .x }", "must be a literal"},
		{"operationId: getOrder", `missing_key: the path parameter "id" is missing (at /do/0/a/with)`},
		{"operationId: getOrder\nparameters: {id: 0}", `9:26: value: the path parameter "id" does not match its schema: ` +
			`minimum: got 0, want 1 (at /do/0/a/with/parameters/id)`},
		{"operationId: getOrder\nparameters: {id: x}", `the path parameter "id" does not match its schema: got string, want integer`},
		{"operationId: getOrder\nparameters: {id: 1, expnd: lines}",
			`the operation "getOrder" has no parameter "expnd" (at /do/0/a/with/parameters/expnd); did you mean "expand"?`},
		{"operationId: getOrder\nparameters: {id: 1, expand: line}", `value must be one of 'lines', 'customer'`},
		{"operationId: putOrder\nparameters: {id: 1}", "the body is missing: its members are arguments (quantity, sku)"},
		{"operationId: putOrder\nparameters: {id: 1, quantity: '${ .q }'}", `the member "sku" of the body is missing`},
		{"operationId: putOrder\nparameters: {id: 1, sku: a, color: red}", `additional properties 'color' not allowed`},
		{"operationId: putOrder\nparameters: {id: 1, body: {sku: 1}}",
			`the body does not match its schema: "/sku": got number, want string (at /do/0/a/with/parameters/body)`},
		{"operationId: getBroken", `the parameter "x" has the unknown location "body"`},
		{"operationId: twice", `has the operation "twice" twice: GET /again and POST /again`},
		{"operationId: getOrder\nparameters: {id: '${ $secrets.t }'}", `the secret "t" is not declared`},
		{"operationId: getOrder\nparameters: {id: 1}\noutput: body", "the output of a call must be one of raw, content, response"},
		{"operationId: getOrder\nparameter: {id: 1}", `did you mean "parameters"?`},
	} {
		requireViolation(t, tt.want, calling(tt.with), shop())
	}
	for uri, want := range map[string]string{
		"openapi: 3.2.0":                         `the version "3.2.0" of descriptions is not supported: 2.0, 3.0 and 3.1 are`,
		"openapi: 2.0":                           "is not supported",
		"swagger: '1.2'":                         "is not supported",
		"[]":                                     "a description must be an object",
		"asyncapi: 3.0.0":                        "neither openapi nor swagger",
		"openapi: 3.0.0\npaths: {/a: {get: {}}}": `no operation "getOrder"`,
		"openapi: [":                             "orders.yaml:1:",
	} {
		requireViolation(t, want, calling("operationId: getOrder"), map[string]string{"https://shop.example/api/orders.yaml": uri})
	}
}

func TestDescriptionsReferToOtherTexts(t *testing.T) {
	t.Parallel()
	source := calling("operationId: putOrder\nparameters: {id: 1, sku: '${ .sku }', api_key: '${ $secrets.s }'}")
	_, violations, missing := parseWith(source, nil)
	require.True(t, violations.HasErrors())
	require.Equal(t, []string{"web https://shop.example/api/orders.yaml"}, missing)
	files := map[string]string{"https://shop.example/api/orders.yaml": orders}
	_, violations, missing = parseWith(source, files)
	require.True(t, violations.HasErrors())
	require.Equal(t, []string{"web https://shop.example/api/schemas.yaml"}, missing)
	doc := requireValid(t, source, shop())
	require.Len(t, doc.Resources, 2)

	local := strings.ReplaceAll(source, "https://shop.example/", "")
	absolute := strings.Replace(orders, "/v1", "https://shop.example/v1", 1)
	requireValid(t, local, map[string]string{"api/orders.yaml": absolute, "api/schemas.yaml": schemas})
	requireViolation(t, `the server "/v1" has no host`, local, map[string]string{"api/orders.yaml": orders, "api/schemas.yaml": schemas})
	outside := strings.ReplaceAll(absolute, "schemas.yaml", "../../schemas.yaml")
	requireViolation(t, "is outside the folder of the document", local, map[string]string{"api/orders.yaml": outside})
	foreign := strings.ReplaceAll(absolute, "schemas.yaml", "file:///etc/passwd")
	requireViolation(t, `has the scheme "file"`, local, map[string]string{"api/orders.yaml": foreign})
}

func TestCallsWithoutRequiredAuthenticationAreWarnings(t *testing.T) {
	t.Parallel()
	for more, warned := range map[string]bool{
		"": true, "authentication: {bearer: {token: '${ $secrets.s }'}}": false,
		"authentication: {basic: {username: u, password: '${ $secrets.s }'}}": true,
	} {
		doc, violations, _ := parseWith(calling("operationId: putOrder\nparameters: {id: 1, sku: a}\n"+more), shop())
		require.NotNil(t, doc, violations)
		require.Equal(t, warned, strings.Contains(violations.Error(),
			`the operation "putOrder" requires bearer, or the argument "api_key", which the call does not have`), more)
	}
	doc, violations, _ := parseWith(calling("operationId: getOrder\nparameters: {id: 1}"), shop())
	require.NotNil(t, doc)
	require.Contains(t, violations.Error(), "which is not checked", "Go has no look-ahead")
}

func TestCallsOfPostponedDescriptions(t *testing.T) {
	t.Parallel()
	resources := dsl.NewResources()
	resources.Postpone("https://shop.example/api/orders.yaml")
	doc, violations := dsl.Parse([]byte(calling("operationId: getOrder")), dsl.WithResources(resources))
	require.False(t, violations.HasErrors())
	require.True(t, doc.Partial)
	call := doc.Do[0].Body.(*dsl.OpenAPICall)
	require.Equal(t, "getOrder", call.Operation)
	_, _, err := call.Request(nil, 1000)
	require.ErrorContains(t, err, "was not read")
}

func TestSchemasOfThemselvesAreBounded(t *testing.T) {
	t.Parallel()
	self := strings.Repeat("{$ref: '#/components/schemas/A'}, ", 200)
	for name, schema := range map[string]string{
		"a reference to itself": "{$ref: '#/components/schemas/A'}", "all of itself": "{allOf: [" + self + "]}",
		"one of itself": "{oneOf: [" + self + "]}", "properties": "{properties: {a: {anyOf: [" + self + "]}}}",
		"a list": "{type: array, items: {anyOf: [" + self + "]}}",
	} {
		resources := dsl.NewResources()
		resources.Add("https://shop.example/api/orders.yaml", []byte(`
openapi: 3.1.0
components: {schemas: {A: `+schema+`}}
paths:
  /a:
    post:
      operationId: a
      requestBody: {content: {application/json: {schema: {$ref: '#/components/schemas/A'}}}}
`))
		doc, _ := dsl.Parse([]byte(calling("operationId: a\nparameters: {body: '${ .x }'}")), dsl.WithResources(resources))
		if doc == nil {
			continue
		}
		body := any(map[string]any{})
		for range 40 {
			body = map[string]any{"a": body}
		}
		for _, v := range []any{body, []any{[]any{[]any{1}}}, 1} {
			_, units, err := doc.Do[0].Body.(*dsl.OpenAPICall).Request(map[string]any{"body": v}, 200_000)
			require.LessOrEqual(t, units, int64(200_000), "%s: %v", name, err)
		}
	}
}
