package jq_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/itchyny/gojq"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/signalbox-dev/signalbox/dsl/jq"
)

func decode(t require.TestingT, s string) any {
	v, err := jq.DecodeJSON([]byte(s))
	require.NoError(t, err)
	return v
}

func run(source string, input any, vars map[string]any, fuel *jq.Fuel) (any, error) {
	names := make([]string, 0, len(vars))
	for name := range vars {
		names = append(names, name)
	}
	p, err := jq.Compile(source, names)
	if err != nil {
		return nil, err
	}
	return p.Run(input, vars, fuel)
}

// TestSameAsJQ compares every guarded construct with gojq without guards.
func TestSameAsJQ(t *testing.T) {
	t.Parallel()
	const input = `{"a":[3,1,2],"b":{"c":"xyz","d":null},"s":"a,b,,c","n":7,"f":1.5,"o":[{"k":"x","v":1},{"k":"y","v":2},{"k":"x","v":3}],"deep":{"x":{"y":[{"z":1},{"z":2}]}},"big":12345678901234567890}`
	for _, source := range sameAsJQ() {
		t.Run(source, func(t *testing.T) {
			t.Parallel()
			query, err := gojq.Parse(source)
			require.NoError(t, err)
			code, err := gojq.Compile(query)
			require.NoError(t, err)
			want, _ := code.Run(decode(t, input)).Next()
			in := decode(t, input)
			got, err := run(source, in, nil, nil)
			if wantErr, failed := want.(error); failed {
				require.Error(t, err)
				_, message, _ := strings.Cut(err.Error(), `": `)
				require.Contains(t, wantErr.Error(), message)
				return
			}
			require.NoError(t, err)
			require.Equal(t, jq.Normalize(want), got)
			require.Equal(t, decode(t, input), in, "the input must not change")
		})
	}
}

