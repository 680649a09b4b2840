package jq

import (
	"reflect"
	"slices"
	"strings"

	"github.com/itchyny/gojq"

	"github.com/signalbox-dev/signalbox/dsl/jq/internal/pattern"
)

// Members returns the names of the members that an expression reads of its input directly, such as a and b of
// `.a.x == 1 and .b`. It returns none where it cannot decide whether a name is one of the input's members: behind a
// pipe, and in the arguments of functions. The result of an expression that does not compile is empty.
func Members(source string) []string {
	query, err := gojq.Parse(source)
	if err != nil || len(source) > MaxSource {
		return nil
	}
	var names []string
	membersOfQuery(query, &names)
	slices.Sort(names)
	return slices.Compact(names)
}

func membersOfQuery(q *gojq.Query, names *[]string) {
	switch {
	case q == nil:
	case q.Term != nil:
		membersOfTerm(q.Term, names)
	case q.Op == gojq.OpPipe:
		membersOfQuery(q.Left, names)
		if len(q.Patterns) > 0 { // the input of `… as $x | body` is that of body, too
			membersOfQuery(q.Right, names)
		}
	default:
		membersOfQuery(q.Left, names)
		membersOfQuery(q.Right, names)
	}
}

func membersOfTerm(t *gojq.Term, names *[]string) {
	switch t.Type {
	case gojq.TermTypeIndex:
		if name, ok := constantName(t.Index); ok {
			*names = append(*names, name)
		}
	case gojq.TermTypeIdentity:
		if len(t.SuffixList) > 0 && t.SuffixList[0].Index != nil {
			if name, ok := constantName(t.SuffixList[0].Index); ok {
				*names = append(*names, name)
			}
		}
	case gojq.TermTypeQuery:
		membersOfQuery(t.Query, names)
	case gojq.TermTypeArray:
		membersOfQuery(t.Array.Query, names)
	case gojq.TermTypeUnary:
		membersOfTerm(t.Unary.Term, names)
	case gojq.TermTypeIf:
		membersOfQuery(t.If.Cond, names)
		membersOfQuery(t.If.Then, names)
		membersOfQuery(t.If.Else, names)
	}
}

// PatternViolations returns what is wrong with the regular expressions that an expression contains as constants, in the
// order of their calls. Those that are computed are unknown until the expression is evaluated.
func PatternViolations(source string) []string {
	if !slices.ContainsFunc([]string{"test", "match", "capture", "scan", "split", "sub"}, func(name string) bool {
		return strings.Contains(source, name)
	}) {
		return nil // most expressions, without parsing them again
	}
	query, err := gojq.Parse(source)
	if err != nil || len(source) > MaxSource {
		return nil
	}
	var out []string
	// by the number of arguments: the index of the flags, or 0 if there are none
	flagsOf := map[string]map[int]int{
		"test": {1: 0, 2: 1}, "match": {1: 0, 2: 1}, "capture": {1: 0, 2: 1}, "scan": {1: 0, 2: 1}, "splits": {1: 0, 2: 1},
		"split": {2: 1}, "sub": {2: 0, 3: 2}, "gsub": {2: 0, 3: 2},
	}
	functions(reflect.ValueOf(query), func(f *gojq.Func) {
		flags, known := flagsOf[f.Name][len(f.Args)]
		if !known {
			return
		}
		re, constant := constantText(f.Args[0])
		given := ""
		if flags > 0 && constant {
			given, constant = constantText(f.Args[flags])
		}
		if !constant {
			return
		}
		if err := pattern.Check(re, given); err != nil {
			out = append(out, err.Error())
		}
	})
	return out
}

// constantText returns the text of a query that is nothing but a text, or null.
func constantText(q *gojq.Query) (string, bool) {
	switch {
	case q.Term == nil || len(q.Term.SuffixList) > 0 || len(q.FuncDefs) > 0:
	case q.Term.Type == gojq.TermTypeString && q.Term.Str.Queries == nil:
		return q.Term.Str.Str, true
	case q.Term.Type == gojq.TermTypeNull:
		return "", true
	}
	return "", false
}

// functions calls visit for each call of a function in a part of a syntax tree.
func functions(part reflect.Value, visit func(*gojq.Func)) {
	switch part.Kind() {
	case reflect.Pointer:
		if part.IsNil() {
			return
		}
		if f, ok := reflect.TypeAssert[*gojq.Func](part); ok {
			visit(f)
		}
		functions(part.Elem(), visit)
	case reflect.Struct:
		for i := range part.NumField() {
			if part.Type().Field(i).IsExported() {
				functions(part.Field(i), visit)
			}
		}
	case reflect.Slice:
		for i := range part.Len() {
			functions(part.Index(i), visit)
		}
	}
}
