package dsl

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestUsesOfVariables: a stored filter has the parts of variables that its expressions can read, and no others.
func TestUsesOfVariables(t *testing.T) {
	t.Parallel()
	vars := map[string]any{
		"input":    map[string]any{"a": map[string]any{"b": 1, "c": 2}, "d": 3},
		"context":  []any{1, 2},
		"workflow": map[string]any{"definition": map[string]any{"large": true}, "input": map[string]any{"x": 7}},
	}
	for expression, want := range map[string]map[string]any{
		`. > 1`:                             nil,
		`$input.a.b > $input.d`:             {"input": map[string]any{"a": map[string]any{"b": 1}, "d": 3}},
		`$input.a | .b`:                     {"input": map[string]any{"a": map[string]any{"b": 1, "c": 2}}},
		`$input.a.b + $input.a.c`:           {"input": map[string]any{"a": map[string]any{"b": 1, "c": 2}}},
		`$input.a."b"`:                      {"input": map[string]any{"a": map[string]any{"b": 1, "c": 2}}},
		`{$input}`:                          {"input": vars["input"]},
		`$input["a"]`:                       {"input": vars["input"]},
		`$context[0], $context.x?`:          {"context": []any{1, 2}},
		`$workflow.input.x == $other.input`: {"workflow": map[string]any{"input": map[string]any{"x": 7}}},
		`$input.none.x`:                     {"input": map[string]any{}},
		`$input.d.x?`:                       {"input": map[string]any{"d": 3}},
		`$inputs.a`:                         nil,
	} {
		require.Equal(t, want, usesOf([]string{expression}, []string{"input", "context", "workflow"}).of(vars), expression)
	}
}