func sameAsJQ() []string {
	return []string{
		`.`, `.a`, `.a[0]`, `.a[-1]`, `.a[9]`, `.["a"]`, `.b.c`, `."b"."c"`, `.a[1:]`, `.a[:-1]`, `.s[2:4]`, `.missing.x`,
		`.a.x`, `.n[0]?`, `[.a[]?]`,
		`.a | length`, `[.a[] + 1]`, `.n + .f`, `.s + "!"`, `.a + [9]`, `.b + {e: 1}`, `null + 1`, `1 - 2`, `.a - [1]`,
		`"a" - 1`, `3 * 4`, `"ab" * 3`, `{a:{b:1}} * {a:{c:2}}`,
		`7 / 2`, `"a,b" / ","`, `1 / 0`, `7 % 3`, `-5 % 3`, `-(.n)`, `9007199254740993 + 1`, `.big + 1`, `.big * .big`,
		`4611686018427387904 + 4611686018427387904`, `2147483648 * 2147483648`,
		`.a == [3,1,2]`, `.a != .b`, `.n > 3 and .n < 9`, `.n >= 7 or false`, `.n <= "x"`, `.missing // "d"`,
		`[.a[] | select(. > 1)]`, `.a | map(. * 2)`, `.b | map_values(tostring)`,
		`.b | map_values(empty)`, `.a | map_values(. + 1)`, `.b | to_entries`,
		`.o | map({key: .k, value: .v}) | from_entries`, `.b | with_entries(.value |= tostring)`,
		`.a | add`, `.s | explode | implode`, `[.o[].k] | add`, `[.o[]] | add`, `add(.a[])`, `.a | any(. > 2)`,
		`.a | all(. > 2)`, `[true, false] | any, all`, `[] | add`,
		`.a | sort`, `.a | sort_by(-.)`, `.o | group_by(.k)`, `.o | unique_by(.k)`, `.o | min_by(.v)`, `.o | max_by(.v)`,
		`.a | min`, `.a | max`, `.a | unique`, `.a | reverse`, `.s | reverse`,
		`[1,[2,[3]]] | flatten`, `[1,[2,[3]]] | flatten(1)`, `[range(5)]`, `[range(2;5)]`, `[range(0;10;3)]`,
		`[limit(2; .a[])]`, `first(.a[])`, `[first, last]?`, `.a | first, last`, `last(.a[])`, `nth(1; .a[])`, `.a | nth(1)`,
		`[.a[] | until(. > 10; . * 2)]`, `[1 | while(. < 20; . * 2)]`, `[recurse(if . < 3 then . + 1 else empty end; true)?]`,
		`[1 | recurse(if . < 3 then . + 1 else empty end)]`, `[..] | length`, `[.deep | .. | numbers]`,
		`.s | split(",")`, `.s | [splits(",+")]`, `.s | split(",+"; null)`, `["a","b"] | join("-")`,
		`["a",1,null,true] | join(",")`, `["a",1,null,true] | join(null)`, `[] | join(null)`, `.s | test("B"; "i")`,
		`.s | test("zz")`, `.s | [match(","; "g").offset]`, `.s | capture("(?<x>[a-c]),(?<y>[a-c])")`,
		`.s | [scan("[a-c]")]`, `.s | sub(",";";")`, `.s | gsub(",";";")`, `.s | gsub("(?<l>[a-c])"; .l + .l)`,
		`.s | gsub("";"-")`, `"aXbxc" | gsub("x";"-";"i")`, `"aXbxc" | [splits("x";"i")]`, `"héé" | gsub("é";"e")`,
		`.s | gsub("^";">")`,
		`.s | ascii_upcase`, `"ABC" | ascii_downcase`, `" x " | trim, ltrim, rtrim`, `.s | ltrimstr("a,")`,
		`.s | startswith("a")`, `.s | index(",")`, `.s | rindex(",")`, `.s | indices(",")`, `.a | index(1)`,
		`.a | indices([1,2])`,
		`.a | contains([1])`, `"foobar" | contains("bar")`, `{a:1} | inside({a:1,b:2})`, `.a | has(0)`, `.b | has("c")`,
		`"c" | in({c:1})`, `.b | keys`, `.a | keys`, `.b | length`,
		`.n | tostring`, `.b | tojson`, `"[1,{\"a\":2}]" | fromjson`, `"12" | tonumber`, `"x" | tonumber`,
		`.a | tojson | fromjson`, `"v: \(.n) \(.b)"`, `@json "x\(.b)"`, `@base64 "\(.s)"`, `.s | @base64 | @base64d`,
		`@uri "\("a b&")"`, `.a | @csv`, `["a b"] | @sh`, `.s | @html`, `.a | @tsv`, `@text`,
		`{a: 1, "b": 2, (.s): 3, "c\(.n)": 4, @base64 "x": 5, $__v: 6}`[:0] +
			`{a: 1, "b": 2, (.s): 3, "c\(.n)": 4}`, `{n, "s"}`, `{a: (1,2)}`, `{(.o[].k): 1}`, `.n as $x | {$x}`, `{"\("n")"}`,
		`.a as [$x, $y] | $x + $y`, `.b as {c: $v} | $v`, `.b as {$c} | $c`, `.o[] as {k: $k, v: $v} | [$k, $v]`,
		`.a as [$x] ?// $x | $x`, `reduce .a[] as $i (0; . + $i)`, `[foreach .a[] as $i (0; . + $i; [$i, .])]`,
		`. as $d | [.a[] | . + $d.n]`,
		`if .n > 3 then "y" else "n" end`, `if .n > 30 then "y" elif .n > 3 then "m" end`, `try error("x") catch .`,
		`try error({a:1}) catch .a`, `error("boom")`, `.a | error`,
		`[.a[] | try (if . == 1 then error("e") else . end) catch "c"]`, `label $out | foreach .a[] as $i (0; . + $i; if . > 3 then ., break $out else empty end)`,
		`def f: . + 1; .n | f`, `def f($x; g): $x + g; f(1; .n)`,
		`def fac: if . <= 1 then 1 else . * (. - 1 | fac) end; 6 | fac`, `def map(f): "mine"; map(.)`,
		`def f(g): [g, g]; f(.a[])`,
		`.a[1] = 9`, `.b.c |= ascii_upcase`, `.n += 1`, `.n -= 1`, `.n *= 2`, `.n /= 2`, `.n %= 2`, `.missing //= 5`,
		`.n //= 5`, `.a[] += 1`, `.o[].v |= . * 10`, `.a[1:] = ["x"]`, `.a[1:] |= map(. * 2)`, `.a[5] = 1`, `.x.y.z = 1`,
		`.a[-1] = 7`, `.a[-9] = 7`, `.n.x = 1`, `.a.x |= 1`,
		`.a |= map(select(. > 1))`, `(.a[] | select(. > 1)) |= empty`, `.a[] |= empty`, `(.a, .n) = 0`,
		`(.. | numbers) |= . + 1`, `.deep.x.y[].z |= . + 1`, `(.a | first) |= 100`, `.a |= (.[0] = 5)`, `.b |= ., .n |= 3`,
		`.o |= map(.v += 1)`, `.a = (.n, .f)`, `.b.c += "q" | .b`, `.o[0] |= with_entries(.key += "_")`,
		`(.a[], .o[].v) |= . + 1`, `.o |= (.[0] |= [., .] | .[1].v |= 9)`,
		`. as $all | .o |= [$all.a, .] | .o[0][0] = 99 | [.o, $all.a]`, `.b |= [.] | .b[0].c = "k"`,
		`reduce range(5) as $i (.a; .[$i] |= ($i | [., .]))`,
		`path(.a[0])`, `[paths]`, `[paths(type == "number")]`, `[leaf_paths]`[:0] +
			`[path(..)] | length`, `getpath(["b","c"])`, `getpath(["x","y"])`, `setpath(["b","c"]; 1)`, `setpath([]; 1)`,
		`delpaths([["a",0],["b"]])`, `del(.a[0,2])`, `del(.b.c, .n)`, `del(.a[1:])`, `del(.o[] | select(.k == "x"))`,
		`pick(.b.c)`, `pick(.a[1])`, `to_entries | length`,
		`.a | transpose?`, `[[1,2],[3]] | transpose`, `[[1,2],[3,4]] | [combinations]`, `[2 | [range(.)] | combinations(2)]`,
		`.a | [walk(if type == "number" then . + 1 else . end)]`, `walk(if type == "object" then del(.d) else . end)`,
		`.o | INDEX(.k) | keys`, `INDEX(.o[]; .v) | keys`, `.n | IN(1, 7)`, `IN(.a[]; 2, 8)`, `.a | bsearch(2)`,
		`[.a | sort | bsearch(2)]`, `.n | floor, sqrt`, `pow(2;10)`, `10 | log10`, `infinite | isinfinite`,
		`[nan] | .[0] | isnan`, `.f | tostring`, `1e3`, `.n | toarray`[:0] + `1.0`,
		`1425599621 | todate`, `"2015-03-05T23:51:47Z" | fromdate`, `1425599621 | gmtime | mktime`,
		`1425599621 | strftime("%Y")`, `"2015" | strptime("%Y") | mktime`, `.a | .[1] as $x | .[$x]`, `.b[("c","d")]`,
		`.["a","n"]`, `[.a | .[0:2][]]`, `.a | .[1:][0]`, `..?`, `.a | not`, `[.a[] | . as $x | [$x, $x * 2] | add]`,
		`limit(1; repeat(1))`, `isempty(empty)`, `empty`, `[.[]?] | length`, `@json`, `ltrimstr("x")`, `splits("a")`,
		`tojson`, `ascii_downcase`, `.a | .[1.7]`, `.a | .[nan]`, `{} | .a.b |= 1`, `[[1,2,3] | .[1:] | .[0] = 9]`,
	}
}

