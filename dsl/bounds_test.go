package dsl_test

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dsl"
)

// repeated returns n parts of a document, each made with its number.
func repeated(n int, part string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, part, i)
	}
	return b.String()
}

// Documents that no worker could compile are refused, each where the limit is exceeded.
func TestDocumentOverABoundIsRefused(t *testing.T) {
	t.Parallel()
	set := func(value string) string { return header + "do:\n- a:\n    set:\n      x: " + value + "\n" }
	schema := func(document string) string {
		return header + "input: {schema: {document: " + document + "}}\ndo: [{a: {set: {x: 1}}}]\n"
	}
	secret := func(expression string) string {
		return header + "use: {secrets: [s]}\ndo:\n- a: {call: http, with: {method: get, endpoint: 'http://x', headers: " +
			"{a: '" + expression + "'}}}\n"
	}
	for name, tt := range map[string]struct{ source, want string }{
		"terms": {set("${ 1" + strings.Repeat(" + 1", 3000) + " }"),
			"5:10: limit: the expression has more than 4000 terms (at /do/0/a/set/x)"},
		"bytes": {set("${ 1" + strings.Repeat(" + 1", 150_000) + " }"),
			"5:10: limit: the expression has 600003 bytes, more than the limit of 65536"},
		"suffixes": {set("${ .a" + strings.Repeat("[]", 5000) + " }"),
			"limit: the expression has more than 4000 terms"},
		"patterns": {set("'${ . as [" + strings.Repeat("$a,", 5000) + "$b] | $a }'"),
			"limit: the expression has more than 4000 terms"},
		"signs": {set("'${ " + strings.Repeat("-", 5000) + "1 }'"),
			"limit: the expression has more than 4000 terms"},
		"doubled keys": {set(`'${ ` + strings.Repeat(`{"\(`, 40) + "1" + strings.Repeat(`)"}`, 40) + ` }'`),
			"limit: the expression has more than 4000 terms"},
		"secrets": {secret("${ $secrets.s" + strings.Repeat(`+"a"`, 5000) + " }"),
			"limit: the expression has more than 4000 terms"},
		"expressions": {set("[" + repeated(30_000, "'${ .a%d }',") + "]"),
			"limit: all expressions together have a size of more than 250000 terms"},
		"tasks": {header + "do:\n" + repeated(10_001, "- a%d: {set: {x: 1}}\n"),
			"10003:3: limit: the document has more than 10000 tasks (at /do/10000)"},
		"inner tasks": {header + "do: [{a: {do: [" + repeated(10_000, "{b%d: {set: {x: 1}}},") + "]}}]\n",
			"limit: the document has more than 10000 tasks"},
		"schema": {schema("{allOf: [" + strings.Repeat("{},", 50_000) + "{}]}"), "2:28: limit: the schemas of the " +
			"document have 50003 values or more, the limit is 10000 (at /input/schema/document)"},
		"schemas": {header + "do: [" +
			repeated(60, "{a%[1]d: {input: {schema: {document: {enum: ["+strings.Repeat("1,", 200)+"1]}}}, set: {x: 1}}},") +
			"]\n", "limit: the schemas of the document have 10150 values or more"},
		"schema pattern": {schema("{properties: {" + repeated(300, "a%d: {pattern: 'b{900}'},") + "}}"),
			"limit: the patterns of the schemas have"},
		"classes": {schema(`{pattern: '` + strings.Repeat(`\pL`, 1000) + `'}`), "limit: the patterns of the schemas have"},
		"large references": {
			header + "use: {authentications: {p: {oauth2: {authority: 'http://x', grant: client_credentials, client: {id: a, " +
				"secret: b}, scopes: [" + strings.Repeat("a,", 200) + "]}}}}\n" +
				"do:\n" + repeated(2000, "- a%d: {call: http, with: {method: get, endpoint: {uri: 'http://x', authentication: "+
				"{use: p}}}}\n"),
			"limit: the document has more than 250000 values once references to use are resolved",
		},
		"aliases": {header + "do:\n- a: {set: {x: &x " + strings.Repeat("a", 10_000) + ", y: [" + strings.Repeat("*x,", 900) +
			"]}}\n", "limit: the document has 9010"},
		"long paths": {
			header + "do:\n- ? a" + strings.Repeat("k", 400_000) + "\n  : {do: [" + repeated(9000, "{a%d: {set: {x: 1}}},") +
				"]}\n",
			"over the limit of 4096",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			doc, violations := dsl.Parse([]byte(tt.source))
			require.Nil(t, doc)
			require.ErrorContains(t, violations, tt.want)
		})
	}
}

func errorOf(violations dsl.Violations) error {
	if violations.HasErrors() {
		return violations
	}
	return nil
}

// A document as large as an honest one can be is within the bounds.
func TestLargeDocumentCompiles(t *testing.T) {
	t.Parallel()
	doc, violations := dsl.Parse(
		[]byte(header + "do:\n" + repeated(9_999, "- a%d: {set: {x: '${ .orders[0].id }'}}\n") + "- last: {set: {x: '${ 1" +
			strings.Repeat(" + .a.b", 900) + " }'}}\n"))
	require.NoError(t, errorOf(violations))
	require.Len(t, doc.Do, 10_000)
	require.Greater(t, doc.Memory(), int64(1<<20))
	again, violations := dsl.Parse(doc.Canonical(), dsl.WithLimits(dsl.DefaultLimits().Stored()))
	require.NoError(t, errorOf(violations))
	require.Equal(t, doc.Hash(), again.Hash())
}

// The definition of a task is a part of that of the document: a deep document takes no more memory than a flat one.
func TestTasksShareTheDefinition(t *testing.T) {
	t.Parallel()
	doc, violations := dsl.Parse([]byte(header + "do: [{a: {do: [{b: {set: {x: 1}}}]}}]\n"))
	require.NoError(t, errorOf(violations))
	item := doc.Definition.(map[string]any)["do"].([]any)[0].(map[string]any)
	require.Equal(t, reflect.ValueOf(item["a"]).Pointer(), reflect.ValueOf(doc.Do[0].Definition).Pointer())
}

// A document with many errors is not checked to its end: each suggestion takes time.
func TestManyErrorsEndTheCheck(t *testing.T) {
	t.Parallel()
	_, violations := dsl.Parse([]byte(header + "do:\n" + repeated(5_000, "- a%[1]d: {set: {x: 1}, then: zzzz%[1]d}\n")))
	require.Len(t, violations, 501)
	require.ErrorContains(t, violations, "501 more violations are not shown")
}

func TestCompilationEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	doc, violations := dsl.Parse([]byte(header+"do: [{a: {set: {x: 1}}}]\n"), dsl.WithContext(ctx))
	require.Nil(t, doc)
	require.ErrorContains(t, violations, "the document was not checked to its end: context canceled")
}
