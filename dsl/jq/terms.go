package jq

import (
	"slices"
	"strconv"
	"strings"

	"github.com/itchyny/gojq"

	"github.com/signalbox-dev/signalbox/dsl/internal/value"
)

// term rewrites one term with its suffixes: first the head, then each suffix from left to right.
func (r *rewriter) term(t *gojq.Term) *gojq.Term {
	if r.count(len(t.SuffixList)); r.err != nil {
		return t
	}
	head := *t
	head.SuffixList = nil
	r.frames += len(t.SuffixList)
	out := r.head(&head)
	r.frames -= len(t.SuffixList)
	for _, s := range t.SuffixList {
		out = r.suffix(out, s)
	}
	return out
}

func (r *rewriter) suffix(t *gojq.Term, s *gojq.Suffix) *gojq.Term {
	if s.Optional && !s.Iter && s.Index == nil {
		// T? is try T, and the caught error has a cost
		return paren(&gojq.Query{Term: &gojq.Term{Type: gojq.TermTypeTry, Try: &gojq.Try{
			Body: &gojq.Query{Term: t}, Catch: r.caught(nil),
		}}})
	}
	next := &gojq.Suffix{Iter: s.Iter, Optional: s.Optional}
	if s.Iter || s.Index != nil && s.Index.IsSlice {
		t = r.touched(t)
	}
	if s.Index != nil {
		if !s.Index.IsSlice && !namesMember(s.Index) {
			t = paren(pipe(&gojq.Query{Term: t}, r.guarded("__subject")))
		}
		next.Index = r.index(s.Index)
	}
	out := *t
	out.SuffixList = append(append([]*gojq.Suffix{}, t.SuffixList...), next)
	return &out
}

// touched charges for iterating over a term's value. As the guard returns its input unchanged, paths through it stay
// valid.
func (r *rewriter) touched(t *gojq.Term) *gojq.Term {
	return paren(pipe(&gojq.Query{Term: t}, r.guarded("__each")))
}

// namesMember reports whether an index can only be one of an object.
func namesMember(x *gojq.Index) bool {
	if x.Name != "" || x.Str != nil {
		return true
	}
	return x.Start != nil && x.Start.Term != nil && x.Start.Term.Type == gojq.TermTypeString &&
		len(x.Start.Term.SuffixList) == 0
}

func (r *rewriter) index(x *gojq.Index) *gojq.Index {
	out := *x
	switch {
	case x.Str != nil && x.Str.Queries != nil:
		out.Str, out.Start = nil, r.key(r.str(x.Str, ""))
	case long(x.Name, x.Str):
		out.Name, out.Str, out.Start = "", nil, r.key(literal(x.Name, x.Str))
	case x.IsSlice:
		out.Start, out.End = r.query(x.Start), r.query(x.End)
	case x.Start != nil:
		out.Start = r.query(x.Start)
		if !constantIndex(x.Start) {
			out.Start = pipe(out.Start, r.guarded("__index"))
		}
	}
	return &out
}

// longKey is the length of a key, in bytes, above which a search of an object for it takes noticeable time.
const longKey = 1024

// long reports whether a key that the expression contains is longer than longKey.
func long(name string, quoted *gojq.String) bool {
	return len(name) >= longKey || quoted != nil && len(quoted.Str) >= longKey
}

// literal returns a key that the expression contains, named or quoted.
func literal(name string, quoted *gojq.String) *gojq.Query {
	if quoted == nil {
		quoted = &gojq.String{Str: name}
	}
	return &gojq.Query{Term: &gojq.Term{Type: gojq.TermTypeString, Str: quoted}}
}

// key charges for a key that is computed.
func (r *rewriter) key(q *gojq.Query) *gojq.Query {
	if q == nil {
		return q
	}
	return pipe(q, r.guarded("__key"))
}

