package languageservice_test

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/jq"
	"github.com/signalbox-dev/signalbox/dsl/languageservice"
)

const header = "document: {dsl: '1.0.3', namespace: shop, name: order, version: '1.0.0'}\n"

// order has | at a place for each question.
const order = header + `use:
  secrets: [bank]
  errors:
    broken: {type: 'https://shop.example/broken', status: 500}
  retries:
    often: {delay: {seconds: 1}}
  functions:
    greet: {set: {greeting: hello}}
do:
  - pay:
      try:
        - charge:
            call: http
            with: {method: get, endpoint: 'https://bank.example', headers: {X: '${ $secrets.bank }'}}
      catch:
        retry: often
        then: done
  - each:
      for: {each: line, in: .lines}
      do:
        - note:
            set: {sku: '${ $line.sku | ascii_upcase }'}
            then: exit
  - pick:
      switch:
        - large: {when: .total > 10, then: done}
        - small: {then: end}
  - hi:
      call: greet
  - done:
      raise: {error: broken}
`

func text(source string) *languageservice.Text { return languageservice.New().Open(source) }

// cursor returns a text without its mark and the position of that.
func cursor(t *testing.T, source string) (string, dsl.Pos) {
	t.Helper()
	before, after, ok := strings.Cut(source, "‸")
	require.True(t, ok, source)
	line := strings.Count(before, "\n") + 1
	column := len([]rune(before[strings.LastIndexByte(before, '\n')+1:])) + 1
	return before + after, dsl.Pos{Line: line, Column: column}
}

func labels(t *testing.T, source string) []string {
	t.Helper()
	source, pos := cursor(t, source)
	var out []string
	for _, c := range text(source).Complete(pos) {
		out = append(out, c.Label)
	}
	return out
}

func TestKeysAreCompleted(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		source   string
		has, not []string
	}{
		{"‸", []string{"document", "do", "use", "schedule"}, []string{"call"}},
		{header + "‸", []string{"do", "use"}, []string{"document"}},
		{header + "d‸\ndo: []\n", []string{"use"}, []string{"document", "do"}},
		{header + "do:\n  - a:\n      ‸", []string{"call", "set", "if", "then"}, []string{"with", "name"}},
		{header + "do:\n  - a:\n      ‸\n      call: http\n", []string{"with", "if"}, []string{"call", "set"}},
		{header + "do:\n  - a:\n      call: http\n      wi‸\n  - b: {set: {x: 1}}\n", []string{"with"}, []string{"set"}},
		{header + "do:\n  - a:\n      call: http\n      with:\n        ‸\n", []string{"method", "endpoint", "body"}, nil},
		{header + "do:\n  - a:\n      call: http\n      with: {method: get, ‸}\n", []string{"endpoint"}, []string{"method"}},
		{header + "do:\n  - a: {listen: {to: {one: {with: {t‸", []string{"type", "source"}, nil},
		{header + "do:\n  - a:\n      wait:\n        ‸\n", []string{"seconds", "days"}, nil},
		{header + "do:\n  - a:\n      try: []\n      catch:\n        ‸\n", []string{"retry", "errors", "do"}, nil},
		{header + "use:\n  functions:\n    f:\n      ‸\n", []string{"call", "set"}, nil},
		{header + "schedule: {every: PT1S, ‸}\n", nil, []string{"cron", "every"}},
		{`{"document": {"dsl": "1.0.3", ‸}}`, []string{"namespace", "version"}, []string{"dsl"}},
		{"document:\n\tdsl: '1.0.3'\n  ‸", []string{"namespace"}, nil},
		{header + "do:\n  - a:\n      set: {‸}\n", nil, []string{"call"}},
		{header + "# a comment ‸\n", nil, []string{"do"}},
	} {
		got := labels(t, tt.source)
		require.Subset(t, got, tt.has, tt.source)
		for _, label := range tt.not {
			require.NotContains(t, got, label, tt.source)
		}
	}
}

