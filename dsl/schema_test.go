package dsl_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/jq"
)

const checkBudget = 1_250_000

func schemaOf(t *testing.T, definition string) *dsl.Schema {
	t.Helper()
	return parse(t, header+"\ninput: {schema: {document: "+definition+"}}\ndo: []\n").Input.Schema
}

// nest puts a value into lists.
func nest(v any, levels int) any {
	for range levels {
		v = []any{v}
	}
	return v
}

// tagged is an object with a child, which has a child, and so on.
func tagged(levels int) any {
	v := map[string]any{"kind": "none"}
	for range levels {
		v = map[string]any{"kind": "none", "child": v}
	}
	return v
}

func numbers(n int) any {
	out := make([]any, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// chainOfPairs is a schema in which each of n parts refers twice to the next: 2 to the power of n checks of any value.
func chainOfPairs(n int) string {
	var b strings.Builder
	b.WriteString(`{$ref: '#/$defs/p0', $defs: {`)
	for i := range n {
		fmt.Fprintf(&b, `p%d: {allOf: [{$ref: '#/$defs/p%d'}, {$ref: '#/$defs/p%d'}]}, `, i, i+1, i+1)
	}
	fmt.Fprintf(&b, `p%d: {type: integer}}}`, n)
	return b.String()
}

// TestChecksThatMayTakeTooLongAreRefused has checks that would take from minutes to the age of the universe.
func TestChecksThatMayTakeTooLongAreRefused(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		schema string
		value  any
	}{
		"alternatives that refer to each other": {
			`{$ref: '#/$defs/n', $defs: {n: {anyOf: [{type: array, items: {$ref: '#/$defs/n'}}, {type: array, items: {$ref: '#/$defs/n'}}, {type: string}]}}}`, nest(1, 60),
		},
		"alternatives by a member": {
			`{$ref: '#/$defs/n', $defs: {n: {oneOf: [{properties: {kind: {const: a}, child: {$ref: '#/$defs/n'}}}, {properties: {kind: {const: b}, child: {$ref: '#/$defs/n'}}}]}}}`, tagged(60),
		},
		"conditions": {
			`{$ref: '#/$defs/n', $defs: {n: {if: {items: {$ref: '#/$defs/n'}}, then: {items: {$ref: '#/$defs/n'}}, else: {items: {$ref: '#/$defs/n'}}}}}`, nest(1, 60)},
		"what is not evaluated": {
			`{$ref: '#/$defs/n', $defs: {n: {anyOf: [{contains: {$ref: '#/$defs/n'}}], unevaluatedItems: {$ref: '#/$defs/n'}}}}`, nest(1, 60)},
		"references that depend on their caller": {
			`{$dynamicAnchor: n, anyOf: [{type: array, items: {$dynamicRef: '#n'}}, {type: array, items: {$dynamicRef: '#n'}}, {type: string}]}`, nest(1, 60),
		},
		"references of an older draft": {
			`{$schema: 'https://json-schema.org/draft/2019-09/schema', $recursiveAnchor: true, anyOf: [{type: array, items: {$recursiveRef: '#'}}, {type: array, items: {$recursiveRef: '#'}}, {type: string}]}`, nest(1, 60),
		},
		"one value": {chainOfPairs(60), 1},
		"itself":    {`{anyOf: [{$ref: '#'}, {type: string}]}`, 1},
		"long patterns": {
			`{allOf: [` + strings.Repeat(`{pattern: '(a*)*b'}, `, 300) + `{type: string}]}`, strings.Repeat("a", 2_000_000)},
		"all members":            {`{patternProperties: {'(x*)*y': {}}}`, map[string]any{strings.Repeat("x", 15_000_000): 1}},
		"comparisons of numbers": {`{items: {enum: [1.5, 2.5, 3.5, 4.5, 5.5, 6.5]}}`, numbers(200_000)},
		"equal parts":            {`{uniqueItems: true}`, numbers(200_000)},
		"errors far from the root": {
			`{$ref: '#/$defs/n', $defs: {n: {anyOf: [{type: array, items: {$ref: '#/$defs/n'}}, {type: string}]}}}`, nest(
				numbers(20_000), 900),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			units, err := schemaOf(t, tt.schema).Check(tt.value, checkBudget)
			var costly *dsl.CheckCostError
			require.ErrorAs(t, err, &costly)
			require.EqualValues(t, checkBudget, units)
			require.ErrorContains(t, err, "more than 1250000 units of compute")
		})
	}
}

