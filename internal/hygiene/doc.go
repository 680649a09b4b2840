// Package hygiene checks the repository itself: what the compiler and the linters cannot see, and what a reviewer
// should not have to look for.
//
// It knows the architecture as two tables (arrows.go): which packages of ours a package may import, and what a
// package must not link at all. Around them stand smaller checks: package comments, sizes, package state, sleeps,
// background contexts, links in the documentation, and the binaries' size. Every check is a function from sources to
// findings and is seen to fail on planted input in testdata; one test per check then runs it on the repository.
//
// To admit an exception, add it with its reason to the table the failing test names. The package is for tests only:
// nothing imports it. It does not repeat what golangci-lint finds.
package hygiene

import "fmt"

// Finding is one violation.
type Finding struct {
	Where string // file:line, import path or file, relative to the repository
	What  string // what is wrong and what to do
}

// String renders the finding as one line.
func (f Finding) String() string { return fmt.Sprintf("%s: %s", f.Where, f.What) }
