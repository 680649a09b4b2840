package jq

import (
	"fmt"
	"slices"
	"strings"

	"github.com/itchyny/gojq"

	"github.com/signalbox-dev/signalbox/dsl/jq/internal/guard"
)

// library is the list of functions that expressions may use. Each is native (implemented by gojq, harmless at any
// size), a guard of this package, or a definition in jq that uses guards and natives.
type library struct {
	functions   map[funcName]libraryEntry
	definitions map[string]string
	priced      bool // evaluations are charged by work
}

type libraryEntry struct {
	native     bool
	guard      string
	definition string
}

func newLibrary(prices guard.Prices) library {
	l := library{functions: make(map[funcName]libraryEntry), definitions: make(map[string]string), priced: prices == guard.ByWork}
	for arity, names := range natives() {
		for name := range strings.FieldsSeq(names) {
			l.functions[funcName{name, arity}] = libraryEntry{native: true}
		}
	}
	l.functions[funcName{"fromjson", 0}] = libraryEntry{guard: "__fromjson"}
	l.define(definitions())
	if l.priced {
		l.define(pricedDefinitions())
	}
	return l
}

// define adds definitions; they replace earlier ones of the same name and arity.
func (l library) define(all []definition) {
	for _, d := range all {
		head, _, _ := strings.Cut(strings.TrimPrefix(d.source, "def "), ":")
		name, args, hasArgs := strings.Cut(head, "(")
		l.definitions[name] = d.source
		arity := 0
		if hasArgs {
			arity = strings.Count(args, ";") + 1
		}
		if d.name != "" {
			l.functions[funcName{d.name, arity}] = libraryEntry{definition: name}
		}
	}
}

// natives are gojq's functions with work and results that are bounded by one step or by the result of the previous step.
func natives() []string {
	return []string{
		`empty not length utf8bytelength type abs toboolean nan infinite isnan isinfinite isnormal isfinite
		 first last arrays objects iterables booleans numbers finites normals strings nulls values scalars
		 floor round nearbyint rint ceil trunc significand fabs sqrt cbrt exp exp10 exp2 expm1 frexp modf log log10 log1p
		 log2 logb gamma tgamma lgamma erf erfc j0 j1 y0 y1 sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh
		 gmtime mktime todate fromdate todateiso8601 fromdateiso8601`,
		`has in select recurse range repeat isempty first last ltrimstr rtrimstr trimstr startswith endswith`,
		`recurse range while until limit skip nth any all atan2 copysign drem fdim fmax fmin fmod hypot jn nextafter
		 nexttoward remainder ldexp scalb scalbln yn pow`,
		`range fma`,
	}
}

// definition is one function written in jq. Expressions call it by its name; one without a name serves other
// definitions.
type definition struct{ name, source string }

func definitions() []definition {
	return slices.Concat(valueDefinitions(), pathDefinitions(), textDefinitions())
}

