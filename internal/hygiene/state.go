package hygiene

import (
	"go/ast"
	"go/token"
	"strings"
)

// State finds package-level state and registries filled by init: two platforms in one process would share them.
//
// A package variable is not state when it is blank (an assertion that a type has an interface), an error of its own (errors.New) or of
// another package under the same name, or embedded files. Neither is an unexported value that is set where it is declared, holds nothing
// that changes by itself (a channel, a lock, the result of a constructor), and whose package never writes it or takes its address.
func State(tree Tree, allowed Exceptions) []Finding {
	var findings []Finding
	for _, folder := range tree.Folders() {
		var shipped []*File
		for _, f := range tree[folder] {
			if !f.Test && !f.Generated {
				shipped = append(shipped, f)
			}
		}
		written := writtenNames(shipped)
		for _, f := range shipped {
			findings = append(findings, fileState(f, written, allowed)...)
		}
	}
	return findings
}

func fileState(f *File, written map[string]bool, allowed Exceptions) []Finding {
	var findings []Finding
	for _, decl := range f.AST.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil && d.Name.Name == "init" && !allowed.allow(f, "init") {
				findings = append(findings, Finding{f.At(d.Pos()), "has an init function; build what it builds in a constructor"})
			}
		case *ast.GenDecl:
			if d.Tok != token.VAR {
				continue
			}
			for _, spec := range d.Specs {
				if v, ok := spec.(*ast.ValueSpec); ok {
					findings = append(findings, specState(f, d, v, written, allowed)...)
				}
			}
		}
	}
	return findings
}

func specState(f *File, decl *ast.GenDecl, spec *ast.ValueSpec, written map[string]bool, allowed Exceptions) []Finding {
	if embedded(decl.Doc) || embedded(spec.Doc) {
		return nil
	}
	var findings []Finding
	for i, name := range spec.Names {
		var value ast.Expr
		if i < len(spec.Values) {
			value = spec.Values[i]
		}
		why := stateful(name, value, written)
		if why != "" && !allowed.allow(f, name.Name) {
			findings = append(findings, Finding{f.At(name.Pos()), "package variable " + name.Name + " " + why})
		}
	}
	return findings
}

func stateful(name *ast.Ident, value ast.Expr, written map[string]bool) string {
	switch {
	case name.Name == "_":
		return ""
	case written[name.Name]:
		return "is written or lent by address; pass it to those who need it"
	case value == nil:
		return "has no value of its own, so something else must set it; pass it instead"
	case !constant(value):
		return "is made by a call that may keep state; make it in a constructor"
	case sentinel(name.Name, value):
		return ""
	case name.IsExported():
		return "can be changed from outside; return it from a function"
	}
	return ""
}

func sentinel(name string, value ast.Expr) bool {
	switch v := value.(type) {
	case *ast.CallExpr:
		return strings.HasPrefix(name, "Err") || strings.HasPrefix(name, "err")
	case *ast.SelectorExpr:
		return strings.HasPrefix(name, "Err") && v.Sel.Name == name
	}
	return false
}

// constant reports whether an initial value consists of literals and of calls that return values that never change.
func constant(value ast.Expr) bool {
	pure := map[string]bool{
		"errors.New": true, "fmt.Errorf": true, "regexp.MustCompile": true, "strings.NewReplacer": true,
		"netip.MustParsePrefix": true, "netip.MustParseAddr": true, "time.Duration": true, "big.NewInt": true,
		"len": true, "string": true, "int64": true, "float64": true,
	}
	ok := true
	ast.Inspect(value, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return false // a function's body runs later
		case *ast.CallExpr:
			if !pure[callee(n.Fun)] {
				ok = false
			}
		case *ast.SelectorExpr:
			if x, isIdent := n.X.(*ast.Ident); isIdent && (x.Name == "sync" || x.Name == "atomic") {
				ok = false
			}
		case *ast.ChanType:
			ok = false
		}
		return ok
	})
	return ok
}

func callee(fun ast.Expr) string {
	switch fun := fun.(type) {
	case *ast.Ident:
		return fun.Name
	case *ast.SelectorExpr:
		if x, ok := fun.X.(*ast.Ident); ok {
			return x.Name + "." + fun.Sel.Name
		}
	case *ast.ArrayType:
		return "len" // a conversion of a literal, such as []byte("…")
	}
	return ""
}

// writtenNames returns the package variables' names that any function assigns to, increments, clears or takes the
// address of. It compares names, not objects: a local variable that hides a package variable is worth a finding too.
func writtenNames(files []*File) map[string]bool {
	variables, written := map[string]bool{}, map[string]bool{}
	for _, f := range files {
		for _, decl := range f.AST.Decls {
			if d, ok := decl.(*ast.GenDecl); ok && d.Tok == token.VAR {
				for _, name := range declared(d) {
					variables[name.Name] = true
				}
			}
		}
	}
	mark := func(e ast.Expr) {
		if name := root(e); variables[name] {
			written[name] = true
		}
	}
	for _, f := range files {
		for _, decl := range f.AST.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && fn.Body != nil {
				ast.Inspect(fn.Body, func(n ast.Node) bool { return markWrites(n, mark) })
			}
		}
	}
	return written
}

func markWrites(n ast.Node, mark func(ast.Expr)) bool {
	switch n := n.(type) {
	case *ast.AssignStmt:
		if n.Tok == token.DEFINE {
			return true
		}
		for _, left := range n.Lhs {
			mark(left)
		}
	case *ast.IncDecStmt:
		mark(n.X)
	case *ast.UnaryExpr:
		if n.Op == token.AND {
			mark(n.X)
		}
	case *ast.CallExpr:
		if name := callee(n.Fun); (name == "delete" || name == "clear") && len(n.Args) > 0 {
			mark(n.Args[0])
		}
	}
	return true
}

// root returns the variable at the bottom of an expression such as table[key].field.
func root(e ast.Expr) string {
	for {
		switch x := e.(type) {
		case *ast.Ident:
			return x.Name
		case *ast.IndexExpr:
			e = x.X
		case *ast.SelectorExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		case *ast.ParenExpr:
			e = x.X
		default:
			return ""
		}
	}
}

func declared(d *ast.GenDecl) []*ast.Ident {
	var names []*ast.Ident
	for _, spec := range d.Specs {
		if v, ok := spec.(*ast.ValueSpec); ok {
			names = append(names, v.Names...)
		}
	}
	return names
}

func embedded(doc *ast.CommentGroup) bool {
	if doc == nil {
		return false
	}
	for _, c := range doc.List {
		if strings.HasPrefix(c.Text, "//go:embed") {
			return true
		}
	}
	return false
}