func TestValuesAndReferencesAreCompleted(t *testing.T) {
	t.Parallel()
	for from, want := range map[string][]string{
		"then: done\n  - each":   {"continue", "exit", "end", "each", "pick", "hi", "done"},
		"retry: often":           {"often"},
		"error: broken":          {"broken"},
		"call: greet":            {"http", "greet"},
		"then: exit":             {"continue", "exit", "end"},
		"then: end}":             {"continue", "exit", "end", "pay", "each", "hi", "done"},
		"then: done}\n        -": {"continue", "exit", "end", "pay", "each", "hi", "done"},
	} {
		key, value, _ := strings.Cut(from, ": ")
		rest := value[strings.IndexFunc(value+"\n", func(r rune) bool { return r < 'a' || r > 'z' }):]
		require.ElementsMatch(t, want, labels(t, strings.Replace(order, from, key+": ‸"+rest, 1)), from)
	}
	require.Equal(t, []string{"true", "false"},
		labels(t, header+"do:\n  - a:\n      fork:\n        compete: ‸\n        branches: []\n"))
	require.Equal(t, []string{"content", "raw", "response"},
		labels(t, header+"do:\n  - a: {call: http, with: {output: ‸}}\n"))
	require.Equal(t, []string{"continue", "exit", "end", "a-b"},
		labels(t, header+"do:\n  - a-b: {set: {x: 1}}\n  - c: {set: {x: 1}, then: a-‸}\n"))
}

func TestExpressionsAreCompleted(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{"bank"}, labels(t, strings.Replace(order, "$secrets.bank", "$secrets.‸", 1)))
	got := labels(t, strings.Replace(order, "$line.sku", "$‸", 1))
	require.ElementsMatch(t, []string{"$context", "$input", "$task", "$workflow", "$runtime", "$authorization", "$line",
		"$index"}, got)
	require.Contains(t, labels(t, strings.Replace(order, "ascii_upcase", "asc‸", 1)), "ascii_upcase")
	require.Contains(t, labels(t, strings.Replace(order, ".total > 10", "‸", 1)), "length")
	require.Empty(t, labels(t, strings.Replace(order, ".total > 10", ".‸", 1)), "members are those of data")
	require.Contains(t, labels(t, strings.Replace(order, "ascii_upcase", "@‸", 1)), "@base64")
	require.Empty(t, labels(t, strings.Replace(order, "ascii_upcase", `startswith("a‸")`, 1)))
}

// The variables that are offered are those that package dsl accepts.
func TestVariablesAgreeWithTheParser(t *testing.T) {
	t.Parallel()
	all := []string{"context", "input", "output", "task", "workflow", "runtime", "authorization", "line", "index", "error"}
	for _, place := range []string{
		"input: {from: 'X'}\ndo: [{a: {set: {x: 1}}}]",
		"output: {as: 'X'}\ndo: [{a: {set: {x: 1}}}]",
		"do: [{a: {set: {x: 1}, input: {from: 'X'}}}]",
		"do: [{a: {set: {x: 1}, output: {as: 'X'}}}]",
		"do: [{a: {set: {x: 1}, export: {as: 'X'}}}]",
		"do: [{a: {set: {x: 1}, if: 'X'}}]",
		"do: [{a: {set: {x: 'X'}}}]",
		"do: [{a: {for: {each: line, in: 'X'}, do: [{b: {set: {x: 1}}}]}}]",
		"do: [{a: {for: {each: line, in: '.'}, do: [{b: {set: {x: 'X'}}}]}}]",
		"do: [{a: {for: {each: line, in: '.'}, while: 'X', do: [{b: {set: {x: 1}}}]}}]",
		"do: [{a: {try: [{b: {set: {x: 'X'}}}], catch: {}}}]",
		"do: [{a: {try: [{b: {set: {x: 1}}}], catch: {when: 'X'}}}]",
		"do: [{a: {try: [{b: {set: {x: 1}}}], catch: {do: [{c: {set: {x: 'X'}}}]}}}]",
		"do: [{a: {listen: {to: {any: []}}, foreach: {item: line, output: {as: 'X'}}}}]",
		"do: [{a: {listen: {to: {any: []}}, foreach: {item: line, export: {as: 'X'}}}}]",
		"do: [{a: {listen: {to: {any: []}}, foreach: {item: line, do: [{c: {set: {x: 'X'}}}]}}}]",
		"use: {functions: {f: {set: {x: 'X'}}}}\ndo: [{a: {for: {in: '.'}, do: [{b: {call: f}}]}}]",
	} {
		offered := labels(t, header+strings.Replace(place, "X", "${ $‸ }", 1))
		for _, name := range all {
			_, violations := dsl.Parse([]byte(header + strings.Replace(place, "X", "${ $"+name+" }", 1)))
			require.Equal(t, !violations.HasErrors(), slices.Contains(offered, "$"+name), "%s: $%s: %v", place, name, violations)
		}
	}
}