func valueDefinitions() []definition {
	return []definition{
		{"map", `def __map(f): [__touch($__fuel) | .[] | f];`},
		{"any", `def __any0: any(__touch($__fuel) | .[]; .);`},
		{"any", `def __any1(f): any(__touch($__fuel) | .[]; f);`},
		{"all", `def __all0: all(__touch($__fuel) | .[]; .);`},
		{"all", `def __all1(f): all(__touch($__fuel) | .[]; f);`},
		{"add", `def __sum: __sumsize($__fuel) | add;`},
		{"add", `def __sum1(f): [f] | __sum;`},
		{"keys", `def __keys: __touch($__fuel) | keys;`},
		{"keys_unsorted", `def __keys_unsorted: __keys;`},
		{"toarray", `def __toarray: if type == "array" then . else [.] end;`},
		{"reverse", `def __reverse: __touch($__fuel) | reverse;`},
		{"to_entries", `def __to_entries: __touch($__fuel) | to_entries;`},
		{"from_entries", `def __from_entries: __touch($__fuel) | from_entries;`},
		{"with_entries", `def __with_entries(f): __to_entries | __map(f) | __from_entries;`},
		{"flatten", `def __flatten0: __deep($__fuel) | flatten;`},
		{"flatten", `def __flatten1($d): __deep($__fuel) | flatten($d);`},
		{"sort", `def __sort: __sorted($__fuel) | sort;`},
		{"unique", `def __unique: __sorted($__fuel) | unique;`},
		{"min", `def __min: __deep($__fuel) | min;`},
		{"max", `def __max: __deep($__fuel) | max;`},
		{"sort_by", `def __sort_by(f): __touch($__fuel) | sort_by(f | __sorted($__fuel));`},
		{"group_by", `def __group_by(f): __touch($__fuel) | group_by(f | __sorted($__fuel));`},
		{"unique_by", `def __unique_by(f): __touch($__fuel) | unique_by(f | __sorted($__fuel));`},
		{"min_by", `def __min_by(f): __touch($__fuel) | min_by(f | __deep($__fuel));`},
		{"max_by", `def __max_by(f): __touch($__fuel) | max_by(f | __deep($__fuel));`},
		{"contains", `def __contains($x): __product($x; $__fuel) | contains($x);`},
		{"inside", `def __inside($x): __product($x; $__fuel) | inside($x);`},
		{"indices", `def __indices($x): __product($x; $__fuel) | indices($x);`},
		{"index", `def __index1($x): __product($x; $__fuel) | index($x);`},
		{"rindex", `def __rindex($x): __product($x; $__fuel) | rindex($x);`},
		{"bsearch", `def __bsearch($x): ($x | __deep($__fuel)) as $y | bsearch($y);`},
		{"transpose", `def __transpose: __matrix($__fuel) | transpose;`},
		{"combinations", `def __combinations0: __touch($__fuel) | combinations;`},
		{"combinations", `def __combinations1($n): __touch($__fuel) | combinations($n);`},
		{"nth", `def __nth($n): .[$n | __index($__fuel)];`},
		{"walk", `def __walk(f): def w: if type == "array" then __map(w) elif type == "object" then __map_values(w) else . end | f; w;`},
		{"IN", `def __IN(s): any(__eq(s; .; $__fuel); .);`},
		{"IN", `def __IN2(src; s): any(__eq(src; s; $__fuel); .);`},
		{"INDEX", `def __INDEX2(s; f): [s | {key: (f | __tostring), value: .}] | __from_entries;`},
		{"INDEX", `def __INDEX(f): __INDEX2(__touch($__fuel) | .[]; f);`},
		{"error", `def __error0: __deep($__fuel) | error;`},
		{"error", `def __error1(f): error(f | __deep($__fuel));`},
	}
}

func pathDefinitions() []definition {
	return []definition{
		{"recurse", `def __recurse0: recurse(__touch($__fuel) | .[]?);`},
		{"path", `def __path1(f): path(f) | __path($__fuel);`},
		{"paths", `def __paths: __path1(__recurse0) | select(. != []);`},
		{"paths", `def __paths1(f): __path1(__recurse0 | select(f)) | select(. != []);`},
		{"leaf_paths", `def __leaf_paths: __paths1(scalars);`},
		{"getpath", `def __getpath($p): getpath($p | __path($__fuel));`},
		{"setpath", `def __setpath($p; $v): __walked($p | __path($__fuel); $__fuel) | setpath($p; $v);`},
		{"delpaths", `def __delpaths($ps): reduce ($ps | __touch($__fuel) | .[]) as $p (.; __walked($p | __path($__fuel); $__fuel)) | delpaths($ps);`},
		{"del", `def __del(f): [__path1(f)] as $ps | __delpaths($ps);`},
		{"pick", `def __pick(f): . as $v | reduce __path1(f) as $p (null; __setpath($p; $v | getpath($p)));`},
		{"map_values", `def __map_values(f): __modify(__touch($__fuel) | .[]; f);`},
		{"", `def __assign(l; $v): reduce __path1(l) as $p (__draft; __put($p; [$v]; $__fuel)) | __finish;`},
		{"", `def __modify(l; f): reduce __path1(l) as $p (__draft; __put($p; [first(__peek($p; $__fuel) | f)]; $__fuel)) | __finish;`},
		{"", `def __finish: __dropped as $ps | __value | if $ps == [] then . else __delpaths($ps) end;`},
	}
}

