// Package hygiene checks the repository itself: rules that the compiler and the linters do not check, and that
// reviewers should not have to.
//
// Two tables describe the architecture (arrows.go): which packages of ours a package may import, and what a package
// must not link at all. Smaller checks cover the sizes of binaries, the page of the architecture, comments, the
// modules, and links in the documentation. Every check is a function from sources to violations and is tested on
// planted input; one test per check then runs it on the repository.
//
// To add an exception, add it with its reason to the table that the failing test names. Only tests use the package:
// no package imports it. It does not repeat the checks of golangci-lint.
package hygiene

import "fmt"

// Violation is one part of the repository that breaks a rule.
type Violation struct {
	Where string // file:line, import path or file, relative to the repository
	What  string // what is wrong and what to do
}

// String renders the violation as one line.
func (f Violation) String() string { return fmt.Sprintf("%s: %s", f.Where, f.What) }
