package hygiene

import (
	"go/ast"
	"path"
	"strconv"
)

// Exceptions maps a folder, a file, or a file and name ("folder/file.go:name") to the reason why a check lets it be.
type Exceptions map[string]string

func (e Exceptions) allow(f *File, name string) bool {
	return e[f.Path] != "" || e[f.Path+":"+name] != "" || e[path.Dir(f.Path)] != ""
}

// Unused lists exceptions that name nothing in the tree, so that the list cannot outlive its reasons.
func (e Exceptions) Unused(tree Tree) []Finding {
	known := map[string]bool{}
	for folder, files := range tree {
		known[folder] = true
		for _, f := range files {
			known[f.Path] = true
			for _, decl := range f.AST.Decls {
				if d, ok := decl.(*ast.GenDecl); ok {
					for _, name := range declared(d) {
						known[f.Path+":"+name.Name] = true
					}
				}
			}
		}
	}
	var findings []Finding
	for place := range e {
		if !known[place] {
			findings = append(findings, Finding{place, "is listed as an exception but does not exist; remove it from the list"})
		}
	}
	return findings
}

// Sleeps finds calls of time.Sleep, in tests and outside: something better always tells when to go on.
func Sleeps(tree Tree, allowed Exceptions) []Finding {
	return selectors(tree.Files(All), "time", []string{"Sleep"}, allowed,
		"sleeps; wait for the event itself: a channel, a timer, require.Eventually, testing/synctest")
}

// BackgroundContexts finds contexts that come from nowhere outside main packages, tests and kits for tests.
func BackgroundContexts(tree Tree, allowed Exceptions) []Finding {
	files := tree.Files(func(f *File) bool { return !f.Test && !f.Kit && f.AST.Name.Name != "main" })
	return selectors(files, "context", []string{"Background", "TODO"}, allowed,
		"makes a context from nothing; take the caller's, or context.WithoutCancel of it for clean-up")
}

// selectors finds uses of pkg.name for the names of a standard package, under whatever name it was imported.
func selectors(files []*File, pkg string, names []string, allowed Exceptions, what string) []Finding {
	var findings []Finding
	for _, f := range files {
		local := localName(f.AST, pkg)
		if local == "" {
			continue
		}
		ast.Inspect(f.AST, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			x, ok := sel.X.(*ast.Ident)
			if !ok || x.Name != local {
				return true
			}
			for _, name := range names {
				if sel.Sel.Name == name && !allowed.allow(f, name) {
					findings = append(findings, Finding{f.At(sel.Pos()), what})
				}
			}
			return true
		})
	}
	return findings
}

// localName is the name under which a file imports a package, or empty.
func localName(file *ast.File, pkg string) string {
	for _, spec := range file.Imports {
		if value, err := strconv.Unquote(spec.Path.Value); err != nil || value != pkg {
			continue
		}
		if spec.Name != nil {
			return spec.Name.Name
		}
		return path.Base(pkg)
	}
	return ""
}