func textDefinitions() []definition {
	return []definition{
		{"tojson", `def __tojson: __deep($__fuel) | tojson;`},
		{"tostring", `def __tostring: __deep($__fuel) | tostring;`},
		{"tonumber", `def __tonumber: __digits($__fuel) | tonumber;`},
		{"explode", `def __explode: __touch($__fuel) | explode;`},
		{"implode", `def __implode: __touch($__fuel) | implode;`},
		{"ascii_downcase", `def __ascii_downcase: __touch($__fuel) | ascii_downcase;`},
		{"ascii_upcase", `def __ascii_upcase: __touch($__fuel) | ascii_upcase;`},
		{"trim", `def __trim: __touch($__fuel) | trim;`},
		{"ltrim", `def __ltrim: __touch($__fuel) | ltrim;`},
		{"rtrim", `def __rtrim: __touch($__fuel) | rtrim;`},
		{"join", `def __join($s): __joinsize($s; $__fuel) | join($s);`},
		{"split", `def __split($s): __touch($__fuel) | split($s);`},
		{"strftime", `def __strftime($f): ($f | __timeformat($__fuel)) as $f | strftime($f);`},
		{"strptime", `def __strptime($f): ($f | __timeformat($__fuel)) as $f | strptime($f);`},
		{"match", `def __match1($re): __regex($re; null; $__fuel) | match($re);`},
		{"match", `def __match2($re; $f): __regex($re; $f; $__fuel) | match($re; $f);`},
		{"test", `def __test1($re): __regex($re; null; $__fuel) | test($re);`},
		{"test", `def __test2($re; $f): __regex($re; $f; $__fuel) | test($re; $f);`},
		{"capture", `def __capture1($re): __regex($re; null; $__fuel) | capture($re);`},
		{"capture", `def __capture2($re; $f): __regex($re; $f; $__fuel) | capture($re; $f);`},
		{"scan", `def __scan1($re): __regex($re; "g"; $__fuel) | scan($re);`},
		{"scan", `def __scan2($re; $f): __regex($re; "g"; $__fuel) | scan($re; $f);`},
		{"split", `def __split2($re; $f): [__match2($re; ($f // "") + "g")] as $ms | __weave($ms; null; $__fuel);`},
		{"splits", `def __splits1($re): __split2($re; null)[];`},
		{"splits", `def __splits2($re; $f): __split2($re; $f)[];`},
		{"sub", `def __sub3($re; str; $f): [__match2($re; $f)] as $ms | [$ms[] | .captures | _captures | first(str)] as $new | __weave($ms; $new; $__fuel);`},
		{"sub", `def __sub2($re; str): __sub3($re; str; null);`},
		{"gsub", `def __gsub2($re; str): __sub3($re; str; "g");`},
		{"gsub", `def __gsub3($re; str; $f): __sub3($re; str; ($f // "") + "g");`},
	}
}

func (l library) lookup(name funcName) (libraryEntry, bool) {
	e, ok := l.functions[name]
	return e, ok
}

// refusal returns the reason why a function does not exist.
func (l library) refusal(name funcName) (reason, suggestion string) {
	switch name.name {
	case "now", "localtime", "strflocaltime", "date", "dateadd", "datesub":
		return fmt.Sprintf("the function %s is not allowed: a run must not depend on a clock or a time zone", name.name), "use $workflow.startedAt or $task.startedAt"
	case "env", "input", "inputs", "input_line_number", "input_filename", "debug", "stderr", "halt", "halt_error",
		"builtins", "modulemeta", "get_search_list":
		return fmt.Sprintf("the function %s is not allowed: an expression sees its input and variables only", name.name), ""
	}
	var arities []string
	for f := range l.functions {
		if f.name == name.name {
			arities = append(arities, fmt.Sprint(f.arity))
		}
	}
	if len(arities) > 0 {
		slices.Sort(arities)
		return fmt.Sprintf("the function %s does not take %d arguments", name.name, name.arity), "it takes " + strings.Join(arities, " or ")
	}
	return fmt.Sprintf("there is no function %s/%d", name.name, name.arity), ""
}

// prologue returns the definitions that a program uses, each after those it uses itself.
func (l library) prologue(used map[string]bool) ([]*gojq.FuncDef, error) {
	var out []*gojq.FuncDef
	done := make(map[string]bool)
	var add func(name string) error
	add = func(name string) error {
		source, ok := l.definitions[name]
		if !ok || done[name] {
			return nil
		}
		done[name] = true
		for _, other := range strings.FieldsFunc(source, func(c rune) bool {
			return c != '_' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z')
		}) {
			if strings.HasPrefix(other, "__") && other != name {
				if err := add(other); err != nil {
					return err
				}
			}
		}
		q, err := gojq.Parse(source + " .")
		if err != nil {
			return fmt.Errorf("definition of %s: %w", name, err)
		}
		out = append(out, q.FuncDefs...)
		return nil
	}
	for _, name := range slices.Sorted(func(yield func(string) bool) {
		for n := range used {
			if !yield(n) {
				return
			}
		}
	}) {
		if err := add(name); err != nil {
			return nil, err
		}
	}
	return out, nil
}
