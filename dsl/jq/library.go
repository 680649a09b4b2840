package jq

import (
	"fmt"
	"slices"
	"strings"

	"github.com/itchyny/gojq"
)

// library is the list of functions that expressions may use. Each is native (implemented by gojq, harmless at any
// size), a guard of this package, or a definition in jq that uses guards and natives.
type library struct {
	functions   map[funcName]libraryEntry
	definitions map[string]string
}

type libraryEntry struct {
	native     bool
	definition string
}

func newLibrary() library {
	l := library{functions: make(map[funcName]libraryEntry), definitions: make(map[string]string)}
	for arity, names := range natives() {
		for name := range strings.FieldsSeq(names) {
			l.functions[funcName{name, arity}] = libraryEntry{native: true}
		}
	}
	l.define(definitions())
	return l
}

// define adds definitions; they replace native functions of the same name and arity.
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

// natives are gojq's functions with work and results that are bounded by one step or by the result of the previous
// step.
func natives() []string {
	return []string{
		`empty not type nan infinite arrays objects iterables booleans numbers strings nulls values scalars`,
		`select range repeat isempty first last`,
		`range until limit skip nth any all`,
		`range`,
	}
}

// definition is one function written in jq. Expressions call it by its name; one without a name serves other
// definitions.
type definition struct{ name, source string }

func definitions() []definition {
	return slices.Concat(valueDefinitions(), pathDefinitions(), textDefinitions(), timeDefinitions(), chargedDefinitions())
}

func valueDefinitions() []definition {
	return []definition{
		{"add", `def __sum1(f): [f] | __sum;`},
		{"keys_unsorted", `def __keys_unsorted: __keys;`},
		{"toarray", `def __toarray: if type == "array" then . else [.] end;`},
		{"with_entries", `def __with_entries(f): __to_entries | __map(f) | __from_entries;`},
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
		{"paths", `def __paths: __path1(__recurse0) | select(. != []);`},
		{"paths", `def __paths1(f): __path1(__recurse0 | select(f)) | select(. != []);`},
		{"leaf_paths", `def __leaf_paths: __paths1(scalars);`},
		{"del", `def __del(f): [__path1(f)] as $ps | __delpaths($ps);`},
		{"pick", `def __pick(f): . as $v | reduce __path1(f) as $p (null; __setpath($p; $v | getpath($p)));`},
		{"", `def __assign(l; $v): reduce __path1(l) as $p (__draft; __put($p; [$v]; $__fuel)) | __finish;`},
		{"", `def __modify(l; f): reduce __path1(l) as $p (__draft; __put($p; [first(__peek($p; $__fuel) | f)]; $__fuel)) | __finish;`},
		{"", `def __finish: __dropped as $ps | __value | if $ps == [] then . else __delpaths($ps) end;`},
	}
}

func textDefinitions() []definition {
	return []definition{
		{"splits", `def __splits1($re): __split2($re; null)[];`},
		{"splits", `def __splits2($re; $f): __split2($re; $f)[];`},
		{"sub", `def __sub2($re; str): __sub3($re; str; null);`},
	}
}

// clockDefinition is the definition that reads the time of an evaluation.
const clockDefinition = "__now"

// timeDefinitions are the functions of time. The local time zone is UTC: that of a worker must not matter.
func timeDefinitions() []definition {
	return []definition{
		{"now", `def __now: __clock($__fuel);`},
		{"date", `def __date: __todate;`},
		{"dateadd", `def __dateadd(u; n): __add(.; n; $__fuel);`},
		{"datesub", `def __datesub(u; n): __sub(.; n; $__fuel);`},
		{"localtime", `def __localtime: __gmtime;`},
		{"strflocaltime", `def __strflocaltime($f): __strftime($f);`},
	}
}

func (l library) lookup(name funcName) (libraryEntry, bool) {
	e, ok := l.functions[name]
	return e, ok
}

// refusal returns the reason why a function does not exist, and whether it is known: refused, or with other arguments.
func (l library) refusal(name funcName) (reason, suggestion string, known bool) {
	switch name.name {
	case "env", "input", "inputs", "input_line_number", "input_filename", "debug", "stderr", "halt", "halt_error",
		"builtins", "modulemeta", "get_search_list":
		return fmt.Sprintf("the function %s is not allowed: an expression sees its input and variables only", name.name),
			"", true
	}
	var arities []string
	for f := range l.functions {
		if f.name == name.name {
			arities = append(arities, fmt.Sprint(f.arity))
		}
	}
	if len(arities) > 0 {
		slices.Sort(arities)
		return fmt.Sprintf("the function %s does not take %d arguments", name.name, name.arity), "it takes " +
			strings.Join(arities, " or "), true
	}
	return fmt.Sprintf("there is no function %s/%d", name.name, name.arity), "", false
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