// constantIndex reports whether an index is a literal string or a small number, which need no check.
func constantIndex(q *gojq.Query) bool {
	if q.Term == nil || len(q.Term.SuffixList) > 0 || len(q.FuncDefs) > 0 {
		return false
	}
	switch q.Term.Type {
	case gojq.TermTypeString:
		return q.Term.Str.Queries == nil && len(q.Term.Str.Str) < longKey
	case gojq.TermTypeNumber:
		n, err := strconv.Atoi(q.Term.Number)
		return err == nil && n < 10_000
	}
	return false
}

func (r *rewriter) head(t *gojq.Term) *gojq.Term {
	out := *t
	switch t.Type {
	case gojq.TermTypeRecurse:
		return r.libCall("__recurse0").Term
	case gojq.TermTypeIndex:
		if t.Index.IsSlice || !namesMember(t.Index) {
			return r.suffix(&gojq.Term{Type: gojq.TermTypeIdentity}, &gojq.Suffix{Index: t.Index})
		}
		out.Index = r.index(t.Index)
	case gojq.TermTypeFunc:
		return r.function(t.Func)
	case gojq.TermTypeObject:
		out.Object = r.object(t.Object)
	case gojq.TermTypeArray:
		out.Array = &gojq.Array{Query: r.query(t.Array.Query)}
	case gojq.TermTypeNumber:
		if len(t.Number) > value.MaxDigits {
			r.fail(t.Number, "", "", "a number of %d characters is over the limit of %d", len(t.Number), value.MaxDigits)
		}
	case gojq.TermTypeUnary:
		r.count(1)
		r.frames++
		out.Unary = &gojq.Unary{Op: t.Unary.Op, Term: r.term(t.Unary.Term)}
		r.frames--
	case gojq.TermTypeFormat:
		return r.format(t)
	case gojq.TermTypeString:
		if t.Str.Queries != nil {
			return paren(r.str(t.Str, ""))
		}
	case gojq.TermTypeQuery:
		out.Query = r.inSameFrame(t.Query)
	default:
		r.control(t, &out)
	}
	return &out
}

// control rewrites the terms that contain other queries and bind variables.
func (r *rewriter) control(t, out *gojq.Term) {
	switch t.Type {
	case gojq.TermTypeIf:
		f := &gojq.If{Cond: r.query(t.If.Cond), Then: r.inSameFrame(t.If.Then), Else: r.inSameFrame(t.If.Else)}
		for _, e := range t.If.Elif {
			f.Elif = append(f.Elif, &gojq.IfElif{Cond: r.query(e.Cond), Then: r.inSameFrame(e.Then)})
		}
		out.If = f
	case gojq.TermTypeTry:
		out.Try = &gojq.Try{Body: r.query(t.Try.Body), Catch: r.caught(r.query(t.Try.Catch))}
	case gojq.TermTypeReduce:
		r.scoped(func() {
			f := &gojq.Reduce{Query: r.query(t.Reduce.Query), Start: r.query(t.Reduce.Start)}
			f.Patterns = r.patterns(t.Reduce.Patterns)
			f.Update = r.query(t.Reduce.Update)
			out.Reduce = f
		})
	case gojq.TermTypeForeach:
		r.scoped(func() {
			f := &gojq.Foreach{Query: r.query(t.Foreach.Query), Start: r.query(t.Foreach.Start)}
			f.Patterns = r.patterns(t.Foreach.Patterns)
			f.Update, f.Extract = r.query(t.Foreach.Update), r.query(t.Foreach.Extract)
			out.Foreach = f
		})
	case gojq.TermTypeLabel:
		out.Label = &gojq.Label{Ident: t.Label.Ident, Body: r.query(t.Label.Body)}
	}
}

// caught charges for the error that a try passes to its handler.
func (r *rewriter) caught(handler *gojq.Query) *gojq.Query {
	if handler == nil {
		return &gojq.Query{Term: paren(pipe(r.guarded("__caught"), call("empty")))}
	}
	return &gojq.Query{Term: paren(pipe(r.guarded("__caught"), &gojq.Query{Term: paren(handler)}))}
}

