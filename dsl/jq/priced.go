package jq

import "strings"

// chargedNatives are gojq's functions that charge for the texts and the numbers they read, by the number of their
// arguments.
func chargedNatives() []string {
	return []string{
		`utf8bytelength abs toboolean isnan isinfinite isnormal isfinite finites normals
		 floor round nearbyint rint ceil trunc significand fabs sqrt cbrt exp exp10 exp2 expm1 frexp modf log log10 log1p
		 log2 logb gamma tgamma lgamma erf erfc j0 j1 y0 y1 sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh
		 gmtime mktime todate todateiso8601`,
		``,
		`atan2 copysign drem fdim fmax fmin fmod hypot nextafter nexttoward remainder ldexp scalb scalbln pow`,
		`fma`,
	}
}

// chargedDefinitions are the functions with a guard that charges for their work.
// Package guard documents the charge of each guard.
func chargedDefinitions() []definition {
	out := []definition{
		{"length", `def __length: __subject($__fuel) | length;`},
		{"first", `def __first0: __subject($__fuel) | .[0];`},
		{"last", `def __last0: __subject($__fuel) | .[-1];`},
		{"has", `def __has($k): __having($k; $__fuel) | has($k);`},
		{"in", `def __in(xs): . as $x | xs | __having($x; $__fuel) | has($x);`},
		{"ltrimstr", `def __ltrimstr($x): __affix($x; $__fuel) | ltrimstr($x);`},
		{"rtrimstr", `def __rtrimstr($x): __affix($x; $__fuel) | rtrimstr($x);`},
		{"trimstr", `def __trimstr($x): __affix($x; $__fuel) | __affix($x; $__fuel) | trimstr($x);`},
		{"startswith", `def __startswith($x): __affix($x; $__fuel) | startswith($x);`},
		{"endswith", `def __endswith($x): __affix($x; $__fuel) | endswith($x);`},
		{"jn", `def __jn($l; $r): __bessel($l; $r; $__fuel) | jn($l; $r);`},
		{"yn", `def __yn($l; $r): __bessel($l; $r; $__fuel) | yn($l; $r);`},
		{"recurse", `def __recurse0: __recurse1(__each($__fuel) | .[]?);`},
		{"recurse", `def __recurse1(f): def r: ., (f | __call(0; $__fuel) | r); r;`},
		{"recurse", `def __recurse2(f; cond): def r: ., (f | select(cond) | __call(0; $__fuel) | r); r;`},
		{"while", `def __while(cond; update): def w: if cond then ., (update | __call(0; $__fuel) | w) else empty end; w;`},
		{"map", `def __map(f): [__each($__fuel) | .[] | f];`},
		{"any", `def __any0: any(__each($__fuel) | .[]; .);`},
		{"any", `def __any1(f): any(__each($__fuel) | .[]; f);`},
		{"all", `def __all0: all(__each($__fuel) | .[]; .);`},
		{"all", `def __all1(f): all(__each($__fuel) | .[]; f);`},
		{"add", `def __sum: __total($__fuel);`},
		{"keys", `def __keys: __copied($__fuel) | keys;`},
		{"reverse", `def __reverse: __copied($__fuel) | reverse;`},
		{"to_entries", `def __to_entries: __copied($__fuel) | __each($__fuel) | to_entries;`},
		{"from_entries", `def __from_entries: __entries($__fuel) | from_entries;`},
		{"flatten", `def __flatten0: __leaves($__fuel) | flatten;`},
		{"flatten", `def __flatten1($d): __leaves($__fuel) | flatten($d);`},
		{"contains", `def __contains($x): __overlap($x; $__fuel) | contains($x);`},
		{"inside", `def __inside($x): __overlap($x; $__fuel) | inside($x);`},
		{"indices", `def __indices($x): if type == "string" and ($x | type) == "string" then __find($x; $__fuel) else __find($x; $__fuel) | indices($x) end;`},
		{"index", `def __index1($x): if type == "string" and ($x | type) == "string" then __find($x; $__fuel) | .[0] else __find($x; $__fuel) | index($x) end;`},
		{"rindex", `def __rindex($x): if type == "string" and ($x | type) == "string" then __find($x; $__fuel) | .[-1] else __find($x; $__fuel) | rindex($x) end;`},
		{"bsearch", `def __bsearch($x): __seek($x; $__fuel) | bsearch($x);`},
		{"transpose", `def __transpose: __rotated($__fuel) | transpose;`},
		{"nth", `def __nth($n): __subject($__fuel) | .[$n | __index($__fuel)];`},
		{"path", `def __path1(f): path(f) | __path($__fuel) | __copied($__fuel);`},
		{"getpath", `def __getpath($p): __reach($p | __path($__fuel); $__fuel) | getpath($p);`},
		{"setpath", `def __setpath($p; $v): __along($p | __path($__fuel); $__fuel) | setpath($p; $v);`},
		{"delpaths", `def __delpaths($ps): reduce ($ps | __each($__fuel) | .[]) as $p (.; __along($p | __path($__fuel); $__fuel)) | __erased($ps; $__fuel) | delpaths($ps);`},
		{"walk", `def __walk(f): def w($depth): __call($depth; $__fuel) | if type == "array" then __map(w($depth + 1)) elif type == "object" then __map_values(w($depth + 1)) else . end | f; w(1);`},
		{"map_values", `def __map_values(f): __modify(__each($__fuel) | .[]; f);`},
		{"tojson", `def __tojson: __shape("json"; $__fuel);`},
		{"tostring", `def __tostring: __shape("text"; $__fuel);`},
		{"tonumber", `def __tonumber: __digits($__fuel) | __pay0($__fuel) | tonumber;`},
		{"fromjson", `def __fromjson0: __json($__fuel);`},
		{"explode", `def __explode: __explodable($__fuel) | explode;`},
		{"join", `def __join($s): __concat($s; $__fuel);`},
		{"split", `def __split1($s): __parts($s; $__fuel) | split($s);`},
		{"strftime", `def __strftime($f): __pay0($__fuel) | ($f | __timeformat($__fuel)) as $f | strftime($f);`},
		{"fromdate", `def __fromdate: __fraction($__fuel) as $f | __instant($__fuel) | fromdate | if $f == 0 then . else . + $f end;`},
		{"fromdateiso8601", `def __fromdateiso8601: __fraction($__fuel) as $f | __instant($__fuel) | fromdateiso8601 | if $f == 0 then . else . + $f end;`},
		{"strptime", `def __strptime($f): __quoted($__fuel) | ($f | __timeformat($__fuel)) as $f | strptime($f);`},
		{"match", `def __match1($re): __match($re; {}; $__fuel)[];`},
		{"match", `def __match2($re; $f): __match($re; {flags: $f}; $__fuel)[];`},
		{"test", `def __test1($re): __match($re; {test: true}; $__fuel);`},
		{"test", `def __test2($re; $f): __match($re; {flags: $f, test: true}; $__fuel);`},
		{"capture", `def __capture1($re): __match1($re) | .captures | _captures;`},
		{"capture", `def __capture2($re; $f): __match2($re; $f) | .captures | _captures;`},
		{"scan", `def __scan1($re): __scan2($re; null);`},
		{"scan", `def __scan2($re; $f): __match($re; {flags: $f, global: true}; $__fuel)[] | if .captures == [] then .string else [.captures[].string] end;`},
		{"split", `def __split2($re; $f): __match($re; {flags: $f, global: true}; $__fuel) as $ms | __weave($ms; null; $__fuel);`},
		{"sub", `def __sub3($re; str; $f): __match($re; {flags: $f}; $__fuel) as $ms | [$ms[] | .captures | _captures | first(str)] as $new | __weave($ms; $new; $__fuel);`},
		{"gsub", `def __gsub3($re; str; $f): __match($re; {flags: $f, global: true}; $__fuel) as $ms | [$ms[] | .captures | _captures | first(str)] as $new | __weave($ms; $new; $__fuel);`},
		{"gsub", `def __gsub2($re; str): __gsub3($re; str; null);`},
		{"combinations", `def __combinations0: __combined(1);`},
		{"", `def __combined($depth): __call($depth; $__fuel) | if length == 0 then [] else (.[0] | __each($__fuel) | .[]) as $x | __add([$x]; (.[1:] | __combined($depth + 2)); $__fuel) end;`},
		{"combinations", `def __combinations1($n): . as $x | [limit($n; repeat($x))] | __combinations0;`},
	}
	for _, name := range []string{"sort", "unique", "min", "max"} {
		out = append(out, definition{name, `def __` + name + `: __order("` + name + `"; $__fuel);`},
			definition{name + "_by", `def __` + name + `_by(f): __by("` + name + `_by"; __map([f]); $__fuel);`})
	}
	out = append(out, definition{"group_by", `def __group_by(f): __by("group_by"; __map([f]); $__fuel);`})
	for _, name := range []string{"implode", "ascii_downcase", "ascii_upcase", "trim", "ltrim", "rtrim"} {
		out = append(out, definition{name, `def __` + name + `: __pay0($__fuel) | __copied($__fuel) | ` + name + `;`})
	}
	for arity, names := range chargedNatives() {
		params := strings.Join([]string{"$a", "$b", "$c"}[:arity], "; ")
		guard, head := "__pay"+string(rune('0'+arity))+"($__fuel)", ""
		if arity > 0 {
			guard, head = "__pay"+string(rune('0'+arity))+"("+params+"; $__fuel)", "("+params+")"
		}
		for name := range strings.FieldsSeq(names) {
			out = append(out, definition{name, `def __` + name + head + `: ` + guard + ` | ` + name + head + `;`})
		}
	}
	return out
}