func TestFirstResultAndVariables(t *testing.T) {
	t.Parallel()
	got, err := run(`1, error("later results are not computed")`, nil, nil, nil)
	require.NoError(t, err)
	require.Equal(t, 1, got)
	got, err = run(`empty`, 1, nil, nil)
	require.NoError(t, err)
	require.Nil(t, got)
	p, err := jq.Compile(`[$a, $b]`, []string{"a", "b"})
	require.NoError(t, err)
	got, err = p.Run(nil, map[string]any{"a": 1, "other": 2}, nil)
	require.NoError(t, err)
	require.Equal(t, []any{1, nil}, got)
	require.Equal(t, `[$a, $b]`, p.Source())
}

func TestRefusedAtCompile(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]string{
		`env`: "not allowed", `$ENV`: "no variable $ENV",
		`input`: "not allowed", `[inputs]`: "not allowed",
		`halt`: "not allowed", `halt_error(1)`: "not allowed", `debug`: "not allowed", `builtins`: "not allowed",
		`_multiply("x"; 9)`: "no function", `_range(0;1;1)`: "no function", `tostream`: "no function",
		`fromstream(1)`: "no function", `__touch(1)`: "no function",
		`$__fuel`: "no variable", `. as $__fuel | 1`: "reserved", `def __add(a;b;c): 1; 1+1`: "reserved",
		`include "x"; .`: "modules", `import "x" as y; .`: "modules",
		`.a | frobnicate`: "no function frobnicate/0", `map`: "does not take 0", `$nope`: "no variable $nope",
		`{$nope}`: "no variable $nope", `@xyz`: "no format", `.a[`: "unexpected EOF",
		`. as [$a] | $b`: "no variable $b", `def f($x): $x; $x`: "no variable $x", `1` +
			strings.Repeat("0", 2000): "over the limit", `$__loc__`: "no variable",
	} {
		_, err := jq.Compile(source, nil)
		var se *jq.SyntaxError
		require.ErrorAs(t, err, &se, source)
		require.Contains(t, se.Message, want, source)
	}
}

