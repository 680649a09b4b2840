package hygiene

import (
	"go/ast"
	"path"
	"strconv"
)

// Exceptions maps a folder, a file, or a file and name ("folder/file.go:name") to the reason why a check ignores it.
type Exceptions map[string]string

func (e Exceptions) allow(f *File, name string) bool {
	return e[f.Path] != "" || e[f.Path+":"+name] != "" || e[path.Dir(f.Path)] != ""
}

// Unused reports exceptions that name nothing in the tree.
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
	for entry := range e {
		if !known[entry] {
			findings = append(findings, Finding{entry, "is listed as an exception but does not exist; remove it from the list"})
		}
	}
	return findings
}

// Sleeps finds calls of time.Sleep, in tests and outside: there is always a better condition to wait for.
func Sleeps(tree Tree, allowed Exceptions) []Finding {
	return selectors(tree.Files(All), "time", []string{"Sleep"}, allowed,
		"sleeps; wait for the event itself: a channel, a timer, require.Eventually, testing/synctest")
}

// BackgroundContexts finds contexts made from nothing outside main packages, tests and test helper packages.
func BackgroundContexts(tree Tree, allowed Exceptions) []Finding {
	files := tree.Files(func(f *File) bool { return !f.Test && !f.Kit && f.AST.Name.Name != "main" })
	return selectors(files, "context", []string{"Background", "TODO"}, allowed,
		"makes a context from nothing; take the caller's, or context.WithoutCancel of it for clean-up")
}

// selectors finds uses of pkg.name for the names of a standard package, under any import name.
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

// localName returns the name under which a file imports a package; empty where it does not.
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
