package interp_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/interp"
)

const goFunctions = `
use:
  functions:
    price:
      input: {schema: {document: {type: object, required: [n]}}}
      call: go
      with: {program: pricing, function: price, version: 1.0.0, signature: 'sha256:0000000000000000000000000000000000000000000000000000000000000000'}
      output: {schema: {document: {type: integer}}}
    tax: {call: go, with: {program: pricing, function: tax, version: 2.0.0, idempotent: true, input: '${ .n }'}}
    outer: {call: price, metadata: {signalbox.repeat: allowed}}
`

func TestGoFunctionIsRequestedWithItsInput(t *testing.T) {
	t.Parallel()
	w := newDriver(t, document(goFunctions+`
do:
  - one: {call: price, with: {n: '${ .n + 1 }'}, timeout: {after: {seconds: 30}}, output: {as: '{n: .}'}}
  - two: {call: tax}
  - three: {set: {out: '${ . }'}}`), `{"n": 5}`)
	w.ended = interp.Result{Value: 7}
	w.completes(`{"out": 7}`)
	require.Len(t, w.functions, 2)
	price, tax := w.functions[0], w.functions[1]
	require.Equal(t, "pricing price 1.0.0", price.Program+" "+price.Function+" "+price.Version)
	require.NotEmpty(t, price.Signature)
	require.Equal(t, map[string]any{"n": 6}, price.Input)
	require.False(t, price.Deadline.IsZero())
	require.True(t, price.Once, "it may have effects")
	require.Equal(t, 7, tax.Input)
	require.False(t, tax.Once, "it is idempotent")
	require.NotEqual(t, price.Key, tax.Key)
}

// The task that calls the definition of a function decides whether it is executed again.
func TestCallerOfAGoFunctionDecidesOnRepetition(t *testing.T) {
	t.Parallel()
	for task, once := range map[string]bool{
		`{call: price, with: {n: 1}, metadata: {signalbox.repeat: allowed}}`: false,
		`{call: price, with: {n: 1}, metadata: {signalbox.repeat: never}}`:   true,
		`{call: tax, metadata: {signalbox.repeat: never}}`:                   true,
		`{call: outer}`: false,
		`{call: outer, metadata: {signalbox.repeat: never}}`: true,
	} {
		w := newDriver(t, document(goFunctions+"\ndo: [{a: "+task+"}]"), `{"n": 1}`)
		w.ended = interp.Result{Value: 1}
		w.completes(`1`)
		require.Len(t, w.functions, 1)
		require.Equal(t, once, w.functions[0].Once, task)
	}
}

// The schemas of a function are those of its definition. An error has the instance of the call.
func TestGoFunctionIsCheckedByItsSchemas(t *testing.T) {
	t.Parallel()
	w := newDriver(t, document(goFunctions+"\ndo: [{a: {call: price, with: {m: 1}}}]"), `{}`)
	failed := w.fails()
	require.Equal(t, dsl.ErrorTypeValidation+" at /do/0/a", failed.Type+" at "+failed.Instance)
	require.Empty(t, w.functions)

	w = newDriver(t, document(goFunctions+"\ndo: [{a: {call: price, with: {n: 1}}}]"), `{}`)
	w.ended = interp.Result{Value: "text"}
	failed = w.fails()
	require.Equal(t, dsl.ErrorTypeValidation+" at /do/0/a", failed.Type+" at "+failed.Instance)
}
