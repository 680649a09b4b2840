package dsl_test

import (
	"errors"
	"fmt"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/jq"
)

const order = `
document: {dsl: 1.0.3, namespace: shop, name: order, version: 1.0.0}
do:
  - total: {set: {cents: '${ [.items[].cents] | add }'}}
`

// A valid definition is parsed into an immutable document. Its hash identifies the content, in any spelling.
func ExampleParse() {
	doc, violations := dsl.Parse([]byte(order))
	if violations.HasErrors() {
		fmt.Println(violations)
		return
	}
	fmt.Println(doc.Namespace, doc.Name, doc.Version)
	for _, task := range doc.Do {
		fmt.Println(task.Pointer, task.Body.Kind())
	}
	// Output:
	// shop order 1.0.0
	// /do/0/total set
}

// An invalid definition has no document. All of its violations are reported at once.
func ExampleViolations() {
	_, violations := dsl.Parse([]byte(`
document: {dsl: 1.0.3, namespace: shop, name: order, version: 1.0.0}
do:
  - first: {set: {total: '${ .a + $inptu }'}, thne: end}
`))
	for _, p := range violations {
		fmt.Printf("%d:%d %s: %s\n", p.Pos.Line, p.Pos.Column, p.Code, p.Suggestion)
	}
	// Output:
	// 4:35 unknown_variable: did you mean "input"?
	// 4:47 unknown_key: did you mean "then"?
}

// A template is evaluated on an input within a budget of compute.
func ExampleTemplate_Eval() {
	doc, _ := dsl.Parse([]byte(order))
	value := doc.Do[0].Body.(*dsl.Set).Value

	input, err := jq.DecodeJSON([]byte(`{"items": [{"cents": 250}, {"cents": 199}]}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	out, err := value.Eval(input, nil, jq.NewFuel(10_000))
	fmt.Println(out, err)
	// Output: map[cents:449] <nil>
}

// A schema is checked within a budget of compute; the error lists the violations by JSON pointer.
func ExampleSchema_Check() {
	doc, _ := dsl.Parse([]byte(`
document: {dsl: 1.0.3, namespace: shop, name: order, version: 1.0.0}
input: {schema: {document: {type: object, required: [id], properties: {id: {type: string}}}}}
do:
  - done: {set: {ok: true}}
`))
	_, err := doc.Input.Schema.Check(map[string]any{"id": 7}, jq.DefaultFuel)
	if invalid, ok := errors.AsType[*dsl.SchemaError](err); ok {
		for _, v := range invalid.Violations {
			fmt.Println(v.Pointer, v.Keyword)
		}
	}
	// Output: /id type
}

// The identity of a definition can be read even if the rest of it is invalid.
func ExampleIdentify() {
	id, ok := dsl.Identify([]byte(`{document: {namespace: shop, name: order, version: 1.0.0}, do: wrong}`))
	fmt.Println(id.Namespace, id.Name, id.Version, ok)
	// Output: shop order 1.0.0 true
}

// The specification has had several forms of the types of its standard errors. They are equal.
func ExampleSameErrorType() {
	fmt.Println(dsl.SameErrorType(dsl.ErrorTypeTimeout, "https://serverlessworkflow.io/spec/1.0.0/errors/timeout"))
	fmt.Println(dsl.SameErrorType(dsl.ErrorTypeTimeout, "https://example.com/errors/timeout"))
	// Output:
	// true
	// false
}

// Names in a URI template are top-level members of the input.
func ExampleExpandURI() {
	uri, err := dsl.ExpandURI("https://shop.example/orders/{id}/lines{?page}", map[string]any{"id": "a b", "page": 2})
	fmt.Println(uri, err)
	// Output: https://shop.example/orders/a%20b/lines?page=2 <nil>
}
