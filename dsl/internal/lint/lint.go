// Package lint finds what is legal in a document and surely a mistake. A check that cannot be sure finds nothing.
//
//	for _, f := range lint.Tasks(list) { warn(f.Code, f.Message, f.Suggestion) }
//
// It reads the tree of a document whose structure is known to be right, and texts. Which parts of a document are texts, lists and
// filters is the business of package dsl.
package lint

// The codes of findings.
const (
	Literal       = "literal"        // a text that looks like an expression and is none
	NeverMatches  = "never_matches"  // a filter that nothing can match
	Unreachable   = "unreachable"    // a task that no other task leads to
	Endless       = "endless"        // a task that goes to itself without a condition
	DirectiveName = "directive_name" // a task named like a flow directive
)

// Finding is one mistake.
type Finding struct {
	Code, Message, Suggestion string
	// Offset is the byte at which it begins in a text.
	Offset int
	// Task is the index of the task in its list. Then says that it is about where the task goes, not about the task.
	Task int
	Then bool
}
