package workflowtest_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

const priced = header + `
use: {functions: {price: {call: go, with: {program: pricing, function: price, version: 1.0.0}, output: {schema: {document: {type: integer}}}}}}
do:
  - amount: {call: price, with: {n: '${ .n }'}, timeout: {after: {seconds: 5}}}
`

func TestGoFunctionsAreMocked(t *testing.T) {
	t.Parallel()
	require.Empty(t, explain(t, priced, `
cases:
  - name: small
    input: {n: 2}
    mocks: [{task: price, when: '.function == "price" and .input.n == 2', respond: {output: 7, delay: {seconds: 1}}}]
    expect: {output: 7, duration: {seconds: 1}}
  - name: sold out
    input: {n: 3}
    mocks: [{task: price, respond: {fail: {type: 'https://example.com/sold-out', status: 409}}}]
    expect: {error: {type: 'https://example.com/sold-out', status: 409, instance: /do/0/amount}}
  - name: wrong answer
    input: {n: 3}
    mocks: [{task: price, respond: {output: text}}]
    expect: {error: {type: validation, status: 400}}
`))
	require.Contains(t, explain(t, priced, "cases: [{name: a, input: {n: 2}, expect: {output: 7}}]\n"),
		"no mock answers the Go function price:1.0.0 that the task \"price\" calls\n  with the input {\"n\":2}")
}

// A source that only the run knows is a request, and the script is executed.
func TestSourcesThatOnlyTheRunKnowsAreMocked(t *testing.T) {
	t.Parallel()
	require.Empty(t, explain(t, header+`
do:
  - add: {run: {script: {language: js, source: {endpoint: '${ "https://code.example/" + .file }'}}}}
`, `
cases:
  - name: reads it
    input: {file: a.js}
    mocks: [{task: add, when: '.url == "https://code.example/a.js"', respond: {body: console.log(7), headers: {Content-Type: text/javascript}}}]
    expect: {output: "7\n"}
`))
}

// A schema that only the run knows is a request of its task, beside that of a call.
func TestSchemasThatOnlyTheRunKnowsAreMocked(t *testing.T) {
	t.Parallel()
	const doc = header + `
do:
  - order:
      call: http
      with: {method: post, endpoint: 'https://shop.example/orders', body: '${ . }'}
      output: {schema: {resource: {endpoint: '${ "https://schemas.example/" + .kind }'}}}
`
	require.Empty(t, explain(t, doc, `
mocks:
  - {task: order, when: '.method == "POST"', respond: {body: {kind: made}}}
  - {task: order, when: '.url == "https://schemas.example/made"', respond: [{body: {required: [kind]}}, {body: {required: [id]}}]}
cases:
  - {name: matches, input: {}, expect: {output: {kind: made}, requests: [{method: POST}, {method: GET}]}}
`))
	require.Contains(t, explain(t, doc, `
mocks: [{task: order, when: '.method == "POST"', respond: {body: {kind: made}}}]
cases: [{name: lacks it, input: {}, expect: {output: {kind: made}}}]
`), `no mock answers the request of the task "order": GET https://schemas.example/made`)
}
