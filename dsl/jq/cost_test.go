package jq_test

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/itchyny/gojq"
	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dsl/interp"
	"github.com/signalbox-dev/signalbox/dsl/jq"
)

// The maximum processor time and memory of one evaluation with the budget of a run's expressions.
const (
	longest = 200 * time.Millisecond
	largest = 64 << 20
	tries   = 5
)

// largeValues returns the values that builtins are tried on, each about as large as the limits allow.
func largeValues() map[string]any {
	numbers := make([]any, 1<<18)
	shuffled := make([]any, 1<<18)
	names := make([]any, 1<<17)
	objects := make([]any, 20_000)
	wide := make(map[string]any, 1<<17)
	pairs := make([]any, 1<<16)
	digits := make([]any, 2000)
	for i := range numbers {
		numbers[i], shuffled[i] = i, i*7919%len(shuffled)
	}
	for i := range names {
		names[i] = fmt.Sprintf("%060d", i*7919%len(names))
		wide[fmt.Sprintf("a-key-with-a-long-prefix-%d", i)] = i
	}
	for i := range objects {
		objects[i] = map[string]any{
			"name": fmt.Sprint(i * 7919 % len(objects)), "key": "k", "value": i, "d": map[string]any{"x": i, "y": 1}}
	}
	for i := range pairs {
		pairs[i] = []any{i, i}
	}
	huge := jq.Normalize(decodeText(strings.Repeat("9", 1000)))
	for i := range digits {
		digits[i] = huge
	}
	deep := any(1)
	for range 990 {
		deep = []any{deep}
	}
	return map[string]any{
		"text": strings.Repeat("a", 16_000_000), "lines": strings.Repeat("ab, <'\"\n", 2_000_000),
		"controls": strings.Repeat("\x01", 16_000_000),
		"wideText": strings.Repeat("ä€ ", 2_500_000), "medium": strings.Repeat("a", 60_000), "json": "[" +
			strings.Repeat("0,", 1<<17) + "0]",
		"base64": strings.Repeat("YWFh", 4_000_000), "numbers": numbers, "shuffled": shuffled, "names": names,
		"objects": objects, "wide": wide, "pairs": pairs,
		"digits": digits, "deep": deep, "huge": huge, "number": 1e15, "null": nil,
	}
}

func decodeText(s string) any {
	v, err := jq.DecodeJSON([]byte(s))
	if err != nil {
		return nil
	}
	return v
}

