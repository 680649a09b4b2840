package dsl

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/signalbox-dev/signalbox/dsl/internal/suggest"
)

// Pos is a position in the source. Both numbers count from 1; zero means the whole document. Columns count characters.
type Pos struct{ Line, Column int }

// Severity defines whether a violation prevents a document from running.
type Severity string

// The severities.
const (
	SeverityError   Severity = "error"
	SeverityWarning Severity = "warning"
)

// Code names a kind of violation. Codes are stable: programs may branch on them.
type Code string

// The codes of violations.
const (
	CodeSyntax           Code = "syntax"            // not YAML or JSON
	CodeLimit            Code = "limit"             // over a size, depth or alias limit
	CodeDuplicateKey     Code = "duplicate_key"     // one key twice in a mapping
	CodeUnknownKey       Code = "unknown_key"       // a key that the language does not define
	CodeMissingKey       Code = "missing_key"       // a required key is absent
	CodeType             Code = "type"              // a value of the wrong type
	CodeValue            Code = "value"             // a value of the right type that is not allowed
	CodeUnsupported      Code = "unsupported"       // in the language, not run by this version
	CodeUnknownReference Code = "unknown_reference" // a name that is not defined
	CodeDuplicateName    Code = "duplicate_name"    // two tasks of one name in a list
	CodeExpression       Code = "expression"        // an expression that does not compile
	CodeUnknownVariable  Code = "unknown_variable"  // a variable that is not available there
	CodeSchema           Code = "schema"            // a JSON Schema that does not compile
	CodeResource         Code = "resource"          // a resource that cannot be read, or is not read here (warning)
	CodeTaskKind         Code = "task_kind"         // no kind of task, or several
	CodeUnused           Code = "unused"            // defined, never used (warning)
	CodeSecret           Code = "secret"            // a secret where none is allowed, or that cannot be found (warning)
	CodeRunner           Code = "runner"            // a program that no connected runner executes, or without isolation (warning)
	CodePreRelease       Code = "pre_release"       // a pre-release of the language, read as its release (warning)
	CodeOldKey           Code = "old_key"           // a key under its name in older releases (warning)
	CodeTrailingComma    Code = "trailing_comma"    // JSON except for a comma, read as YAML (warning)
	CodeLiteral          Code = "literal"           // a text that looks like an expression but is not one (warning)
	CodeNeverMatches     Code = "never_matches"     // a filter that nothing can match (warning)
	CodeAlwaysFails      Code = "always_fails"      // an expression that fails when it is evaluated (warning)
	CodeExtensionKey     Code = "extension_key"     // a correlation key that reads an extension attribute (warning)
	CodeUnreachable      Code = "unreachable"       // a task that no other task leads to (warning)
	CodeEndless          Code = "endless"           // a task that goes to itself without a condition (warning)
	CodeDirectiveName    Code = "directive_name"    // a task named like a flow directive (warning)
)

// Codes lists all codes.
func Codes() []Code {
	return []Code{
		CodeSyntax, CodeLimit, CodeDuplicateKey, CodeUnknownKey, CodeMissingKey, CodeType, CodeValue, CodeUnsupported,
		CodeUnknownReference, CodeDuplicateName, CodeExpression, CodeUnknownVariable, CodeSchema, CodeResource, CodeTaskKind,
		CodeUnused, CodeSecret,
		CodePreRelease, CodeOldKey, CodeTrailingComma, CodeLiteral, CodeNeverMatches, CodeAlwaysFails, CodeExtensionKey,
		CodeUnreachable, CodeEndless, CodeDirectiveName,
	}
}

// Violation is one defect of a document: its position, a message and a suggestion.
type Violation struct {
	Severity   Severity `json:"severity"`
	Code       Code     `json:"code"`
	Path       string   `json:"path"` // JSON pointer; "" is the document
	Message    string   `json:"message"`
	Suggestion string   `json:"suggestion,omitempty"`
	Pos        Pos      `json:"pos"`
}

func (p Violation) String() string {
	var b strings.Builder
	if p.Pos.Line > 0 {
		fmt.Fprintf(&b, "%d:%d: ", p.Pos.Line, p.Pos.Column)
	}
	fmt.Fprintf(&b, "%s: %s", p.Code, p.Message)
	if p.Path != "" {
		fmt.Fprintf(&b, " (at %s)", p.Path)
	}
	if p.Suggestion != "" {
		b.WriteString("; " + p.Suggestion)
	}
	return b.String()
}

// Fix returns the replacement that the suggestion proposes for a word: for the one that begins at the position if word is
// empty. ok is false if the suggestion proposes none.
func (p Violation) Fix() (word, replacement string, ok bool) {
	return suggest.Replacement(p.Suggestion)
}

// Violations are all violations of a document, sorted by position, without duplicates.
type Violations []Violation

// Error joins the violations, one per line.
func (ps Violations) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// HasErrors reports whether one of the violations prevents the document from running.
func (ps Violations) HasErrors() bool {
	return slices.ContainsFunc(ps, func(p Violation) bool { return p.Severity == SeverityError })
}

// sorted orders violations by position and removes duplicates, which occur if two references resolve to one definition.
func (ps Violations) sorted() Violations {
	slices.SortStableFunc(ps, func(a, b Violation) int {
		return cmp.Or(cmp.Compare(a.Pos.Line, b.Pos.Line), cmp.Compare(a.Pos.Column, b.Pos.Column),
			cmp.Compare(a.Path, b.Path), cmp.Compare(a.Code, b.Code), cmp.Compare(a.Message, b.Message))
	})
	return slices.Compact(ps)
}
