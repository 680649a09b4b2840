package jq

import (
	"fmt"
	"strings"

	"github.com/itchyny/gojq"
)

// Assembly is the parsed form of an expression that refers to opaque values: programs, which cannot access those
// values, and the references to them. Exactly one of its fields is set.
type Assembly struct {
	Program *Program            // a part without references
	Path    []string            // a reference: the names after the variable
	Join    []Assembly          // a text, of parts that evaluate to strings
	Members map[string]Assembly // an object
}

// Assemble splits an expression in which the variable opaque stands for values that no expression may read. A reference
// to one, written $opaque.name, is allowed on its own, as part of a text (joined by + or in \( )) and as the value of a
// member of an object. The error is a *SyntaxError; it names the variable if it is used in another way.
func (c *Compiler) Assemble(source string, vars []string, opaque string) (*Assembly, error) {
	query, err := c.parse(source)
	if err != nil {
		return nil, err
	}
	a := assembler{compiler: c, source: source, vars: vars, opaque: opaque}
	out, err := a.query(query)
	if err != nil {
		return nil, err
	}
	return &out, nil
}

type assembler struct {
	compiler       *Compiler
	source, opaque string
	vars           []string
	depth          int
}

// maxAssemblyDepth limits the work: each level compiles its nested levels again.
const maxAssemblyDepth = 64

// query splits a query that refers to the variable, and compiles any other.
func (a *assembler) query(q *gojq.Query) (Assembly, error) {
	program, err := a.compiler.compile(q, a.source, a.vars)
	if err == nil {
		return Assembly{Program: program}, nil
	}
	if err.Variable != a.opaque {
		return Assembly{}, err
	}
	a.depth++
	defer func() { a.depth-- }()
	if a.depth > maxAssemblyDepth {
		return Assembly{}, &SyntaxError{
			Message: fmt.Sprintf("an expression with $%s is nested over %d levels", a.opaque, maxAssemblyDepth), Offset: -1}
	}
	if len(q.FuncDefs) > 0 || q.Meta != nil || len(q.Imports) > 0 {
		return Assembly{}, a.misuseError()
	}
	switch {
	case q.Term != nil:
		return a.term(q.Term)
	case q.Op == gojq.OpAdd:
		return a.join(q.Left, q.Right)
	}
	return Assembly{}, a.misuseError()
}

func (a *assembler) term(t *gojq.Term) (Assembly, error) {
	switch {
	case t.Type == gojq.TermTypeFunc && t.Func.Name == "$"+a.opaque:
		return a.reference(t)
	case len(t.SuffixList) > 0:
	case t.Type == gojq.TermTypeQuery:
		return a.query(t.Query)
	case t.Type == gojq.TermTypeString:
		return a.text(t.Str)
	case t.Type == gojq.TermTypeObject:
		return a.object(t.Object)
	}
	return Assembly{}, a.misuseError()
}

// reference reads $opaque.name.member or $opaque["name"].
func (a *assembler) reference(t *gojq.Term) (Assembly, error) {
	var path []string
	for _, s := range t.SuffixList {
		if s.Iter || s.Optional || s.Index == nil || s.Index.IsSlice {
			return Assembly{}, a.misuseError()
		}
		name, ok := constantName(s.Index)
		if !ok {
			return Assembly{}, a.misuseError()
		}
		path = append(path, name)
	}
	if len(path) == 0 {
		return Assembly{}, a.misuseError()
	}
	return Assembly{Path: path}, nil
}

func constantName(x *gojq.Index) (string, bool) {
	str := x.Str
	if x.Start != nil && x.Start.Term != nil && x.Start.Term.Type == gojq.TermTypeString &&
		len(x.Start.Term.SuffixList) == 0 {
		str = x.Start.Term.Str
	}
	switch {
	case x.Name != "":
		return x.Name, true
	case str != nil && str.Queries == nil && str.Str != "":
		return str.Str, true
	}
	return "", false
}

func (a *assembler) join(parts ...*gojq.Query) (Assembly, error) {
	var out Assembly
	for _, q := range parts {
		part, err := a.query(q)
		switch {
		case err != nil:
			return Assembly{}, err
		case part.Members != nil:
			return Assembly{}, a.misuseError()
		case part.Join != nil:
			out.Join = append(out.Join, part.Join...)
		default:
			out.Join = append(out.Join, part)
		}
	}
	return out, nil
}

// text splits "a \(b) c"; a \( ) without a reference is formatted as in other expressions.
func (a *assembler) text(s *gojq.String) (Assembly, error) {
	parts := make([]*gojq.Query, len(s.Queries))
	for i, q := range s.Queries {
		parts[i] = q
		if _, err := a.compiler.compile(q, a.source, a.vars); err == nil {
			parts[i] = &gojq.Query{Term: &gojq.Term{Type: gojq.TermTypeString, Str: &gojq.String{Queries: []*gojq.Query{q}}}}
		}
	}
	return a.join(parts...)
}

func (a *assembler) object(o *gojq.Object) (Assembly, error) {
	out := Assembly{Members: make(map[string]Assembly, len(o.KeyVals))}
	for _, kv := range o.KeyVals {
		key := kv.Key
		if kv.KeyString != nil && kv.KeyString.Queries == nil {
			key = kv.KeyString.Str
		}
		if key == "" || strings.HasPrefix(key, "$") || kv.Val == nil {
			return Assembly{}, a.misuseError()
		}
		member, err := a.query(kv.Val)
		if err != nil {
			return Assembly{}, err
		}
		out.Members[key] = member
	}
	return out, nil
}

func (a *assembler) misuseError() error {
	return &SyntaxError{
		Message: fmt.Sprintf("$%s can be named as $%s.name, by itself, in a text or as a member of an object; nothing "+
			"can be computed from it", a.opaque, a.opaque),
		Suggestion: fmt.Sprintf(`write for example ${ "Bearer " + $%s.token }`, a.opaque),
		Variable:   a.opaque, Offset: findToken(a.source, "$"+a.opaque),
	}
}
