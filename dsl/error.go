package dsl

import (
	"fmt"
	"strings"
)

// The error types the specification defines, in the form Signalbox raises them: the base with a name.
const (
	ErrorTypeBase = "https://open-workflow-specification.org/spec/1.0.0/errors/"

	ErrorTypeConfiguration  = ErrorTypeBase + "configuration"
	ErrorTypeValidation     = ErrorTypeBase + "validation"
	ErrorTypeExpression     = ErrorTypeBase + "expression"
	ErrorTypeAuthentication = ErrorTypeBase + "authentication"
	ErrorTypeAuthorization  = ErrorTypeBase + "authorization"
	ErrorTypeTimeout        = ErrorTypeBase + "timeout"
	ErrorTypeCommunication  = ErrorTypeBase + "communication"
	ErrorTypeRuntime        = ErrorTypeBase + "runtime"
)

// standardErrors are the names of the standard errors: the last parts of their types.
func standardErrors() []string {
	return []string{"configuration", "validation", "expression", "authentication", "authorization", "timeout",
		"communication", "runtime"}
}

// Error is an error of a run as Problem Details (RFC 7807) describe it. Instance is the JSON pointer of the task
// that raised it. Title and Detail are empty where the error states none.
type Error struct {
	Type     string `json:"type"`
	Status   int    `json:"status"`
	Title    string `json:"title"`
	Detail   string `json:"detail"`
	Instance string `json:"instance"`
}

// Error implements error.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Title)
	if e.Title == "" {
		b.WriteString(e.Type)
	}
	fmt.Fprintf(&b, " (%d)", e.Status)
	if e.Detail != "" {
		b.WriteString(": " + e.Detail)
	}
	if e.Instance != "" {
		b.WriteString(" at " + e.Instance)
	}
	return b.String()
}

// Value is the error as expressions see it.
func (e *Error) Value() map[string]any {
	return map[string]any{"type": e.Type, "status": e.Status, "title": e.Title, "detail": e.Detail, "instance": e.Instance}
}

// SameErrorType compares error types. The specification moved its standard errors between hosts and paths and its
// texts, examples and conformance kit still mix them, so
//
//	https://{serverlessworkflow.io,open-workflow-specification.org}/{spec/1.0.0/errors,dsl/errors/types}/NAME
//
// are one type for each NAME, over http or https. All other types are the same only if equal.
func SameErrorType(a, b string) bool { return canonicalErrorType(a) == canonicalErrorType(b) }

func canonicalErrorType(t string) string {
	rest, ok := strings.CutPrefix(t, "https://")
	if !ok {
		if rest, ok = strings.CutPrefix(t, "http://"); !ok {
			return t
		}
	}
	host, path, _ := strings.Cut(rest, "/")
	switch strings.TrimPrefix(strings.ToLower(host), "www.") {
	case "serverlessworkflow.io", "open-workflow-specification.org":
	default:
		return t
	}
	for _, prefix := range []string{"spec/1.0.0/errors/", "dsl/errors/types/"} {
		if name, ok := strings.CutPrefix(path, prefix); ok {
			return ErrorTypeBase + strings.TrimSuffix(name, "/")
		}
	}
	return t
}

// Matches reports whether the error has all the members that the filter sets. A nil filter matches every error.
func (f *ErrorFilter) Matches(e *Error) bool {
	if f == nil {
		return true
	}
	equal := func(want *string, got string) bool { return want == nil || *want == got }
	return (f.Type == nil || SameErrorType(*f.Type, e.Type)) &&
		(f.Status == nil || *f.Status == e.Status) &&
		equal(f.Title, e.Title) && equal(f.Detail, e.Detail) && equal(f.Instance, e.Instance)
}
