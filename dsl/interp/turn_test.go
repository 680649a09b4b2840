package interp_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/interp"
)

// manyConditions is a task with conditions that each use much compute, and together more than the budget of one turn.
func manyConditions() string {
	return `{s: {switch: [` + strings.Repeat(`{x: {when: '([range(100000)] | length) > 200000', then: end}}, `, 1) +
		cases(40) + `{d: {then: continue}}]}}`
}

func cases(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(`{c` + strings.Repeat("x", i) + `: {when: '([range(100000)] | length) > 200000', then: end}}, `)
	}
	return b.String()
}

func TestExpressionsOfOneTurnShareABudget(t *testing.T) {
	t.Parallel()
	w := newDriver(t, document(`do: [`+manyConditions()+`]`), `{}`)
	runError := w.fails()
	require.Equal(t, dsl.ErrorTypeExpression, runError.Type)
	require.Contains(t, runError.Detail, "compute budget")
	require.Less(t, w.m.Spent(), 2*w.limits.ExpressionFuel)

	w = newDriver(t, document(`do: [{t: {try: [`+manyConditions()+
		`], catch: {when: $error.status == 400, do: [{h: {set: {caught: true}}}]}}}]`), `{}`)
	w.completes(`{"caught": true}`)
}

func TestCheckAgainstASchemaIsBounded(t *testing.T) {
	t.Parallel()
	rest := `
input: {schema: {document: {type: object, properties: {s: {allOf: [` + strings.Repeat(`{pattern: '(a*)*b'}, `, 300) + `{type: string}]}}}}}
do: [{a: {set: {x: 1}}}]`
	w := newDriver(t, document(rest), `{}`)
	w.m = interp.New(w.doc, interp.Start{
		RunID: "r", Input: map[string]any{"s": strings.Repeat("a", 2_000_000)}, At: epoch}, w.limits)
	runError := w.fails()
	require.Equal(t, dsl.ErrorTypeExpression, runError.Type)
	require.Contains(t, runError.Detail, "units of compute")
}

// TestRecursiveSchemaIsBounded has a check that would never end.
func TestRecursiveSchemaIsBounded(t *testing.T) {
	t.Parallel()
	const schema = `{$ref: '#/$defs/n', $defs: {n: {anyOf: [{type: array, items: {$ref: '#/$defs/n'}}, {type: array, items: {$ref: '#/$defs/n'}}, {type: string}]}}}`
	task := `{a: {set: '${ reduce range(60) as $i (1; [.]) }', output: {schema: {document: ` + schema + `}}}}`
	runError := newDriver(t, document(`do: [`+task+`]`), `{}`).fails()
	require.Equal(t, dsl.ErrorTypeExpression, runError.Type)
	require.Contains(t, runError.Detail,
		"the task's output cannot be checked: a check against the schema may take more than")

	w := newDriver(t, document(`do: [{t: {try: [`+task+`], catch: {do: [{h: {set: {caught: true}}}]}}}]`), `{}`)
	w.completes(`{"caught": true}`)
	require.Less(t, w.m.Spent(), 2*w.limits.ExpressionFuel)
}