func TestEveryBuiltinIsDocumented(t *testing.T) {
	t.Parallel()
	source, pos := cursor(t, header+"do: [{a: {if: '‸'}}]")
	docs := map[string]string{}
	for _, c := range text(source).Complete(pos) {
		docs[c.Label] = c.Doc
	}
	for _, f := range jq.Builtins() {
		name, _, _ := strings.Cut(f, "/")
		require.Regexp(t, "(?s)`"+name+".*\n\n.+", docs[name], name)
	}
}

func TestHover(t *testing.T) {
	t.Parallel()
	for at, want := range map[string]string{
		"with: {me‸thod":    "**method** (required): Method",
		"pay‸:\n":           "**pay**: task try",
		"ascii_up‸case":     "lower" + "", // replaced below
		"$li‸ne":            "**$line**: A variable of the loop",
		"then: do‸ne}":      "**done**: task raise, defined in line",
		"error: bro‸ken":    "**broken**: use.errors, defined in line 5",
		"namespace‸: shop":  "**namespace** (required)",
		"secr‸ets: [bank]":  "**secrets**: Names",
		"$secr‸ets.bank }'": "**$secrets**: Secrets",
	} {
		if strings.HasPrefix(at, "ascii") {
			want = "upper case"
		}
		source, pos := cursor(t, strings.Replace(order, strings.Replace(at, "‸", "", 1), at, 1))
		hover, ok := text(source).Hover(pos)
		require.True(t, ok, at)
		require.Contains(t, hover.Doc, want, at)
	}
	_, ok := text(order).Hover(dsl.Pos{Line: 900, Column: 900})
	require.False(t, ok)
}

func TestDefinitions(t *testing.T) {
	t.Parallel()
	for at, want := range map[string]string{
		"retry: of‸ten": "    often:", "call: gr‸eet": "    greet:", "error: bro‸ken": "    broken:", "then: do‸ne}": "  - done:",
	} {
		source, pos := cursor(t, strings.Replace(order, strings.Replace(at, "‸", "", 1), at, 1))
		location, ok := text(source).Definition(pos)
		require.True(t, ok, at)
		line := strings.Split(source, "\n")[location.Range.Start.Line-1]
		require.True(t, strings.HasPrefix(line, want), "%s: %s", at, line)
	}
	source, pos := cursor(t, header+"do: [{a: {call: lib/‸f.yaml}}]")
	location, ok := text(source).Definition(pos)
	require.True(t, ok)
	require.Equal(t, "lib/f.yaml", location.File)
}

// apply returns a text after edits, which do not overlap.
func apply(source string, edits []languageservice.Edit) string {
	offset := func(p dsl.Pos) int {
		lines := strings.SplitAfter(source, "\n")
		at := len(strings.Join(lines[:p.Line-1], ""))
		return at + len(string([]rune(lines[p.Line-1])[:p.Column-1]))
	}
	slices.SortFunc(edits, func(a, b languageservice.Edit) int { return offset(b.Range.Start) - offset(a.Range.Start) })
	for _, e := range edits {
		source = source[:offset(e.Range.Start)] + e.Text + source[offset(e.Range.End):]
	}
	return source
}

func TestRename(t *testing.T) {
	t.Parallel()
	for at, tt := range map[string]struct {
		name  string
		count int
	}{
		"then: do‸ne}":             {"finished", 3},
		"  - do‸ne:":               {"all done", 3},
		"retry: of‸ten":            {"rarely", 2},
		"gre‸et: {set":             {"welcome", 2},
		"bro‸ken: {":               {"'odd'", 2},
		"secrets: [ba‸nk]":         {"vault", 2},
		"- no‸te:":                 {"other", 1},
		"document: {dsl: ‸'1.0.3'": {"x", 0},
	} {
		source, pos := cursor(t, strings.Replace(order, strings.Replace(at, "‸", "", 1), at, 1))
		edits, err := text(source).Rename(pos, tt.name)
		if tt.count == 0 {
			require.Error(t, err)
			continue
		}
		require.NoError(t, err, at)
		require.Len(t, edits, tt.count, at)
		renamed := apply(source, edits)
		_, violations := dsl.Parse([]byte(renamed))
		require.False(t, violations.HasErrors(), "%s\n%v", renamed, violations)
		again, err := text(renamed).Rename(edits[len(edits)-1].Range.Start, "x")
		require.NoError(t, err)
		require.Len(t, again, tt.count)
	}
	source, pos := cursor(t, strings.Replace(order, "- done:", "- do‸ne:", 1))
	for name, want := range map[string]string{"pick": "already used", "exit": "directive", "": "not a name"} {
		_, err := text(source).Rename(pos, name)
		require.ErrorContains(t, err, want)
	}
	_, name, ok := text(source).Renameable(pos)
	require.True(t, ok)
	require.Equal(t, "done", name)
}

