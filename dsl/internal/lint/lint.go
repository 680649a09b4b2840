// Package lint finds parts of a document that are legal but certainly mistakes. A check that cannot be certain reports
// nothing.
//
//	for _, f := range lint.Tasks(list) { warn(f.Code, f.Message, f.Suggestion) }
//
// It reads texts, and the tree of a document with a checked structure. Package dsl selects the texts, lists and
// filters to check.
package lint

// The codes of violations.
const (
	Literal       = "literal"        // a text that looks like an expression but is not one
	NeverMatches  = "never_matches"  // a filter that nothing can match
	ExtensionKey  = "extension_key"  // a correlation key that reads an extension attribute
	Unreachable   = "unreachable"    // a task that no other task leads to
	Endless       = "endless"        // a task that goes to itself without a condition
	DirectiveName = "directive_name" // a task named like a flow directive
)

// Violation is one mistake.
type Violation struct {
	Code, Message, Suggestion string
	// Offset is the byte offset of the mistake in a text.
	Offset int
	// Task is the index of the task in its list. Then is true if the violation concerns the task's flow directive, not
	// the task.
	Task int
	Then bool
}