func (r *rewriter) object(o *gojq.Object) *gojq.Object {
	out := &gojq.Object{}
	for _, kv := range o.KeyVals {
		entry := *kv
		entry.Val = r.query(kv.Val)
		entry.KeyQuery = r.key(r.query(kv.KeyQuery))
		switch {
		case strings.HasPrefix(kv.Key, "$"):
			r.variable(kv.Key[1:])
		case kv.KeyString != nil && kv.KeyString.Queries != nil:
			entry.KeyString, entry.KeyQuery = nil, r.key(r.str(kv.KeyString, ""))
			if kv.Val == nil { // {"a\(f)"} means {("a\(f)"): .["a\(f)"]}
				entry.Val = &gojq.Query{Term: &gojq.Term{Type: gojq.TermTypeIndex, Index: r.index(&gojq.Index{Str: kv.KeyString})}}
			}
		case long(kv.Key, kv.KeyString):
			entry.Key, entry.KeyString, entry.KeyQuery = "", nil, r.key(literal(kv.Key, kv.KeyString))
			if kv.Val == nil {
				entry.Val = &gojq.Query{Term: &gojq.Term{
					Type: gojq.TermTypeIndex, Index: r.index(&gojq.Index{Name: kv.Key, Str: kv.KeyString})}}
			}
		}
		if entry.Val != nil && entry.Val.Op == gojq.OpComma {
			entry.Val = &gojq.Query{Term: paren(entry.Val)}
		}
		out.KeyVals = append(out.KeyVals, &entry)
	}
	return out
}

// str rewrites a string with \( ) in it as a sum of its parts, each formatted under guard.
func (r *rewriter) str(s *gojq.String, format string) *gojq.Query {
	var sum *gojq.Query
	for _, q := range s.Queries {
		part := q
		if q.Term == nil || q.Term.Str == nil || q.Term.Type != gojq.TermTypeString {
			part = pipe(r.query(q), r.formatted(format))
		} else if q.Term.Str.Queries != nil {
			part = r.query(q)
		}
		if sum == nil {
			sum = part
			continue
		}
		sum = r.guarded("__add", sum, part)
	}
	if sum == nil {
		sum = &gojq.Query{Term: &gojq.Term{Type: gojq.TermTypeString, Str: &gojq.String{}}}
	}
	return sum
}

// formatted returns the query that converts its input to text.
func (r *rewriter) formatted(format string) *gojq.Query {
	if format == "" {
		format = "@text"
	}
	return r.guarded("__shape",
		&gojq.Query{Term: &gojq.Term{Type: gojq.TermTypeString, Str: &gojq.String{Str: format[1:]}}})
}

func (r *rewriter) format(t *gojq.Term) *gojq.Term {
	switch t.Format {
	case "@text", "@json", "@html", "@uri", "@urid", "@csv", "@tsv", "@sh", "@base64", "@base64d":
	default:
		r.fail(t.Format, "use @text, @json, @html, @uri, @urid, @csv, @tsv, @sh, @base64 or @base64d", "",
			"there is no format %s", t.Format)
	}
	if t.Str == nil {
		return paren(r.formatted(t.Format))
	}
	if t.Str.Queries == nil {
		return &gojq.Term{Type: gojq.TermTypeString, Str: t.Str}
	}
	return paren(r.str(t.Str, t.Format))
}

func (r *rewriter) function(f *gojq.Func) *gojq.Term {
	if name, ok := strings.CutPrefix(f.Name, "$"); ok {
		r.variable(name)
		return &gojq.Term{Type: gojq.TermTypeFunc, Func: f}
	}
	args := make([]*gojq.Query, len(f.Args))
	for i, a := range f.Args {
		args[i] = r.query(a)
	}
	name := funcName{f.Name, len(f.Args)}
	for i, f := range slices.Backward(r.funcs) {
		if f.funcName == name {
			return r.callOwn(i, args)
		}
	}
	entry, ok := r.lib.lookup(name)
	switch {
	case ok && entry.native:
		return call(f.Name, args...).Term
	case ok:
		return r.libCall(entry.definition, args...).Term
	}
	first := r.err == nil
	reason, suggestion, known := r.lib.refusal(name)
	r.fail(f.Name, suggestion, "", "%s", reason)
	if first && !known {
		r.err.Function = f.Name
	}
	return call("empty").Term
}
