package jq

import (
	"fmt"
	"slices"
	"strings"

	"github.com/itchyny/gojq"
)

// The rewriter makes a parsed expression safe to run. The machine's instruction count bounds neither the work of a
// single native function nor the size of values, so every place where these can grow is given a guard: a function of ours
// (see package guard) that checks sizes and charges fuel before the native function runs. Operators become calls,
// functions become the definitions of the library (see the library), iteration and slices touch what they walk over.
// Functions that are on no list do not exist. The guards see the budget through the hidden variable fuelVar.

const (
	fuelVar   = "$__fuel"
	updateVar = "$__x"
)

// funcName is a function's name and arity, under which expressions find it.
type funcName struct {
	name  string
	arity int
}

type rewriter struct {
	source string
	funcs  []funcName
	vars   []string
	lib    library
	used   map[string]bool // library definitions in use
	err    *SyntaxError
}

// scoped runs f and forgets the functions and variables it defines.
func (r *rewriter) scoped(f func()) {
	funcs, vars := len(r.funcs), len(r.vars)
	f()
	r.funcs, r.vars = r.funcs[:funcs], r.vars[:vars]
}

func (r *rewriter) fail(token, suggestion, variable, format string, args ...any) {
	if r.err == nil {
		r.err = &SyntaxError{
			Message: fmt.Sprintf(format, args...), Suggestion: suggestion, Variable: variable, Offset: findToken(r.source, token),
		}
	}
}

// findToken finds a word in the source; the syntax tree has no places.
func findToken(source, token string) int {
	word := func(c byte) bool {
		return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
	}
	for from := 0; token != ""; {
		i := strings.Index(source[from:], token)
		if i < 0 {
			break
		}
		i += from
		end := i + len(token)
		if (i == 0 || !word(source[i-1]) && source[i-1] != '.' && (source[i-1] != '$' || token[0] == '$')) && (end == len(source) || !word(source[end])) {
			return i
		}
		from = end
	}
	return -1
}

func (r *rewriter) query(q *gojq.Query) *gojq.Query {
	if q == nil {
		return nil
	}
	if len(q.Imports) > 0 || q.Meta != nil {
		r.fail("import", "write the definitions into the expression", "", "modules cannot be imported")
		return q
	}
	out := *q
	r.scoped(func() {
		out.FuncDefs = r.funcDefs(q.FuncDefs)
		if q.Term != nil {
			t := r.term(q.Term)
			out.Term = t
			return
		}
		r.operator(q, &out)
	})
	return &out
}

func (r *rewriter) operator(q, out *gojq.Query) {
	switch q.Op {
	case gojq.OpPipe:
		out.Left = r.query(q.Left)
		out.Patterns = r.patterns(q.Patterns)
		out.Right = r.query(q.Right)
	case gojq.OpComma, gojq.OpAlt, gojq.OpAnd, gojq.OpOr:
		out.Left, out.Right = r.query(q.Left), r.query(q.Right)
	case gojq.OpAssign, gojq.OpModify, gojq.OpUpdateAdd, gojq.OpUpdateSub, gojq.OpUpdateMul,
		gojq.OpUpdateDiv, gojq.OpUpdateMod, gojq.OpUpdateAlt:
		r.replace(out, r.update(q))
	default:
		r.replace(out, r.guarded(opGuard(q.Op), r.query(q.Left), r.query(q.Right)))
	}
}

// replace puts a query in the place of an operator and keeps the definitions before it.
func (r *rewriter) replace(out, by *gojq.Query) {
	defs := out.FuncDefs
	*out = *by
	out.FuncDefs = defs
}

func opGuard(op gojq.Operator) string {
	switch op {
	case gojq.OpAdd, gojq.OpUpdateAdd:
		return "__add"
	case gojq.OpSub, gojq.OpUpdateSub:
		return "__sub"
	case gojq.OpMul, gojq.OpUpdateMul:
		return "__mul"
	case gojq.OpDiv, gojq.OpUpdateDiv:
		return "__div"
	case gojq.OpMod, gojq.OpUpdateMod:
		return "__mod"
	case gojq.OpEq:
		return "__eq"
	case gojq.OpNe:
		return "__ne"
	case gojq.OpGt:
		return "__gt"
	case gojq.OpLt:
		return "__lt"
	case gojq.OpGe:
		return "__ge"
	case gojq.OpLe:
		return "__le"
	}
	return ""
}