func TestErrorPlaces(t *testing.T) {
	t.Parallel()
	for source, offset := range map[string]int{`.a + $nope`: 5, `.a | frob`: 5, `.env | env`: 7, `.a +`: 4, `.a ) b`: 3} {
		_, err := jq.Compile(source, nil)
		var se *jq.SyntaxError
		require.ErrorAs(t, err, &se, source)
		require.Equal(t, offset, se.Offset, source)
	}
}

// TestBounded runs expressions that would hang, exhaust memory or crash the process if anything were unguarded.
func TestBounded(t *testing.T) {
	t.Parallel()
	for _, source := range []string{
		`def f: f; f`, `[repeat(1)]`, `[range(1e12)]`, `until(false; .)`, `[limit(1e9; repeat(0))]`, `last(range(1e12))`,
		`setpath([500000000]; 1)`, `.[500000000] = 1`, `null | .[500000000] = 1`, `[] | .[5e8] |= 1`,
		`null | nth(500000000) = 1`, `null | getpath([500000000]) = 1`, `null | setpath(["a", 500000000]; 1)`,
		`pick(.[500000000])`, `def f: .[400000000]; null | f = 1`, `500000000 as $i | null | .[$i] = 1`,
		`"x" * 1e9`, `"x" * 100000000`, `reduce range(60) as $i ("x"; . + .)`, `reduce range(60) as $i ([1]; . + .)`,
		`reduce range(60) as $i ("ab"; . * 4)`, `[range(1000) | "x" * 1000000] | add`,
		`[range(1000) | "x" * 1000000] | join("")`, `[range(100000) | "x"] | join("x" * 100000)`,
		`reduce range(60) as $i (1; [., .])`, `reduce range(60) as $i (1; [., .]) | flatten`,
		`reduce range(60) as $i (1; [., .]) | tojson`, `reduce range(60) as $i (1; [., .]) | tostring`,
		`reduce range(60) as $i (1; [., .]) as $x | $x == $x`, `reduce range(60) as $i (1; [., .]) as $x | [$x, $x] | sort`,
		`reduce range(60) as $i (1; [., .]) as $x | [1, 2] | sort_by($x)`, `reduce range(60) as $i (1; [., .]) as $x | [$x] | contains([$x])`, `reduce range(60) as $i (1; [., .]) as $x | [$x] - [$x]`, `reduce range(60) as $i (1; [., .]) | error`, `reduce range(60) as $i (1; [., .]) | "\(.)"`, `reduce range(60) as $i (1; [., .]) as $x | [$x] | index($x)`, `reduce range(60) as $i (1; [., .]) | @json`, `reduce range(60) as $i (1; [., .]) as $x | $x | IN($x)`, `reduce range(60) as $i (1; [., .]) as $x | [$x, $x] | unique`, `reduce range(60) as $i (1; {a: ., b: .}) as $x | $x * $x`,
		`reduce range(200000) as $i (1; [.])`, `reduce range(200000) as $i (1; [.]) | tojson`,
		`reduce range(200000) as $i (1; [.]) as $x | $x == $x`, `[reduce range(200000) as $i (1; [.]) | path(..)]`,
		`limit(100000; recurse(.a)) |= 1`, `[limit(100000; path(recurse(.a)))]`, `("[" * 100000) | fromjson`,
		`[range(100000)] | [.[] as $x | first(.[])]`,
		`reduce range(40) as $i (3; . * .)`, `("9" * 100000) | tonumber`, `("9" * 100000) | fromjson`,
		`[range(5000)] | transpose`, `[[range(100000)]] + [range(1000) | []] | transpose`,
		`("a" * 100000) | [match(""; "g")]`, `("a" * 50000) | [match(""; "g")]`, `("a" * 50000) | gsub("a"; "b" * 100000)`,
		`("(a*)*" * 500) as $re | ("a" * 100000) | test($re)`,
		`[[range(1000)], [range(1000)], [range(1000)]] | [combinations]`, `1425599621 | strftime("%999999999d")`,
		`1425599621 | strftime("%Y" * 100000)`, `[range(200000)] | .[] |= error`,
		`[range(100000)] | [.[] |= .] | .[0] | map_values(.) | map_values(.) | [.[:50000][] as $x | .[1:][0]]`, `("x" * 1000000) | [range(100000) as $i | .[$i:$i+1]]`, `[range(50000) | tostring] | INDEX(.) | [keys[] as $k | to_entries]`,
	} {
		t.Run(source, func(t *testing.T) {
			t.Parallel()
			_, err := run(source, nil, nil, jq.NewFuel(1_000_000))
			require.Error(t, err)
			_, err = run(source, nil, nil, jq.NewFuel(100_000))
			_, again := run(source, nil, nil, jq.NewFuel(100_000))
			require.EqualError(t, again, err.Error(), "the same outcome every time")
		})
	}
}

