package jq

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/itchyny/gojq"
)

// The rewriter makes a parsed expression safe to run. gojq's instruction count limits neither the work of a single
// native function nor the size of values, so every operation that can grow either gets a guard: a function of package
// guard that checks sizes and charges fuel before the native function runs. Operators become calls, functions become
// the definitions of the library, iteration and slices charge for the values they iterate over. Functions that are on
// no list do not exist. The guards access the budget through the hidden variable fuelVar.

const (
	fuelVar   = "$__fuel"
	updateVar = "$__x"
	depthVar  = "$__depth"
	// ownPrefix is prepended to the names of functions that an expression defines, as they get one more parameter.
	ownPrefix = "__own_"
)

// funcName is a function's name and arity, which together identify it.
type funcName struct {
	name  string
	arity int
}

// localFunc is a function that the expression defines, or a parameter of one that is called like a function.
type localFunc struct {
	funcName
	parameter bool
}

type rewriter struct {
	source string
	funcs  []localFunc
	vars   []string
	lib    library
	used   map[string]bool // library definitions in use
	err    *SyntaxError
	terms  int // number of terms that were rewritten, see MaxTerms

	// body is one more than the index in funcs of the function that is being rewritten, 0 outside of all functions.
	body int
	// frames is the maximum number of frames between that body's own and that of the query or term that is rewritten.
	// gojq creates one for each argument, and searches them in turn to find a variable.
	frames int
	// shared reports that the next query needs no frame of its own.
	shared bool
}

// scoped runs f and removes the functions and variables that it defines.
func (r *rewriter) scoped(f func()) {
	funcs, vars := len(r.funcs), len(r.vars)
	f()
	r.funcs, r.vars = r.funcs[:funcs], r.vars[:vars]
}

func (r *rewriter) fail(token, suggestion, variable, format string, args ...any) {
	if r.err == nil {
		r.err = &SyntaxError{
			Message: fmt.Sprintf(format, args...), Suggestion: suggestion, Variable: variable,
			Offset: findToken(r.source, token),
		}
	}
}

// findToken finds a word in the source; the syntax tree has no positions.
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
		if (i == 0 || !word(source[i-1]) && source[i-1] != '.' && (source[i-1] != '$' || token[0] == '$')) &&
			(end == len(source) || !word(source[end])) {
			return i
		}
		from = end
	}
	return -1
}

// count counts parts of the expression, and fails once there are too many. Some parts are rewritten twice, and count
// twice.
func (r *rewriter) count(parts int) {
	if r.terms += parts; r.terms > MaxTerms {
		r.err = cmp.Or(r.err, &SyntaxError{
			Message:    fmt.Sprintf("the expression has more than %d terms", MaxTerms),
			Suggestion: "compute it in several tasks, or move constant data out of it", Offset: -1, Limit: true,
		})
	}
}

func (r *rewriter) query(q *gojq.Query) *gojq.Query {
	if q == nil {
		return nil
	}
	if r.count(1); r.err != nil {
		return q
	}
	if len(q.Imports) > 0 || q.Meta != nil {
		r.fail("import", "write the definitions into the expression", "", "modules cannot be imported")
		return q
	}
	out := *q
	if !r.shared {
		r.frames++
		defer func() { r.frames-- }()
	}
	r.shared = false
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

// inSameFrame rewrites a query that is evaluated in the same frame as the surrounding query.
func (r *rewriter) inSameFrame(q *gojq.Query) *gojq.Query {
	r.shared = q != nil
	return r.query(q)
}

func (r *rewriter) operator(q, out *gojq.Query) {
	switch q.Op {
	case gojq.OpPipe:
		out.Left = r.inSameFrame(q.Left)
		out.Patterns = r.patterns(q.Patterns)
		out.Right = r.inSameFrame(q.Right)
	case gojq.OpComma:
		out.Left, out.Right = r.inSameFrame(q.Left), r.inSameFrame(q.Right)
	case gojq.OpAlt, gojq.OpAnd, gojq.OpOr:
		out.Left, out.Right = r.query(q.Left), r.query(q.Right)
	case gojq.OpAssign, gojq.OpModify, gojq.OpUpdateAdd, gojq.OpUpdateSub, gojq.OpUpdateMul,
		gojq.OpUpdateDiv, gojq.OpUpdateMod, gojq.OpUpdateAlt:
		r.replace(out, r.update(q))
	default:
		r.replace(out, r.guarded(opGuard(q.Op), r.query(q.Left), r.query(q.Right)))
	}
}

// replace substitutes a query for an operator and keeps the definitions before it.
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

// guarded calls a guard, which receives the budget as its last argument.
func (r *rewriter) guarded(name string, args ...*gojq.Query) *gojq.Query {
	return call(name, append(args, call(fuelVar))...)
}

// libCall calls a definition of the library and records that it is used.
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
		r.funcs = append(r.funcs, localFunc{funcName: funcName{d.Name, len(d.Args)}})
		outer, frames := r.body, r.frames
		r.scoped(func() {
			r.body, r.frames = len(r.funcs), 0
			for _, a := range d.Args {
				r.reserved(strings.TrimPrefix(a, "$"))
				if name, ok := strings.CutPrefix(a, "$"); ok {
					r.vars = append(r.vars, name)
					a = name
				}
				r.funcs = append(r.funcs, localFunc{funcName: funcName{a, 0}, parameter: true})
			}
			out[i] = r.definition(d, r.inSameFrame(d.Body))
		})
		r.body, r.frames = outer, frames
	}
	return out
}

// definition is a function with its rewritten body. It gets its depth as another parameter: gojq finds a variable by
// searching the frames between its definition and its use.
func (r *rewriter) definition(d *gojq.FuncDef, body *gojq.Query) *gojq.FuncDef {
	return &gojq.FuncDef{
		Name: ownPrefix + d.Name, Args: append([]string{depthVar}, d.Args...),
		Body: pipe(r.guarded("__call", call(depthVar)), &gojq.Query{Term: paren(body)}),
	}
}

// callOwn calls a function that the expression defines, by its index in funcs.
func (r *rewriter) callOwn(at int, args []*gojq.Query) *gojq.Term {
	f := r.funcs[at]
	if f.parameter {
		return call(f.name, args...).Term
	}
	added := number(strconv.Itoa(r.frames + 1))
	depth := &gojq.Query{Left: call(depthVar), Op: gojq.OpAdd, Right: added}
	switch {
	case r.body == 0:
		depth = added
	case r.body == at+1 && r.frames == 0: // its frame replaces that of its caller
		depth = call(depthVar)
	}
	return call(ownPrefix+f.name, append([]*gojq.Query{depth}, args...)...).Term
}

func number(n string) *gojq.Query {
	return &gojq.Query{Term: &gojq.Term{Type: gojq.TermTypeNumber, Number: n}}
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
	r.count(1)
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
		entry.KeyQuery = r.key(r.query(e.KeyQuery))
		switch {
		case e.KeyString != nil && e.KeyString.Queries != nil:
			entry.KeyString, entry.KeyQuery = nil, r.key(r.str(e.KeyString, ""))
		case long(e.Key, e.KeyString) && !strings.HasPrefix(e.Key, "$"):
			entry.Key, entry.KeyString, entry.KeyQuery = "", nil, r.key(literal(e.Key, e.KeyString))
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
