package dsl

import (
	"regexp"
	"slices"
	"strings"

	"github.com/signalbox-dev/signalbox/dsl/eventfilter"
)

// variableUses are the paths of members that expressions read of each variable, such as input.order of
// `$workflow.input.order | length`. An empty path reads all of the variable.
type variableUses map[string][][]string

// usesOf returns the uses of variables in expressions. It reads the texts, so it may find more uses than there are: in
// a text or a comment. That is harmless, as the values of more members are kept then.
func usesOf(expressions, vars []string) variableUses {
	var uses variableUses
	reference := regexp.MustCompile(`\$([A-Za-z_][A-Za-z0-9_]*)((?:\.[A-Za-z_][A-Za-z0-9_]*)*)`)
	for _, expression := range expressions {
		for _, found := range reference.FindAllStringSubmatch(expression, -1) {
			if !slices.Contains(vars, found[1]) {
				continue
			}
			var path []string
			if found[2] != "" {
				path = strings.Split(found[2][1:], ".")
			}
			if uses == nil {
				uses = variableUses{}
			}
			uses[found[1]] = append(uses[found[1]], path)
		}
	}
	return uses
}

// of returns the used parts of variables; nil if none is used.
func (u variableUses) of(vars map[string]any) map[string]any {
	var out map[string]any
	for name, paths := range u {
		if out == nil {
			out = make(map[string]any, len(u))
		}
		out[name] = usedPart(vars[name], paths)
	}
	return out
}

// usedPart returns a value without the members that no path leads to.
func usedPart(v any, paths [][]string) any {
	object, ok := v.(map[string]any)
	if !ok || slices.ContainsFunc(paths, func(path []string) bool { return len(path) == 0 }) {
		return v
	}
	rest := map[string][][]string{}
	for _, path := range paths {
		rest[path[0]] = append(rest[path[0]], path[1:])
	}
	out := make(map[string]any, len(rest))
	for name, inner := range rest {
		if member, given := object[name]; given {
			out[name] = usedPart(member, inner)
		}
	}
	return out
}

// expressionsOf returns the expressions of a filter.
func expressionsOf(with map[string]eventfilter.Value, correlate []Correlation) []string {
	var out []string
	for _, v := range with {
		if v.Expr != "" {
			out = append(out, v.Expr)
		}
		out = append(out, expressionsOf(v.Members, nil)...)
	}
	for _, c := range correlate {
		out = append(out, c.From)
	}
	return out
}
