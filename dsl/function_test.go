package dsl_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/taskindex"
)

func TestFunctionsOfTheDocument(t *testing.T) {
	t.Parallel()
	doc := requireValid(t, referring+`
use:
  errors: {gone: {type: 'https://example.com/gone', status: 410}}
  functions:
    double: {input: {schema: {document: {type: object}}}, set: {n: '${ .n * 2 }'}}
    drop: {do: [{fail: {raise: {error: gone}}}]}
do:
  - first: {call: double, with: {n: 2}}
  - second: {call: double, with: {n: '${ .n }'}}
  - third: {call: drop}
`, nil)
	require.Equal(t, []string{"double", "drop"}, doc.Use.Functions)
	tasks := taskindex.Of(doc)
	for _, pointer := range []string{"/do/0/first", "/do/0/first/call/double", "/do/1/second/call/double",
		"/do/2/third/call/drop/do/0/fail"} {
		require.NotNil(t, tasks[pointer], pointer)
	}
	require.NotSame(t, tasks["/do/0/first/call/double"], tasks["/do/1/second/call/double"])
	call, ok := tasks["/do/1/second"].Body.(*dsl.FunctionCall)
	require.True(t, ok)
	require.Equal(t, "double", call.Function)
	require.Equal(t, dsl.KindSet, call.Task.Body.Kind())
}

// Violations in functions of the document have the positions in use.functions; those in others the position of the
// call, and name file, line and column.
func TestViolationsInFunctions(t *testing.T) {
	t.Parallel()
	for want, source := range map[string]string{
		`unknown_variable: there is no variable $item here (at /use/functions/f/set/x)`: `
use: {functions: {f: {set: {x: '${ $item }'}}}}
do: [{loop: {for: {in: '[1]'}, do: [{a: {call: f}}]}}]`,
		`3:49: unknown_key: the task "f" has no key "sett" (at /use/functions/f/sett)`: `
use: {functions: {f: {do: [{b: {set: {x: 1}}}], sett: 1}}}
do: [{a: {call: f}}]`,
		`value: the function "f" calls itself (at /use/functions/f/do/0/b/call)`: `
use: {functions: {f: {do: [{b: {call: f}}]}}}
do: [{a: {call: f}}]`,
		`4:17: value: bad.yaml:2:16: the method must be a word such as get or post, got "7 up" (at /do/0/a/call)`: `

do: [{a: {call: bad.yaml}}]`,
		`the error "gone" is not defined under use.errors (at /do/0/a/call); write it in the function`: `
use: {errors: {gone: {type: 'https://example.com/gone', status: 410}}}
do: [{a: {call: uses.yaml}}]`,
		`outer.yaml:1:8: inner.yaml:1:6: set must be an object or an expression, got a number (at /do/0/a/call)`: `
do: [{a: {call: outer.yaml}}]`,
		`circle.yaml:1:8: the function "circle.yaml" calls itself (at /do/0/a/call)`: `
do: [{a: {call: circle.yaml}}]`,
		`the function "f" is not defined under use.functions`: `
do: [{a: {call: f}}]`,
		`name its catalog: log:1.0.0@default is the project's`: `
do: [{a: {call: 'log:1.0.0'}}]`,
		`the catalog "none" is not defined under use.catalogs`: `
do: [{a: {call: 'log:1.0.0@none'}}]`,
		`the version "1" of the function "log" is not a semantic version`: `
do: [{a: {call: 'log:1@default'}}]`,
		`with must be an object, got a string`: `
use: {functions: {f: {set: {x: 1}}}}
do: [{a: {call: f, with: '${ . }'}}]`,
		`a secret cannot be used here`: `
use: {secrets: [s], functions: {f: {set: {x: 1}}}}
do: [{a: {call: f, with: {x: '${ $secrets.s }'}}}]`,
	} {
		_, violations, _ := parseWith(referring+source+"\n", map[string]string{
			"bad.yaml":    "call: http\nwith: {method: 7 up, endpoint: 'https://example.com'}\n",
			"uses.yaml":   "raise: {error: gone}\n",
			"outer.yaml":  "{call: inner.yaml}",
			"inner.yaml":  "set: 7\n",
			"circle.yaml": "{call: circle.yaml}",
		})
		found := violations.Error()
		require.Contains(t, found, want, source)
		require.Equal(t, 1, countErrors(violations), found)
	}
}

