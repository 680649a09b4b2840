package dsl_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dsl"
)

const labelled = `
document:
  dsl: '1.0.3'
  namespace: shop
  name: order
  version: '1.0.0'
  metadata:
    labels:
      order: ${ .order.id }
      team: payments
      region: ${ $input.region // "eu" }
do:
  - note: {set: {n: 1}}
`

func TestLabelsOfADocument(t *testing.T) {
	t.Parallel()
	doc, violations := dsl.Parse([]byte(labelled))
	require.Empty(t, violations)
	values := map[string]any{}
	for _, l := range doc.Labels {
		value, err := l.Eval(map[string]any{"order": map[string]any{"id": 4711}}, nil)
		require.NoError(t, err)
		values[l.Key] = value
	}
	require.Equal(t, map[string]any{"order": 4711, "team": "payments", "region": "eu"}, values)
	_, err := doc.Labels[0].Eval("text", nil)
	require.ErrorContains(t, err, "expected an object")
}