// builtinCalls lists every function that expressions may use, with the calls by which it is tried. $o is the value
// itself, so that arguments are as large as the input.
func builtinCalls() map[string][]string {
	calls := map[string][]string{}
	add := func(arity int, names string, forms ...string) {
		for name := range strings.FieldsSeq(names) {
			key := fmt.Sprintf("%s/%d", name, arity)
			for _, form := range forms {
				calls[key] = append(calls[key], strings.ReplaceAll(form, "F", name))
			}
		}
	}
	add(0, `empty not length utf8bytelength type abs toboolean nan infinite isnan isinfinite isnormal isfinite first last arrays objects
		iterables booleans numbers finites normals strings nulls values scalars floor round nearbyint rint ceil trunc significand fabs sqrt cbrt
		exp exp10 exp2 expm1 frexp modf log log10 log1p log2 logb gamma tgamma lgamma erf erfc j0 j1 y0 y1 sin cos tan asin acos atan sinh cosh
		tanh asinh acosh atanh gmtime mktime todate fromdate todateiso8601 fromdateiso8601 tostring tojson fromjson tonumber toarray ascii_downcase
		ascii_upcase explode implode trim ltrim rtrim now date localtime`, `F`, `[.[]? | F]`, `[limit(200000; repeat(0)) as $i | try ($o | F) catch 0] | length`)
	add(0, `any all add keys keys_unsorted reverse to_entries from_entries flatten sort unique min max transpose combinations recurse paths leaf_paths error`,
		`F`, `[F]`, `first(F)`, `[range(1000) as $i | try ($o | F) catch 0] | length`, `[limit(1000; $o | F)]`)
	add(1, `has in ltrimstr rtrimstr trimstr startswith endswith contains inside indices index rindex bsearch join split getpath delpaths`,
		`F($o)`, `F("a")`, `F(1)`, `F(["a"])`, `F([["a"]])`, `[range(2000) as $i | try ($o | F("aa")) catch 0] | length`,
		`[range(2000) as $i | try ($o | F($o)) catch 0] | length`, `[.[]?] | F(.)`, `(.[:2000]? // .) | F(.)`)
	add(1, `select recurse range repeat isempty first last map any all add with_entries sort_by group_by unique_by min_by max_by walk map_values path
		paths del pick INDEX IN error`, `F(.)`, `[F(.[]?)]`, `first(F(.))`, `[limit(100000; F(.))] | length`, `F(-.)?`, `F(tojson)`)
	add(1, `match test capture scan splits`, `F("a")`, `F("a?"; "g")`, `[F("(a*)*b")]`, `[F(["a?", "g"])] | length`,
		`F("(?:a{30}){30}")`,
		`[range(100000) as $i | try F("a\($i)") catch 0] | length`, `[range(100000) as $i | try F($o) catch 0] | length`,
		`[range(100000) as $i | try F(["a", $o]) catch 0] | length`)
	add(1, `nth strftime strflocaltime strptime combinations flatten`, `F(1)`, `F("%Y-%m-%dT%H:%M:%SZ")`, `F("%A%B" * 30)`, `[F($o)]`,
		`[range(1000) as $i | try ($o | F("%s")) catch 0] | length`)
	add(2, `match test capture scan splits split`, `F("a?"; "g")`, `[F("a*b|a"; "g")] | length`,
		`[F("()()()()()a"; "g")] | length`, `[F("[^a]|."; "gi")] | length`,
		`[F("(a?){20}"; "g")] | length`, `[range(4)] | map([$o | F("a?"; "g")] | length)`,
		`[F("(?:a|b|ab)+$"; "g")] | length`, `F(""; "g")`, `F("\\b"; "gm")`)
	add(2, `sub gsub`, `F("a"; "b")`, `F("a?"; "\($o)")`, `F("(?<x>a)"; "\(.x)\(.x)")`, `F(""; "bb")`)
	add(3, `sub gsub`, `F("a"; "b"; "g")`, `F("a?"; $o; "g")`, `F("[aä]"; "xyz"; "gi")`)
	add(2, `recurse range while until limit skip nth any all IN INDEX setpath`, `F(.; .)`, `first(F(1; .))`, `F(["a"]; 1)`,
		`[F(0; 1e9)]`, `[F(1000; .[]?)]`,
		`F([262143]; 1)`, `[range(1000) as $i | try ($o | F(["a"]; 1)) catch 0] | length`,
		`[range(1000) as $i | try ($o | F([5]; 1)) catch 0] | length`)
	add(2, `atan2 copysign drem fdim fmax fmin fmod hypot jn nextafter nexttoward remainder ldexp scalb scalbln yn pow dateadd datesub`,
		`F(.; .)`, `F(1e9; 2e9)`,
		`F(9e15; 9e15)`, `[range(100000) as $i | try F($o; $o) catch 0] | length`)
	add(3, `range fma`, `F(1; 2; 3)`, `[F(0; 1; 0)]`, `[F(.; .; .)]`,
		`[range(100000) as $i | try F($o; $o; $o) catch 0] | length`)
	return calls
}