func countErrors(violations dsl.Violations) int {
	n := 0
	for _, v := range violations {
		if v.Severity == dsl.SeverityError {
			n++
		}
	}
	return n
}

func TestFunctionsReferToOthersByTheirOwnAddress(t *testing.T) {
	t.Parallel()
	source := referring + "do: [{a: {call: 'lib/f.yaml'}}, {b: {call: 'https://example.com/x/g.yaml'}}, " +
		"{c: {call: 'mine:1.0.0@default'}}]\n"
	files := map[string]string{
		"lib/f.yaml":                   "call: ./g.yaml",
		"https://example.com/x/g.yaml": "call: ../h.yaml",
		"mine:1.0.0@default":           "call: k.yaml",
	}
	_, violations, missing := parseWith(source, files)
	require.ElementsMatch(t, []string{"file lib/g.yaml", "web https://example.com/h.yaml"}, missing)
	require.Contains(t, violations.Error(),
		`the function "mine:1.0.0@default" is in the catalog of the project and cannot refer to the file "k.yaml"`)
}

// Functions that call others twice each are many tasks, and the limits of a document hold for them.
func TestFunctionsAreBounded(t *testing.T) {
	t.Parallel()
	source := referring + "use:\n  functions:\n"
	for i := range 18 {
		source += fmt.Sprintf("    f%d: {do: [{a: {call: f%d}}, {b: {call: f%d}}]}\n", i, i+1, i+1)
	}
	source += "    f18: {set: {x: 1}}\ndo: [{a: {call: f0}}]\n"
	requireViolation(t, "the document has more than 10000 tasks", source, nil)
	source = referring + "use:\n  functions:\n"
	for i := range 25 {
		source += fmt.Sprintf("    f%d: {call: f%d}\n", i, i+1)
	}
	source += "    f25: {set: {x: 1}}\ndo: [{a: {call: f0}}]\n"
	requireViolation(t, "functions call each other more than 20 deep", source, nil)
}

func TestUnusedFunctionsAreChecked(t *testing.T) {
	t.Parallel()
	_, violations, _ := parseWith(referring+`
use:
  functions: {f: {set: 7}}
  catalogs: {c: {endpoint: {uri: 'https://example.com'}}, d: {}}
do: [{a: {set: {x: 1}}}]
`, nil)
	for _, want := range []string{
		"4:24: type: set must be an object or an expression, got a number (at /use/functions/f/set)",
		`the function "f" is never used`, `the catalog "c" is never used`, `a catalog needs the key "endpoint"`,
	} {
		require.Contains(t, violations.Error(), want)
	}
}

func TestCheckFunction(t *testing.T) {
	t.Parallel()
	require.Empty(t, dsl.CheckFunction("price:1.0.0@default", []byte("call: http\nwith:\n  method: get\n"+
		"  endpoint: 'https://example.com'\n  headers: {x: '${ $secrets.token }'}\n")),
		"the workflow that calls it declares the secret")
	for source, want := range map[string]string{
		"set: 7":           "1:6: type: set must be an object or an expression, got a number (at /set)",
		"{set: {x: 1}":     "syntax: ",
		"[]":               "must be an object",
		"call: other":      `the function "other" is not defined under use.functions`,
		"call: other.yaml": `the function "price:1.0.0@default" is in the catalog of the project`,
	} {
		violations := dsl.CheckFunction("price:1.0.0@default", []byte(source))
		require.Contains(t, violations.Error(), want)
		require.True(t, violations.HasErrors())
	}
	violations := dsl.CheckFunction("price:1.0.0@default", []byte("call: other:1.0.0@default"))
	require.Len(t, violations, 1)
	require.Equal(t, dsl.SeverityWarning, violations[0].Severity)
}