func TestErrorsAreTyped(t *testing.T) {
	t.Parallel()
	_, err := run(`def f: f; f`, nil, nil, jq.NewFuel(1000))
	require.ErrorIs(t, err, jq.ErrFuel)
	require.ErrorContains(t, err, "1000 units")
	_, err = run(`"x" * 1e9`, nil, nil, nil)
	require.ErrorIs(t, err, jq.ErrSize)
	_, err = run(`try ("x" * 1e9) catch "caught"`, nil, nil, nil)
	require.NoError(t, err)
	_, err = run(`try (def f: f; f) catch "caught"`, nil, nil, jq.NewFuel(1000))
	require.ErrorIs(t, err, jq.ErrFuel, "a program cannot catch the end of its budget")
	_, err = run(`.a.b`, map[string]any{"a": 1}, nil, nil)
	require.False(t, errors.Is(err, jq.ErrFuel) || errors.Is(err, jq.ErrSize))
	require.ErrorContains(t, err, `evaluate ".a.b": expected an object`)
}

func TestFuelIsExact(t *testing.T) {
	t.Parallel()
	const source = `[.a[] | select(. > 1) | {v: ., t: tojson}] | sort_by(.v) | map(.t) | join(",")`
	input := map[string]any{"a": []any{5, 1, 4, 2, 3}}
	fuel := jq.NewFuel(100_000)
	want, err := run(source, input, nil, fuel)
	require.NoError(t, err)
	used := fuel.Used()
	require.Positive(t, used)
	require.Equal(t, 100_000-used, fuel.Remaining())
	for range 20 {
		exact := jq.NewFuel(used)
		got, err := run(source, input, nil, exact)
		require.NoError(t, err)
		require.Equal(t, want, got)
		require.Zero(t, exact.Remaining())
		_, err = run(source, input, nil, jq.NewFuel(used-1))
		require.ErrorIs(t, err, jq.ErrFuel)
	}
}