// Every suggestion of another name has a fix, and the text is valid after it.
func TestFixes(t *testing.T) {
	t.Parallel()
	for wrong, right := range map[string]string{
		"catch:": "cach:", "then: exit": "then: exi", "retry: often": "retry: oftn", "call: greet": "call: gret",
		"$line.sku": "$lin.sku", "ascii_upcase": "asci_upcase", "method: get": "metod: get", "set: {sku": "sett: {sku",
		"error: broken": "error: brokn", "$secrets.bank": "$secrets.bnk", "status: 500": "sttus: 500",
	} {
		wrong, right = right, wrong
		source := strings.Replace(order, right, wrong, 1)
		fixed := ""
		for _, d := range text(source).Diagnose(nil) {
			for _, f := range d.Fixes {
				fixed = apply(source, f.Edits)
			}
		}
		require.Equal(t, order, fixed, wrong)
	}
	source := header + "do: [{a: {set: {x: 1}, if: true}}, {b: {wait: 5}}, {c: {call: http, with: {method: 5}}}]"
	var titles []string
	for _, d := range text(source).Diagnose(nil) {
		for _, f := range d.Fixes {
			titles = append(titles, f.Title)
			require.NotEqual(t, source, apply(source, f.Edits))
		}
	}
	require.Contains(t, titles, `Replace by "5"`)
}

func TestDiagnosticsHaveRanges(t *testing.T) {
	t.Parallel()
	source := header + "do:\n  - a:\n      call: http\n      with: {method: get, endpoint: 'https://x.example', zzz: 1}\n"
	found := text(source).Diagnose(nil)
	require.Len(t, found, 1)
	require.Equal(t, languageservice.Range{Start: dsl.Pos{Line: 5, Column: 58}, End: dsl.Pos{Line: 5, Column: 61}}, found[0].Range)
	require.Equal(t, dsl.CodeUnknownKey, found[0].Code)
	require.NotEmpty(t, text("do: [").Diagnose(nil))
	files := func(path string) ([]byte, error) {
		if path != "f.yaml" {
			return nil, fs.ErrNotExist
		}
		return []byte("set: {x: 1}"), nil
	}
	source = header + "do: [{a: {call: f.yaml}}, {b: {call: g.yaml}}]\n"
	found = text(source).Diagnose(files)
	require.Len(t, found, 1)
	require.Contains(t, found[0].Message, "g.yaml")
}

func TestDiagnosticsOfTests(t *testing.T) {
	t.Parallel()
	files := func(path string) ([]byte, error) {
		if path != "order.yml" {
			return nil, fs.ErrNotExist
		}
		return []byte(order), nil
	}
	const tests = "cases: [{name: a, secrets: {bank: x}, mocks: [{task: chrge, respond: {}}], expect: {status: completed}}]"
	found := text(tests).DiagnoseTests("order.test.yaml", files)
	require.Len(t, found, 1)
	require.Contains(t, found[0].Message, `no task "chrge"`)
	require.Contains(t, text("cases: [{nme: a}]").DiagnoseTests("order.test.yaml", files)[1].Message, "has no key")
	require.Contains(t, text(tests).DiagnoseTests("other.test.yaml", files)[0].Message, "no workflow other.yaml")
}

