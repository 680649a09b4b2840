package hygiene

import (
	"fmt"
	"go/ast"
	"go/scanner"
	"go/token"
	"path"
	"slices"
	"strings"
)

// Sizes are the limits of the style guide. Whatever exceeds them is split by noun.
type Sizes struct {
	FileLines     int // of any hand-written file
	FunctionLines int // of a shipped function
	PackageCode   int // lines with code in a package's shipped files
	// Larger lists the packages that may have more code than PackageCode, by folder.
	Larger map[string]Ceiling
}

// Ceiling is a limit for one package, with the reason why it is not split.
type Ceiling struct {
	Code int
	Why  string
}

// PackageComments finds packages with a comment that does not start as godoc requires, or without one.
func PackageComments(tree Tree) []Finding {
	var findings []Finding
	for _, folder := range tree.Folders() {
		files := slices.DeleteFunc(slices.Clone(tree[folder]), func(f *File) bool { return f.Generated || f.Test })
		if len(files) == 0 {
			continue
		}
		name := files[0].AST.Name.Name
		want := "Package " + name
		if name == "main" {
			want = "Command "
		}
		if !slices.ContainsFunc(files, func(f *File) bool {
			return f.AST.Doc != nil && strings.HasPrefix(f.AST.Doc.Text(), want)
		}) {
			findings = append(findings, Finding{folder, fmt.Sprintf("has no package comment that starts with %q", want)})
		}
	}
	return findings
}

// PackageNames finds packages with names that say nothing about their content.
func PackageNames(tree Tree) []Finding {
	forbidden := []string{"util", "utils", "common", "helper", "helpers", "misc", "shared"}
	var findings []Finding
	for _, folder := range tree.Folders() {
		if slices.Contains(forbidden, path.Base(folder)) || slices.Contains(forbidden, tree[folder][0].AST.Name.Name) {
			findings = append(findings, Finding{folder, "is named after nothing in particular; name it by the noun it holds"})
		}
	}
	return findings
}

// Oversize finds files, functions and packages beyond the limits.
func Oversize(tree Tree, limits Sizes) []Finding {
	var findings []Finding
	for _, f := range tree.Files(All) {
		if lines := strings.Count(string(f.Source), "\n"); lines > limits.FileLines {
			findings = append(findings, Finding{f.Path, fmt.Sprintf("has %d lines, more than %d; split it", lines, limits.FileLines)})
		}
	}
	code := map[string]int{}
	for _, f := range tree.Files(Shipped) {
		if !f.Kit {
			code[path.Dir(f.Path)] += codeLines(f.Source)
		}
		findings = append(findings, longFunctions(f, limits.FunctionLines)...)
	}
	for _, folder := range tree.Folders() {
		limit := limits.PackageCode
		if larger, ok := limits.Larger[folder]; ok {
			limit = larger.Code
		}
		if code[folder] > limit {
			findings = append(findings, Finding{folder,
				fmt.Sprintf("has %d lines of code, more than %d; split it by noun", code[folder], limit)})
		}
	}
	for folder := range limits.Larger {
		if code[folder] <= limits.PackageCode {
			findings = append(findings, Finding{folder, "needs no limit of its own any more; remove it from Larger"})
		}
	}
	return findings
}

func longFunctions(f *File, limit int) []Finding {
	var findings []Finding
	for _, decl := range f.AST.Decls {
		fn, ok := decl.(*ast.FuncDecl)
		if !ok || fn.Body == nil {
			continue
		}
		if lines := f.Line(fn.End()) - f.Line(fn.Pos()) + 1; lines > limit {
			findings = append(findings, Finding{f.At(fn.Pos()),
				fmt.Sprintf("function %s has %d lines, more than %d; split it", fn.Name.Name, lines, limit)})
		}
	}
	return findings
}

// codeLines counts the lines with at least one token: neither blank lines nor comments.
func codeLines(source []byte) int {
	fset := token.NewFileSet()
	file := fset.AddFile("", fset.Base(), len(source))
	var s scanner.Scanner
	s.Init(file, source, nil, 0)
	lines := map[int]bool{}
	for {
		pos, tok, literal := s.Scan()
		if tok == token.EOF {
			return len(lines)
		}
		first := file.Line(pos)
		for i := range strings.Count(literal, "\n") + 1 {
			if tok == token.SEMICOLON && literal == "\n" && i == 1 {
				break // inserted at the end of a line, not a line of its own
			}
			lines[first+i] = true
		}
	}
}