func TestChecksOfUsualSizeAreMade(t *testing.T) {
	t.Parallel()
	tree := `{$ref: '#/$defs/n', $defs: {n: {anyOf: [{type: array, items: {$ref: '#/$defs/n'}}, {type: integer}]}}}`
	for name, tt := range map[string]struct {
		schema string
		value  any
		fits   bool
	}{
		"many numbers": {`{type: array, items: {type: integer}}`, numbers(50_000), true},
		"many errors":  {`{type: array, items: {type: string}}`, numbers(50_000), false},
		"a deep tree":  {tree, nest(1, 500), true},
		"a wide tree":  {tree, []any{numbers(20_000), []any{numbers(20_000)}}, true},
		"alternatives a few deep": {
			`{$ref: '#/$defs/n', $defs: {n: {oneOf: [{properties: {kind: {const: none}, child: {$ref: '#/$defs/n'}}}, {type: string}, {type: array}]}}}`, tagged(60), true},
		"a schema of schemas": {
			`{$ref: 'https://json-schema.org/draft/2020-12/schema'}`, map[string]any{
				"type": "array", "items": map[string]any{"minLength": 3}}, true},
		"one that is no schema": {
			`{$ref: 'https://json-schema.org/draft/2020-12/schema'}`, map[string]any{
				"type": "array", "items": map[string]any{"minLength": -3}}, false},
		"a long text with a pattern":  {`{pattern: '^a+$'}`, strings.Repeat("a", 200_000), true},
		"a circle not for this value": {`{type: string, anyOf: [{$ref: '#'}]}`, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			schema := schemaOf(t, tt.schema)
			units, err := schema.Check(tt.value, checkBudget)
			again, _ := schema.Check(tt.value, checkBudget)
			require.Equal(t, units, again)
			require.Positive(t, units)
			if tt.fits {
				require.NoError(t, err)
				return
			}
			var se *dsl.SchemaError
			require.ErrorAs(t, err, &se)
			require.LessOrEqual(t, len(se.Violations), dsl.MaxSchemaViolations)
		})
	}
}

// TestCheckNamesTheFirstViolations compares with all of them.
func TestCheckNamesTheFirstViolations(t *testing.T) {
	t.Parallel()
	schema := schemaOf(t, `{items: {type: string, minimum: 3000, pattern: '^b'}}`)
	v := numbers(2000).([]any)
	v[7], v[1999] = strings.Repeat("ä", 5000), "a"
	var all, first *dsl.SchemaError
	require.ErrorAs(t, schema.Validate(v), &all)
	_, err := schema.Check(v, checkBudget)
	require.ErrorAs(t, err, &first)
	require.Len(t, first.Violations, dsl.MaxSchemaViolations)
	require.Equal(t, all.Violations[:dsl.MaxSchemaViolations], first.Violations)

	_, err = schema.Check([]any{strings.Repeat("a", 5000)}, checkBudget)
	require.ErrorAs(t, err, &first)
	require.Len(t, first.Violations, 1)
	require.Less(t, len(err.Error()), 2000)
}

// TestSchemaErrorsAreTheSameEveryTime fails where an error shows the order of a map: a run that catches one must see
// the same text when it is replayed.
func TestSchemaErrorsAreTheSameEveryTime(t *testing.T) {
	t.Parallel()
	schema := schemaOf(t, `{additionalProperties: false, dependentRequired: {a: [x, y], b: [z]}, not: {required: [a]}}`)
	value, err := jq.DecodeJSON([]byte(`{"a": 1, "b": 2, "c": 3, "d": 4, "e": 5, "f": 6, "g": 7}`))
	require.NoError(t, err)
	first, firstChecked := schema.Validate(value), ""
	for range 50 {
		require.EqualError(t, schema.Validate(value), first.Error())
		_, err := schema.Check(value, checkBudget)
		if firstChecked == "" {
			firstChecked = err.Error()
		}
		require.EqualError(t, err, firstChecked)
	}
}

func TestSchemaKeepsTheOrderOfTheDocument(t *testing.T) {
	t.Parallel()
	schema := schemaOf(t, `{type: object, properties: {zip: {maximum: 12345678901234567890}, name: {enum: ["<", null, 1.50]}, a: true}, required: [name]}`)
	require.Equal(t, `{"type":"object","properties":{"zip":{"maximum":12345678901234567890},"name":{"enum":["<",null,1.5]},"a":true},"required":["name"]}`, string(schema.JSON))
}

// Check does not require formats; Formats finds the texts that are not of theirs, and quotes none of them.
func TestFormatsAreFound(t *testing.T) {
	t.Parallel()
	s := schemaOf(t, `{properties: {mail: {type: string, format: email}, at: {format: date-time}, list: {items: {format: ipv4}}}}`)
	value := map[string]any{"mail": "planted", "at": "2026-01-31T12:00:00Z", "list": []any{"127.0.0.1", "planted"}}
	_, err := s.Check(value, checkBudget)
	require.NoError(t, err)
	require.Equal(t, []dsl.SchemaViolation{
		{Pointer: "/list/1", Message: `is not of the format "ipv4"`, Keyword: "format"},
		{Pointer: "/mail", Message: `is not of the format "email"`, Keyword: "format"},
	}, s.Formats(value, checkBudget))
	require.Empty(t, s.Formats(map[string]any{"mail": "ada@example.com"}, checkBudget))
	require.Empty(t, s.Formats(value, 0), "it is within a budget")
	require.Empty(t, schemaOf(t, `{type: object}`).Formats(value, checkBudget))
}