func TestSymbolsAndFolds(t *testing.T) {
	t.Parallel()
	var lines []string
	var list func(symbols []languageservice.Symbol, indent string)
	list = func(symbols []languageservice.Symbol, indent string) {
		for _, s := range symbols {
			lines = append(lines, fmt.Sprintf("%s%s %s", indent, s.Name, s.Detail))
			list(s.Children, indent+" ")
		}
	}
	opened := text(order)
	list(opened.Symbols(), "")
	require.Equal(t, []string{"broken errors", "often retries", "greet functions", "pay try", " charge call", "each for",
		" note set", "pick switch", "hi call", "done raise"}, lines)
	require.Contains(t, opened.Folds(), languageservice.Range{Start: dsl.Pos{Line: 11, Column: 5}, End: dsl.Pos{Line: 18, Column: 19}})
}

func TestFormat(t *testing.T) {
	t.Parallel()
	source := header + "do:\n    - a:   {set: {x: 1}}\n"
	edit, changed, err := text(source).Format()
	require.NoError(t, err)
	require.True(t, changed)
	require.Equal(t, header+"do:\n  - a: {set: {x: 1}}\n", apply(source, []languageservice.Edit{edit}))
	_, _, err = text("do: [").Format()
	require.Error(t, err)
}

// examples are the sources of workflows that tests edit.
func examples(t testing.TB) []string {
	t.Helper()
	paths, err := filepath.Glob("../../examples/workflows/*.yaml")
	require.NoError(t, err)
	sources := []string{order}
	for _, path := range paths {
		source, err := os.ReadFile(path)
		require.NoError(t, err)
		sources = append(sources, string(source))
	}
	require.Greater(t, len(sources), 5)
	return sources
}

// ask asks everything at a position.
func ask(t testing.TB, source string, pos dsl.Pos) {
	opened := languageservice.New().Open(source)
	for _, c := range opened.Complete(pos) {
		require.NotEmpty(t, c.Label)
	}
	_, _ = opened.Hover(pos)
	_, _ = opened.Definition(pos)
	if _, _, ok := opened.Renameable(pos); ok {
		edits, err := opened.Rename(pos, "zz-renamed")
		require.NoError(t, err)
		require.NotEmpty(t, edits)
	}
	_ = opened.Symbols()
	_ = opened.Folds()
	_, _, _ = opened.Format()
	_ = opened.Diagnose(nil)
	_ = opened.DiagnoseTests("a.test.yaml", nil)
}

// A text that is edited at random positions, as it is typed, gets answers at every moment.
func TestEveryEditIsSurvived(t *testing.T) {
	t.Parallel()
	const edits = 400
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 1))
	pieces := []string{"{", "}", "[", "]", ":", "- ", "\n", "\n  ", "'", "\"", "${ ", " }", "|", ">", "#", "do:", "&a", "*a", "\t",
		"then: ", "call: http", "é", "\x00", "\xff", "<<: "}
	for _, source := range examples(t) {
		for range edits / len(examples(t)) {
			at := random.IntN(len(source) + 1)
			end := min(len(source), at+random.IntN(8))
			source = source[:at] + pieces[random.IntN(len(pieces))] + source[end:]
			lines := strings.Count(source, "\n") + 1
			pos := dsl.Pos{Line: 1 + random.IntN(lines), Column: 1 + random.IntN(40)}
			require.NotPanics(t, func() { ask(t, source, pos) }, "seed %d: %q at %v", seed, source, pos)
		}
	}
}

func FuzzEveryTextIsSurvived(f *testing.F) {
	for _, source := range examples(f) {
		f.Add(source, 3, 5)
	}
	f.Add(strings.Repeat("[", 3000), 1, 9)
	f.Add(strings.Repeat("a:\n - ", 300), 1, 9)
	f.Add("a: \"\nb: '", 2, 2)
	f.Fuzz(func(t *testing.T, source string, line, column int) {
		ask(t, source, dsl.Pos{Line: line, Column: column})
	})
}

// long is a document of about 2,000 lines.
func long() string {
	var b strings.Builder
	b.WriteString(header + "use: {secrets: [key]}\ndo:\n")
	for i := range 180 {
		fmt.Fprintf(&b, `  - task%d:
      try:
        - call%d:
            call: http
            with:
              method: post
              endpoint: 'https://shop.example/orders/{id}'
              headers: {X-Key: '${ $secrets.key }'}
              body: {id: '${ .id }', lines: '${ [.lines[] | select(.count > 0)] }'}
      catch:
        retry: {delay: {seconds: 1}, limit: {attempt: {count: 3}}}
`, i, i)
	}
	return b.String()
}
