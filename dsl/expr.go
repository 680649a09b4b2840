package dsl

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/signalbox-dev/signalbox/dsl/jq"
)

// Expr is one compiled expression. It is a template where the language allows a literal array in its place, or where
// secrets are part of it. A nil *Expr is never evaluated: the documentation of each field of this type defines what nil
// means.
type Expr struct {
	Source  string // without the surrounding ${ }
	Pos     Pos
	program *jq.Program
	inline  *Template
}

// Eval evaluates the expression on input. vars are given without "$"; those the expression does not use cost nothing.
func (e *Expr) Eval(input any, vars map[string]any, fuel *jq.Fuel) (any, error) {
	if e.inline != nil {
		return e.inline.Eval(input, vars, fuel)
	}
	return e.program.Run(input, vars, fuel)
}

// Holds evaluates a condition: every value except false and null holds, as in jq.
func (e *Expr) Holds(input any, vars map[string]any, fuel *jq.Fuel) (bool, error) {
	v, err := e.Eval(input, vars, fuel)
	return v != nil && v != false, err
}

// Template is a JSON value in which strings may be expressions. A string is an expression as a whole or not at all: "a
// ${ .b } c" is text. In strict mode an expression is written in ${ }, with or without space around it; in loose mode a
// whole string that compiles is an expression, too, and stays the text where its evaluation fails. In the fields where
// the specification allows bare expressions (input.from, output.as, export.as) the template's own string is an
// expression with or without ${ }.
type Template struct {
	Pos Pos
	// exactly one of the following is set, or none for the literal null
	expr    *Expr
	loose   *looseText // beside expr, where it is not in ${ }
	object  map[string]*Template
	array   []*Template
	literal any
	secret  *Secret     // a reference to a secret
	parts   []*Template // a text that contains secrets
}

// Eval evaluates the template. The result may share data with the document and the input: it must be treated as
// immutable.
func (t *Template) Eval(input any, vars map[string]any, fuel *jq.Fuel) (any, error) {
	switch {
	case t.loose != nil:
		return t.loose.eval(t.expr, input, vars, fuel)
	case t.expr != nil:
		return t.expr.Eval(input, vars, fuel)
	case t.object != nil:
		out := make(map[string]any, len(t.object))
		for _, key := range slices.Sorted(maps.Keys(t.object)) {
			v, err := t.object[key].Eval(input, vars, fuel)
			if err != nil {
				return nil, err
			}
			out[key] = v
		}
		return out, nil
	case t.array != nil:
		out := make([]any, len(t.array))
		for i, e := range t.array {
			v, err := e.Eval(input, vars, fuel)
			if err != nil {
				return nil, err
			}
			out[i] = v
		}
		return out, nil
	case t.secret != nil:
		return Opaque{{Secret: t.secret}}, nil
	case t.parts != nil:
		return t.join(input, vars, fuel)
	}
	return t.literal, nil
}

// looseText is a text in loose mode that may be an expression.
type looseText struct {
	text string
	// always reports that it is an expression in version 1 of the interpretation, too, in which its errors are those of
	// the task: it begins with "." or "$".
	always bool
}

func (l *looseText) eval(e *Expr, input any, vars map[string]any, fuel *jq.Fuel) (any, error) {
	first := fuel != nil && fuel.Version1
	if first && !l.always {
		return l.text, nil
	}
	v, err := e.Eval(input, vars, fuel)
	if err != nil && !first && !errors.Is(err, jq.ErrFuel) {
		return l.text, nil
	}
	return v, err
}

// EvalString evaluates a template that must result in a string.
func (t *Template) EvalString(input any, vars map[string]any, fuel *jq.Fuel) (string, error) {
	v, err := t.Eval(input, vars, fuel)
	if err != nil {
		return "", err
	}
	s, ok := v.(string)
	if !ok {
		return "", fmt.Errorf("evaluate %q: want a string, got %s", t.source(), jq.TypeName(v))
	}
	return s, nil
}

// Static returns the template's value if it holds no expression.
func (t *Template) Static() (any, bool) {
	if t.expr == nil && t.object == nil && t.array == nil && t.secret == nil && t.parts == nil {
		return t.literal, true
	}
	return nil, false
}

func (t *Template) source() string {
	if t.expr != nil {
		return t.expr.Source
	}
	return fmt.Sprint(t.literal)
}

// unwrap returns the text inside ${ } and whether there was ${ } around it.
func unwrap(s string) (string, bool) {
	trimmed := strings.TrimSpace(s)
	inner, ok := strings.CutPrefix(trimmed, "${")
	if !ok {
		return s, false
	}
	inner, ok = strings.CutSuffix(inner, "}")
	return inner, ok
}
