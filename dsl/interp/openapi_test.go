package interp_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/interp"
)

const description = `
openapi: 3.0.3
servers: [{url: 'https://{region}.shop/v1', variables: {region: {default: eu, enum: [eu, us]}}}]
paths:
  /orders/{id}:
    parameters: [{name: id, in: path, required: true, schema: {type: integer, minimum: 1}}]
    put:
      operationId: putOrder
      parameters:
        - {name: tags, in: query, schema: {type: array, items: {type: string}}}
        - {name: key, in: query, schema: {type: string, maxLength: 3}}
        - {name: X-Trace, in: header, schema: {type: string}}
        - {name: session, in: cookie, schema: {type: string}}
      requestBody:
        content: {application/json: {schema: {$ref: '#/components/schemas/Order'}}}
components:
  schemas:
    Order:
      required: [sku, id]
      properties:
        id: {type: integer, readOnly: true}
        sku: {type: string}
        quantity: {type: integer, minimum: 0, exclusiveMinimum: true, nullable: true}
        part: {nullable: true, allOf: [{$ref: '#/components/schemas/Order'}]}
`

// describedDriver returns the driver of a document that refers to the description.
func describedDriver(t *testing.T, source, input string) *driver {
	t.Helper()
	resources := dsl.NewResources()
	resources.Add("https://shop/openapi.yaml", []byte(description))
	doc, violations := dsl.Parse([]byte(document(source)), dsl.WithResources(resources))
	require.False(t, violations.HasErrors(), violations)
	w := &driver{t: t, doc: doc, now: epoch, limits: interp.DefaultLimits(), steps: map[int64]interp.StepRecord{}}
	w.m = interp.New(doc, interp.Start{RunID: "run-1", Input: value(t, input), At: epoch}, w.limits)
	w.origin = func(interp.Call) answer { return ok("done") }
	return w
}

func TestOpenAPICallsAreRequests(t *testing.T) {
	t.Parallel()
	w := describedDriver(t, `
use: {secrets: [token]}
do:
  - put:
      call: openapi
      with:
        document: {endpoint: 'https://shop/openapi.yaml'}
        operationId: putOrder
        parameters:
          id: '${ .id }'
          tags: '${ .tags }'
          key: '${ $secrets.token }'
          X-Trace: '${ "t-" + $secrets.token }'
          session: '${ .none }'
          region: us
          sku: '${ .sku }'
          quantity: null
          part: null
        authentication: {bearer: {token: '${ $secrets.token }'}}
        output: response
        redirect: true
`, `{"id": "7", "tags": ["a b", "c"], "sku": "x"}`)
	w.completes(`"done"`)
	require.Equal(t, &interp.HTTPRequest{
		Method: "PUT", URL: "https://us.shop/v1/orders/7?tags=a%20b&tags=c",
		Query:   map[string]string{"key": "⟦secrets.token⟧"},
		Headers: map[string]string{"Content-Type": "application/json", "X-Trace": "t-⟦secrets.token⟧"},
		Body:    map[string]any{"sku": "x", "quantity": nil, "part": nil}, HasBody: true,
		Output: dsl.OutputResponse, Redirect: true,
		Authentication: &interp.Authentication{Scheme: dsl.AuthBearer,
			Properties: map[string]any{"token": "⟦secrets.token⟧"}},
		Secrets: map[string]dsl.Secret{"⟦secrets.token⟧": {Name: "token", Members: []string{}}},
	}, w.calls[0].HTTP)
	require.Equal(t, 1, w.step("/do/0/put").Attempt)
}

func TestArgumentsThatDoNotMatchAreNotSent(t *testing.T) {
	t.Parallel()
	const call = `
do:
  - put:
      call: openapi
      with:
        document: {endpoint: 'https://shop/openapi.yaml'}
        operationId: putOrder
        parameters: {id: '${ .id }', key: '${ .key }', region: '${ .region }', body: '${ .body }'}
`
	for input, want := range map[string]string{
		`{}`:        `the path parameter "id" is missing`,
		`{"id": 0}`: `the path parameter "id" does not match its schema: minimum: got 0, want 1`,
		`{"id": 0, "key": "long", "region": "eu.evil/", "body": {"part": {"quantity": 0}}}`: `the variable "region" of the ` +
			`server must be one of eu, us, got "eu.evil/"; ` +
			`the path parameter "id" does not match its schema: minimum: got 0, want 1; ` +
			`the query parameter "key" does not match its schema: maxLength: got 4, want 3; ` +
			`the body does not match its schema: missing property 'sku'; "/part": got object, want null; "/part": missing property 'sku'; ` +
			`"/part/quantity": exclusiveMinimum: got 0, want 0`,
	} {
		w := describedDriver(t, call, input)
		got := w.fails()
		require.Equal(t, dsl.Error{Type: dsl.ErrorTypeValidation, Status: 400, Title: got.Title, Instance: "/do/0/put",
			Detail: `the arguments of the operation "putOrder" do not match its description: ` + want}, got)
		require.Empty(t, w.calls)
	}
}

func TestChecksOfArgumentsAreBounded(t *testing.T) {
	t.Parallel()
	w := describedDriver(t, `
do:
  - put:
      call: openapi
      with:
        document: {endpoint: 'https://shop/openapi.yaml'}
        operationId: putOrder
        parameters: {id: 1, tags: '${ [range(5000) | "x"] }'}
`, `{}`)
	w.limits.ExpressionFuel = 40_000
	w.m = interp.New(w.doc, interp.Start{RunID: "run-1", Input: value(t, `{}`), At: epoch}, w.limits)
	got := w.fails()
	require.Equal(t, dsl.ErrorTypeExpression, got.Type)
	require.Contains(t, got.Detail, `the query parameter "tags" cannot be checked: a check against the schema may take more`)
	require.Empty(t, w.calls)
}