// syntaxCalls lists the constructs of the language that are not functions.
func syntaxCalls() []string {
	calls := []string{
		`.[]`, `[.[]]`, `..`, `[..] | length`, `.[0]`, `.[1:]`, `[range(1000) as $i | $o[1:] | length]`, `.[10:20] = [1]`,
		`.[] += 1`, `.[] |= empty`, `.. |= .`, `(.[:5], .[3:]) |= .`,
		`.a`, `[range(100000) as $i | $o[5]?] | length`, `[range(100000) as $i | try ($o as [$x] | 1) catch 0] | length`,
		`[range(100000) as $i | try {($o): 1} catch 0] | length`,
		`[range(100000) as $i | try path($o | .a) catch 0] | length`, `[range(100000) as $i | -$o?] | length`, `-.`,
		`[range(1000) as $i | $o.a.b?] | length`,
		`"\(.) \(.)"`, `{a: ., b: [.]} | tojson`, `. as [$a, $b] | $a`, `[.[]? as $x | $x]`, `.[$o[0]?]?`, `$o[$o]?`,
		`del(.[0])`, `del(.[])`, `del(.[:5])`,
		`def f: (., 1) | f; f`, `def f: try f catch .; f`, `label $a | def f: label $b | f; f`, `def f: [f]; f`,
		`reduce range(1e9) as $i (.; [.])`, `[repeat({a: 1, b: 2})]`,
		`reduce range(60) as $i (.; [., .]) | delpaths([[0, 0]])`, `reduce range(60) as $i (.; [., .]) | del(.[0][0])`,
		`(.[0]?) |= empty`,
		`[range(100000) as $i | $o.a?] | length`, `[range(100000) as $i | $o["a"]?] | length`,
		`[range(100000) as $i | $o[:1]?] | length`, `[range(100000) as $i | $o[]?] | length`,
		`(try {($o): 1} catch {}) as $l | [range(1000)] | map($l) | add`, `[range(1000) | {key: $o, value: 1}] | from_entries | length`, `[range(1000) | {name: $o, value: 1}] | from_entries | length`,
		`[range(1000)] | INDEX($o) | length`, `("a" * 1000) as $t | [range(100000)] | map($t * 100) | length`,
		`[range(1000) as $i | try ($o | add(.[]?)) catch 0] | length`,
		`{a: ., b: ., c: .} as $m | [range(1000)] | map($o) | join("")`, `[range(1000)] | map($o) | add`,
		`[range(1000) | {key: tostring, value: $o}] | from_entries | join("")`,
	}
	for _, form := range []string{
		`$m[$o]`, `$m | has($o)`, `$m | getpath([$o])`, `$m | setpath([$o]; 1)`, `$m | .[$o] = 1`, `$m | .[$o] |= 1`,
		`$m as {($o): $x} | 1`, `$m["\($o)"]`,
		`{"\($o)": 1}`, `$l + $l`, `$l * $l`, `$l | keys`, `$l | map_values(1)`, `$l | .b = 1`, `$l | del(.b)`,
		`$l | with_entries(.)`, `$l == $l`, `[$l, $l] | unique`, `$l | tojson`,
		`$l | .[]`, `$l | walk(1)`, `[$l | paths]`, `$l | pick(.b)`, `$l | inside($l)`, `$l | to_entries`, `[$l] | add`,
		`[$l | ..]`} {
		calls = append(calls, `([range(20) | {key: tostring, value: 1}] | from_entries) as $m | (try {($o): 1} catch {}) as $l | [range(100000) as $i | try (`+form+`) catch 0] | length`)
	}
	for _, op := range []string{"+", "-", "*", "/", "%", "==", "<", "and", "//", ","} {
		calls = append(calls, `. `+op+` $o`, `(.[:3000]? // .) as $s | $s `+op+` $s`,
			`[range(20000) as $i | try ($o `+op+` $o) catch 0] | length`)
	}
	for _, format := range []string{
		"@text", "@json", "@html", "@uri", "@urid", "@csv", "@tsv", "@sh", "@base64", "@base64d"} {
		calls = append(calls, format, format+` "x\(.)y"`, `[.[]? | `+format+`] | length`)
	}
	return calls
}

// TestEveryBuiltinIsBounded tries every function and construct with values as large as the limits allow. As all of them
// take minutes, it tries some for a few seconds, and all with SIGNALBOX_PROVE=1.
func TestEveryBuiltinIsBounded(t *testing.T) {
	sources := syntaxCalls()
	for _, forms := range builtinCalls() {
		sources = append(sources, forms...)
	}
	slices.Sort(sources)
	sources = slices.Compact(sources)
	order := rand.New(rand.NewPCG(1, 2))
	order.Shuffle(len(sources), func(i, j int) { sources[i], sources[j] = sources[j], sources[i] })
	values, compiler := largeValues(), jq.NewCompiler()
	begun, tried := time.Now(), 0
	prove := os.Getenv("SIGNALBOX_PROVE") != ""
	limit, most := longest, uint64(largest)
	if !prove {
		limit, most = 3*longest, 2*largest // other programs use the same caches and memory
	}
	collectBetween(t)
	for _, source := range sources {
		program, err := compiler.Compile(source, []string{"o"})
		require.NoError(t, err, source)
		for _, name := range slices.Sorted(maps.Keys(values)) {
			if !prove && time.Since(begun) > 15*time.Second {
				t.Logf("tried %d of %d", tried, len(sources)*len(values))
				return
			}
			tried++
			if took, made := bounded(program, values[name], limit, most); took > limit || made > most {
				t.Errorf("%s on %s took %v and made %d MiB", source, name, took, made>>20)
				break // the other values would take as long
			}
		}
	}
	t.Logf("tried all %d in %v", tried, time.Since(begun))
}

// collectBetween turns the garbage collector off until the test ends: its work on the hundreds of MiB of live values
// would count as time of the expression that runs. [bounded] collects garbage between two evaluations.
func collectBetween(t *testing.T) {
	t.Helper()
	before := debug.SetGCPercent(-1)
	t.Cleanup(func() { debug.SetGCPercent(before) })
}

// bounded evaluates a program until it is within the limits, a few times at most. The time is processor time, which
// depends little on other load, so that a time far over the limit is not tried again.
func bounded(program *jq.Program, v any, limit time.Duration, most uint64) (took time.Duration, made uint64) {
	const (
		garbage = 1 << 30
		noise   = 4
	)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for range tries {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		begun := processorTime()
		_, _ = program.Run(v, map[string]any{"o": v}, jq.NewFuel(interp.DefaultLimits().ExpressionFuel))
		took = processorTime() - begun
		runtime.ReadMemStats(&after)
		if after.HeapAlloc > garbage {
			runtime.GC()
		}
		if made = after.TotalAlloc - before.TotalAlloc; took <= limit && made <= most || took > noise*limit {
			break
		}
	}
	return took, made
}