func TestFuelIsShared(t *testing.T) {
	t.Parallel()
	fuel := jq.NewFuel(500)
	var err error
	for range 100 {
		if _, err = run(`[range(10)]`, nil, nil, fuel); err != nil {
			break
		}
	}
	require.ErrorIs(t, err, jq.ErrFuel)
	require.Equal(t, int64(500), fuel.Used())
}

func TestLongListsStayCheap(t *testing.T) {
	t.Parallel()
	list := make([]any, 20_000)
	for i := range list {
		list[i] = map[string]any{"n": i}
	}
	for _, source := range []string{`.[].n |= . + 1`, `map(.n += 1)`, `map_values(.n)`, `map(select(.n > 5)) | length`} {
		_, err := run(source, list, nil, jq.NewFuel(jq.DefaultFuel))
		require.NoError(t, err, source)
	}
	require.Equal(t, map[string]any{"n": 0}, list[0])
}

func TestNumbersKeepTheirDigits(t *testing.T) {
	t.Parallel()
	for _, s := range []string{
		`0`, `-1`, `9007199254740993`, `9223372036854775808`, `-123456789012345678901234567890`, `1.5`, `1e+300`, `1e-07`,
		`[1,{"a":12345678901234567890}]`} {
		out, err := jq.EncodeJSON(decode(t, s))
		require.NoError(t, err)
		require.Equal(t, s, string(out))
		v, err := run(`.`, decode(t, s), nil, nil)
		require.NoError(t, err)
		out, err = jq.EncodeJSON(v)
		require.NoError(t, err)
		require.Equal(t, s, string(out))
	}
	v, err := run(`. + 1`, decode(t, `9007199254740993`), nil, nil)
	require.NoError(t, err)
	require.Equal(t, 9007199254740994, v)
}

func TestDecodeJSONRefuses(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]string{
		`{} x`: "after the value", ``: "EOF", `[1,`: "EOF", `1e999`: "out of range",
		strings.Repeat("[", 2000): "nested deeper", strings.Repeat("9", 2000): "over the limit",
	} {
		_, err := jq.DecodeJSON([]byte(s))
		require.ErrorContains(t, err, want, "%.20s", s)
	}
}

func TestEncodeJSON(t *testing.T) {
	t.Parallel()
	out, err := jq.EncodeJSON(map[string]any{"b": []any{nil, true, 1.0, "<\n\x01\u2028\"\\\xff"}, "a": big.NewInt(5)})
	require.NoError(t, err)
	require.Equal(t, "{\"a\":5,\"b\":[null,true,1,\"<\\n\\u0001\u2028\\\"\\\\\ufffd\"]}", string(out))
	deep := any(1)
	for range 2000 {
		deep = []any{deep}
	}
	_, err = jq.EncodeJSON(deep)
	require.ErrorContains(t, err, "nested deeper")
}

// TestEncodeText has escapes and invalid UTF-8 at every position; encoding/json reads them back.
func TestEncodeText(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOf(rapid.SampledFrom([]rune("aäß→𝄞 \"\\/\b\f\n\r\t\x00\x1f\x7f\ufffd"))).Draw(t, "text")
		text += string(rapid.SliceOfN(rapid.Byte(), 0, 4).Draw(t, "bytes")) + text
		out, err := jq.EncodeJSON(text)
		require.NoError(t, err)
		var back string
		require.NoError(t, json.Unmarshal(out, &back))
		require.Equal(t, string([]rune(text)), back, "%q", out)
	})
}

func TestNormalize(t *testing.T) {
	t.Parallel()
	type point struct {
		X int `json:"x"`
	}
	huge, _ := new(big.Int).SetString("123456789012345678901234567890", 10)
	require.Equal(t, map[string]any{
		"a": 1, "b": []any{2, 2.5, huge}, "c": map[string]any{"x": 3}, "d": nil, "e": []any{1}},
		jq.Normalize(map[string]any{
			"a": int64(1), "b": []any{uint8(2), float32(2.5), huge}, "c": point{3}, "d": func() {}, "e": []int{1}}))
}

