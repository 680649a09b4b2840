package interp_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/interp"
)

const functions = `
use:
  functions:
    double:
      input: {schema: {document: {type: object, required: [n]}}}
      output: {schema: {document: {properties: {n: {type: integer, maximum: 100}}}}}
      set: {n: '${ .n * 2 }', input: '${ $input }'}
    fetch:
      do:
        - get: {call: http, with: {method: get, endpoint: 'https://shop/{id}'}}
        - keep: {set: '${ {got: .} }', export: {as: '$context + {kept: .got}'}}
`

func TestFunctionsAreCalledWithTheirArguments(t *testing.T) {
	t.Parallel()
	w := newDriver(t, document(functions+`
do:
  - first: {call: double, with: {n: '${ .n + 1 }'}, output: {as: '{n: .n}'}, export: {as: '{first: .n}'}}
  - second: {call: double}
  - third: {set: {context: '${ $context }', n: '${ .n }', input: '${ .input }'}}`), `{"n": 4}`)
	w.completes(`{"context": {"first": 10}, "n": 20, "input": {"n": 10}}`)
	require.Equal(t, "double", w.step("/do/0/first/call/double").Task)
	require.Equal(t, interp.StatusCompleted, w.step("/do/0/first").Status)
}

func TestFunctionsMakeCallsOfTheirOwn(t *testing.T) {
	t.Parallel()
	for _, again := range []bool{false, true} {
		w := newDriver(t, document(functions+`
do:
  - loop:
      for: {in: '[1, 2]'}
      do:
        - one: {call: fetch, with: {id: '${ $item }'}}
  - last: {set: {out: '${ . }', kept: '${ $context.kept }'}}`), `{}`)
		w.origin = func(c interp.Call) answer { return ok(c.HTTP.URL) }
		if again {
			w.between = func(w *driver) {
				if w.m.InFlight() == 0 {
					w.restore()
				}
			}
		}
		w.completes(`{"out": {"got": "https://shop/2"}, "kept": "https://shop/2"}`)
		require.Len(t, w.calls, 2)
		require.NotEqual(t, w.calls[0].Key, w.calls[1].Key)
		require.Equal(t, interp.StatusCompleted, w.step("/do/0/loop/for/1/do/0/one/call/fetch/do/0/get").Status)
	}
}

// Errors in a function are those of its call, which a try around the call catches.
func TestErrorsOfFunctionsAreThoseOfTheCall(t *testing.T) {
	t.Parallel()
	w := newDriver(t, document(functions+`
do:
  - first: {call: double, with: {m: 1}}`), `{}`)
	failure := w.fails()
	require.Equal(t, "/do/0/first", failure.Instance)
	require.True(t, dsl.SameErrorType(failure.Type, dsl.ErrorTypeValidation))
	require.Contains(t, failure.Detail, "the task's input does not match its schema")

	w = newDriver(t, document(functions+`
do:
  - first: {call: double, with: {n: 90}}`), `{}`)
	failure = w.fails()
	require.Equal(t, "/do/0/first", failure.Instance)
	require.Contains(t, failure.Detail, "the task's output does not match its schema")

	w = newDriver(t, document(functions+`
do:
  - guarded:
      try:
        - get: {call: fetch, with: {id: 1}}
      catch:
        errors: {with: {instance: /do/0/guarded/try/0/get}}
        retry: {delay: PT1S, limit: {attempt: {count: 1}}}
        do: [{seen: {set: {at: '${ $error.instance }', status: '${ $error.status }'}}}]`), `{}`)
	w.origin = func(interp.Call) answer { return answer{Result: answered(503)} }
	w.completes(`{"at": "/do/0/guarded/try/0/get", "status": 503}`)
	require.Len(t, w.calls, 2)
}
