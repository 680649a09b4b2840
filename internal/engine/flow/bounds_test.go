package flow_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A value over the limit is an error of its task, and no command is issued for it. A loop over such tasks ends its
// workflow tasks.
func TestValuesOverTheLimitAreErrorsOfTheirTasks(t *testing.T) {
	t.Parallel()
	for name, task := range map[string]string{
		"emit":    "{emit: {event: {with: {type: large, data: {v: '${ .v }', w: '${ .w }'}}}}}",
		"request": "{call: http, with: {method: post, endpoint: 'http://origin/', body: {v: '${ .v }', w: '${ .w }'}}}",
		"safe":    "{call: http, with: {method: get, endpoint: 'http://origin/', query: {v: '${ .v }', w: '${ .w }'}}}",
		"listen": "{listen: {to: {one: {with: {type: a}, correlate: {k: {from: .data, expect: '${ .v }'}, l: {from: " +
			".data, expect: '${ .w }'}}}}}}",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newTestRun(t, `
do:
  - make: {set: {v: '${ "a" * 600 }', w: '${ "b" * 600 }'}}
  - attempt:
      try: [{send: `+task+`}]
      catch: {errors: {with: {status: 413}}, as: e, do: [{note: {set: {caught: '${ $e }'}}}]}`, ``)
			b.limits.ValueBytes = 1000
			output, err := b.run()
			require.NoError(t, err)
			require.Contains(t, string(output), "more than the limit of 1000")
			require.Contains(t, string(output), "Value too large")
			require.Empty(t, b.requests)
			require.Empty(t, b.emits)
			require.Empty(t, b.listens)
		})
	}
}

// The data that one workflow task sends is bounded: the next one sends the rest.
func TestWorkflowTaskThatSendsMuchEnds(t *testing.T) {
	t.Parallel()
	b := newTestRun(t, `
do:
  - make: {set: {v: '${ "a" * 600 }'}}
  - all:
      fork:
        branches:
          - a: {emit: {event: {with: {type: large, data: {v: '${ .v }'}}}}}
          - b: {emit: {event: {with: {type: large, data: {v: '${ .v }'}}}}}
          - c: {emit: {event: {with: {type: large, data: {v: '${ .v }'}}}}}
          - d: {emit: {event: {with: {type: large, data: {v: '${ .v }'}}}}}`, ``)
	b.limits.TaskBytes, b.limits.YieldBytes = 1800, 700
	_, err := b.run()
	require.NoError(t, err)
	require.Len(t, b.emits, 4)
	require.Equal(t, 1, b.barriers)
}