// processorTime is the processor time of this thread; wall time where the system does not report it.
func processorTime() time.Duration {
	const thisThread = 1 // RUSAGE_THREAD of Linux
	var usage syscall.Rusage
	if err := syscall.Getrusage(thisThread, &usage); err != nil {
		return time.Duration(time.Now().UnixNano())
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// TestDeepRecursionIsBounded has expressions that look variables up through thousands of frames, which took seconds.
func TestDeepRecursionIsBounded(t *testing.T) {
	t.Parallel()
	pairs := largeValues()["pairs"]
	for _, source := range []string{
		`first(combinations)`,
		`5 as $y | def f: if . > 500 then reduce range(1e9) as $i (0; $y) else 0 + (. + 1 | f) end; 0 | f`,
		`5 as $y | def f: if . > 300 then reduce range(1e9) as $i (0; $y) else first(first(first(first(. + 1 | f)))) end; 0 | f`,
		`5 as $y | def f: if . > 300 then reduce range(1e9) as $i (0; $y) else .[. + 1 | f]? end; 0 | f`,
		`5 as $y | def g(x): x; def f: if . > 300 then reduce range(1e9) as $i (0; $y) else . + 1 | g(f) end; 0 | f`,
		`5 as $y | def f: def g: f; if . > 2000 then reduce range(1e9) as $i (0; $y) else . + 1 | g end; 0 | f`,
	} {
		program, err := jq.Compile(source, []string{"o"})
		require.NoError(t, err)
		_, err = program.Run(pairs, nil, jq.NewFuel(interp.DefaultLimits().ExpressionFuel))
		require.ErrorIs(t, err, jq.ErrFuel, source)
		took, _ := bounded(program, pairs, 2*longest, math.MaxUint64)
		require.Less(t, took, 3*longest, source)
	}
	for source, want := range map[string]any{
		`def f: if . >= 10000 then . else . + 1 | f end; 0 | f`:                                               10000,
		`def fac: if . <= 1 then 1 else . * (. - 1 | fac) end; 20 | fac`:                                      2432902008176640000,
		`def f: if type == "array" then .[0] | f else . end; reduce range(900) as $i (1; [.]) | f`:            1,
		`[reduce range(900) as $i (1; [.]) | walk(if type == "number" then . + 1 else . end) | .. | numbers]`: []any{2},
		`def f(g): if . > 3 then . else g | f(g) end; def first: "mine"; [1 | f(. + 1), first, ([7] | first(.[]))]`: []any{
			4, "mine", 7},
		`def f($x): def f: $x + 1; f; def f($x; $y): $x * $y; [f(1), f(2; 3)]`: []any{2, 6},
	} {
		got, err := run(source, nil, nil, jq.NewFuel(interp.DefaultLimits().ExpressionFuel))
		require.NoError(t, err, source)
		require.Equal(t, want, got, source)
	}
}

// TestEveryBuiltinIsListed fails if gojq or the library has a function without a test of its cost.
func TestEveryBuiltinIsListed(t *testing.T) {
	t.Parallel()
	query, err := gojq.Parse(`[builtins]`)
	require.NoError(t, err)
	code, err := gojq.Compile(query)
	require.NoError(t, err)
	all, _ := code.Run(nil).Next()
	list, _ := all.([]any)
	if nested, ok := list[0].([]any); ok {
		list = nested
	}
	require.NotEmpty(t, list)
	tried := builtinCalls()
	allowed := 0
	for _, e := range list {
		name, arity, _ := strings.Cut(e.(string), "/")
		form := name + "(" + strings.TrimSuffix(strings.Repeat(".; ", int(arity[0]-'0')), "; ") + ")"
		if arity == "0" {
			form = name
		}
		if _, err := jq.Compile(form, nil); err != nil {
			continue // not allowed
		}
		allowed++
		require.Contains(t, tried, e, "%s is allowed: add it to builtinCalls", e)
	}
	require.Greater(t, allowed, 150)
	for _, name := range jq.Builtins() {
		require.Contains(t, tried, name, "%s is in the library: add it to builtinCalls", name)
	}
}

// TestJoinWithoutSeparatorIsBounded joins a text with itself many times: null is a separator, too.
func TestJoinWithoutSeparatorIsBounded(t *testing.T) {
	program, err := jq.Compile(`[range(1000)] | map($o) | join(null)`, []string{"o"})
	require.NoError(t, err)
	_, made := bounded(program, strings.Repeat("x", 1_000_000), 3*longest, 2*largest)
	require.Less(t, made, uint64(2*largest))
}