func TestRoundTripProperty(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		v := drawValue(t, 3)
		first, err := jq.EncodeJSON(v)
		require.NoError(t, err)
		second, err := jq.EncodeJSON(decode(t, string(first)))
		require.NoError(t, err)
		require.Equal(t, string(first), string(second))
	})
}

func drawValue(t *rapid.T, depth int) any {
	switch kind := rapid.IntRange(0, 3+2*min(depth, 1)).Draw(t, "kind"); kind {
	case 0:
		return rapid.Int().Draw(t, "int")
	case 1:
		return rapid.Float64Range(-1e20, 1e20).Draw(t, "float")
	case 2:
		return rapid.String().Draw(t, "string")
	case 3:
		return nil
	case 4:
		out := make([]any, rapid.IntRange(0, 3).Draw(t, "length"))
		for i := range out {
			out[i] = drawValue(t, depth-1)
		}
		return out
	}
	out := make(map[string]any)
	for range rapid.IntRange(0, 3).Draw(t, "length") {
		out[rapid.String().Draw(t, "key")] = drawValue(t, depth-1)
	}
	return out
}

// FuzzRun finds panics and results that differ between runs.
func FuzzRun(f *testing.F) {
	for _, s := range sameAsJQ() {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, source string) {
		input := map[string]any{"a": []any{3, 1, 2}, "b": map[string]any{"c": "x"}, "n": 7}
		outcome := func() string {
			fuel := jq.NewFuel(20_000)
			v, err := run(source, input, map[string]any{"v": 1}, fuel)
			return fmt.Sprint(v, err, fuel.Used())
		}
		first := outcome()
		require.Equal(t, first, outcome())
	})
}

// TestTimes: now is the time of the budget, the zone is UTC, and fromdate reads every date and time of RFC 3339.
func TestTimes(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 20, 3, 0, 0, 250_000_000, time.UTC)
	for source, want := range map[string]any{
		`now`:                                                                        1795143600.25,
		`[now, now] | unique | length`:                                               1,
		`now | floor | date`:                                                         "2026-11-20T03:00:00Z",
		`now | floor | todate`:                                                       "2026-11-20T03:00:00Z",
		`1795143600 | localtime | mktime`:                                            1795143600,
		`1795143600 | strflocaltime("%H:%M %Z")`:                                     "03:00 UTC",
		`1795143600 | dateadd("seconds"; 60)`:                                        1795143660,
		`1795143600 | datesub("seconds"; 60)`:                                        1795143540,
		`"2026-11-20T03:00:00Z" | fromdate`:                                          1795143600,
		`"2026-11-20T03:00:00.1Z" | fromdate`:                                        1795143600.1,
		`"2026-11-20T03:00:00.125000000Z" | fromdate`:                                1795143600.125,
		`"2026-11-20T04:00:00.5+01:00" | fromdateiso8601`:                            1795143600.5,
		`"2026-11-20T03:00:00.000Z" | fromdate | tojson`:                             "1795143600",
		`"2026-11-20T03:00:00.5Z" | fromdate | todate`:                               "2026-11-20T03:00:00Z",
		`try ("2026-11-20T03:00:00.Z" | fromdate) catch "no"`:                        "no",
		`try ("2026-11-20T03:00:00.5" | fromdate) catch "no"`:                        "no",
		`try ("2026-11-20T03:00:00.5Z" | strptime("%Y-%m-%dT%H:%M:%SZ")) catch "no"`: "no",
	} {
		fuel := jq.NewFuel(jq.DefaultFuel)
		fuel.Now = at
		got, err := run(source, nil, nil, fuel)
		require.NoError(t, err, source)
		require.EqualValues(t, want, got, source)
	}
	_, err := run(`now`, nil, nil, nil)
	require.ErrorContains(t, err, "no run with a time")
	whole := jq.NewFuel(jq.DefaultFuel)
	whole.Version1 = true
	_, err = run(`"2026-11-20T03:00:00.1Z" | fromdate`, nil, nil, whole)
	require.Error(t, err)
}
