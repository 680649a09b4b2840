package hygiene

import (
	"fmt"
	"go/scanner"
	"go/token"
	"strings"
)

// Ceiling is a limit for one package, with the reason why it is not split.
type Ceiling struct {
	Code int
	Why  string
}

// PackageCode finds packages with more lines of code in their shipped files than the limit. larger lists the packages that may have
// more, by folder.
func PackageCode(tree Tree, limit int, larger map[string]Ceiling) []Finding {
	code := map[string]int{}
	for folder, files := range tree {
		for _, f := range files {
			if !f.Test && !f.Kit && !f.Generated {
				code[folder] += codeLines(f.Source)
			}
		}
	}

	var findings []Finding
	for _, folder := range tree.Folders() {
		most := limit
		if ceiling, ok := larger[folder]; ok {
			most = ceiling.Code
		}
		if code[folder] > most {
			findings = append(findings, Finding{folder,
				fmt.Sprintf("has %d lines of code, more than %d; split it by noun", code[folder], most)})
		}
	}
	for folder := range larger {
		if code[folder] <= limit {
			findings = append(findings, Finding{folder, "needs no limit of its own any more; remove it from the list"})
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
