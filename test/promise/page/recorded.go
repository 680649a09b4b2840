package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// measure is the folder of the package that records figures. Its own tests are not listed.
const measure = "promise"

// recorded finds the promises of which tests below a folder record figures, and by promise the tests that do so,
// directly or by the functions they call in their package.
func recorded(root string) (map[string][]string, error) {
	packages := map[string][]*ast.FuncDecl{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && entry.Name() == measure {
			return fs.SkipDir
		}
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok {
				packages[filepath.Dir(path)] = append(packages[filepath.Dir(path)], f)
			}
		}
		return nil
	})
	tests := map[string][]string{}
	for _, functions := range packages {
		for _, f := range functions {
			for _, promised := range promises(f) {
				tests[promised] = append(tests[promised], callers(functions, f.Name.Name)...)
			}
		}
	}
	for promised, names := range tests {
		slices.Sort(names)
		tests[promised] = slices.Compact(names)
	}
	return tests, err
}

// promises returns the promises of the figures that a function makes.
func promises(f *ast.FuncDecl) (list []string) {
	ast.Inspect(f, func(n ast.Node) bool {
		literal, ok := n.(*ast.CompositeLit)
		if !ok {
			return true
		}
		if of, ok := literal.Type.(*ast.SelectorExpr); !ok || of.Sel.Name != "Figure" {
			return true
		}
		for _, e := range literal.Elts {
			pair, ok := e.(*ast.KeyValueExpr)
			if !ok {
				continue
			}
			key, named := pair.Key.(*ast.Ident)
			value, written := pair.Value.(*ast.BasicLit)
			if named && written && key.Name == "Promise" {
				if text, err := strconv.Unquote(value.Value); err == nil {
					list = append(list, text)
				}
			}
		}
		return true
	})
	return list
}

// callers returns the tests that call the function of that name, directly or not.
func callers(functions []*ast.FuncDecl, name string) (tests []string) {
	lead := map[string]bool{name: true}
	for found := 0; found != len(lead); {
		found = len(lead)
		for _, f := range functions {
			ast.Inspect(f, func(n ast.Node) bool {
				if id, ok := n.(*ast.Ident); ok && lead[id.Name] {
					lead[f.Name.Name] = true
				}
				return true
			})
		}
	}
	for _, of := range slices.Sorted(maps.Keys(lead)) {
		if strings.HasPrefix(of, "Test") && of != "TestMain" {
			tests = append(tests, of)
		}
	}
	return tests
}
