package dsl_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/jq"
)

func TestExpressionsOutsideDocuments(t *testing.T) {
	t.Parallel()
	for _, source := range []string{".a + $context.b", "${ .a + $context.b }"} {
		e, violations := dsl.ParseExpr(source, []string{"context"})
		require.Empty(t, violations)
		v, err := e.Eval(map[string]any{"a": 1}, map[string]any{"context": map[string]any{"b": 2}}, jq.NewFuel(1000))
		require.NoError(t, err)
		require.Equal(t, 3, v)
	}
	for source, want := range map[string]string{
		".a + $contxt":    `1:6: unknown_variable: there is no variable $contxt here; did you mean "context"?`,
		".a | upcase":     "1:6: expression:",
		".a +":            "expression: the expression does not compile",
		"${ .a + $cont }": "1:9: unknown_variable:",
	} {
		e, violations := dsl.ParseExpr(source, []string{"context"})
		require.Nil(t, e, source)
		require.Contains(t, violations.Error(), want, source)
	}
}

func TestTemplatesOutsideDocuments(t *testing.T) {
	t.Parallel()
	template, violations := dsl.ParseTemplate([]byte("{a: '${ .x }', b: [1, text]}"), nil)
	require.Empty(t, violations)
	v, err := template.Eval(map[string]any{"x": 5}, nil, jq.NewFuel(1000))
	require.NoError(t, err)
	require.Equal(t, map[string]any{"a": 5, "b": []any{1, "text"}}, v)
	for source, want := range map[string]string{"a: '${ .x | }'": "1:", "a: [": "syntax"} {
		template, violations := dsl.ParseTemplate([]byte(source), nil)
		require.Nil(t, template)
		require.Contains(t, violations.Error(), want)
	}
}