// update turns  l op= r  into  r as $x | modify(l; . op $x), which is how jq defines it.
func (r *rewriter) update(q *gojq.Query) *gojq.Query {
	l := r.query(q.Left)
	value := r.query(q.Right)
	if q.Op == gojq.OpModify {
		return r.libCall("__modify", l, value)
	}
	x := call(updateVar)
	var body *gojq.Query
	switch q.Op {
	case gojq.OpAssign:
		body = r.libCall("__assign", l, x)
	case gojq.OpUpdateAlt:
		body = r.libCall("__modify", l, &gojq.Query{Left: identity(), Op: gojq.OpAlt, Right: x})
	default:
		body = r.libCall("__modify", l, r.guarded(opGuard(q.Op), identity(), x))
	}
	return &gojq.Query{Left: value, Op: gojq.OpPipe, Patterns: []*gojq.Pattern{{Name: updateVar}}, Right: body}
}

func identity() *gojq.Query { return &gojq.Query{Term: &gojq.Term{Type: gojq.TermTypeIdentity}} }

func call(name string, args ...*gojq.Query) *gojq.Query {
	return &gojq.Query{Term: &gojq.Term{Type: gojq.TermTypeFunc, Func: &gojq.Func{Name: name, Args: args}}}
}

// guarded calls a guard, which takes the budget as its last argument.
func (r *rewriter) guarded(name string, args ...*gojq.Query) *gojq.Query {
	return call(name, append(args, call(fuelVar))...)
}

// libCall calls a definition of the library and notes that it is needed.
func (r *rewriter) libCall(name string, args ...*gojq.Query) *gojq.Query {
	r.used[name] = true
	return call(name, args...)
}

func pipe(l, r *gojq.Query) *gojq.Query { return &gojq.Query{Left: l, Op: gojq.OpPipe, Right: r} }

func paren(q *gojq.Query) *gojq.Term { return &gojq.Term{Type: gojq.TermTypeQuery, Query: q} }

func (r *rewriter) funcDefs(defs []*gojq.FuncDef) []*gojq.FuncDef {
	out := make([]*gojq.FuncDef, len(defs))
	for i, d := range defs {
		r.reserved(d.Name)
		r.funcs = append(r.funcs, funcName{d.Name, len(d.Args)})
		r.scoped(func() {
			for _, a := range d.Args {
				r.reserved(strings.TrimPrefix(a, "$"))
				if name, ok := strings.CutPrefix(a, "$"); ok {
					r.vars = append(r.vars, name)
					a = name
				}
				r.funcs = append(r.funcs, funcName{a, 0})
			}
			out[i] = &gojq.FuncDef{Name: d.Name, Args: d.Args, Body: r.query(d.Body)}
		})
	}
	return out
}

func (r *rewriter) reserved(name string) {
	if strings.HasPrefix(name, "__") {
		r.fail(name, "choose another name", "", "names that begin with two underscores are reserved: %q", name)
	}
}

func (r *rewriter) patterns(ps []*gojq.Pattern) []*gojq.Pattern {
	out := make([]*gojq.Pattern, len(ps))
	for i, p := range ps {
		out[i] = r.pattern(p)
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

func (r *rewriter) define(variable string) {
	name := strings.TrimPrefix(variable, "$")
	r.reserved(name)
	r.vars = append(r.vars, name)
}

func (r *rewriter) pattern(p *gojq.Pattern) *gojq.Pattern {
	out := *p
	if p.Name != "" {
		r.define(p.Name)
	}
	for i, e := range p.Array {
		if i == 0 {
			out.Array = make([]*gojq.Pattern, len(p.Array))
		}
		out.Array[i] = r.pattern(e)
	}
	for i, e := range p.Object {
		if i == 0 {
			out.Object = make([]*gojq.PatternObject, len(p.Object))
		}
		entry := *e
		if strings.HasPrefix(e.Key, "$") {
			r.define(e.Key)
		}
		entry.KeyQuery = r.query(e.KeyQuery)
		if e.KeyString != nil && e.KeyString.Queries != nil {
			entry.KeyString, entry.KeyQuery = nil, r.str(e.KeyString, "")
		}
		if e.Val != nil {
			entry.Val = r.pattern(e.Val)
		}
		out.Object[i] = &entry
	}
	return &out
}

func (r *rewriter) variable(name string) {
	if !slices.Contains(r.vars, name) {
		r.fail("$"+name, "", name, "there is no variable $%s", name)
	}
}
