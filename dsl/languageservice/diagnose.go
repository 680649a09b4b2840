package languageservice

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/workflowtest"
)

// Diagnostic is a violation with the part of the text that it concerns.
type Diagnostic struct {
	Range      Range
	Severity   dsl.Severity
	Code       dsl.Code
	Message    string
	Suggestion string
	Fixes      []Fix
}

// Fix is a change of the text that mends a violation.
type Fix struct {
	Title string
	Edits []Edit
}

// Files reads a file by its path relative to the folder of the document.
type Files func(path string) ([]byte, error)

// Diagnose returns the violations of a document. files reads the files that it refers to; nil: there are none.
func (t *Text) Diagnose(files Files) []Diagnostic {
	_, violations := parse([]byte(t.source), files)
	return t.diagnostics(violations)
}

// parse parses a document with the files that it refers to. Other resources are postponed.
func parse(source []byte, files Files) (*dsl.Document, dsl.Violations) {
	resources := dsl.NewResources()
	for round := 0; ; round++ {
		doc, violations := dsl.Parse(source, dsl.WithResources(resources))
		missing := resources.Missing()
		if len(missing) == 0 || round > dsl.MaxResources {
			return doc, violations
		}
		for _, reference := range missing {
			if reference.Kind != dsl.ReferenceFile || files == nil {
				resources.Postpone(reference.URI)
				continue
			}
			content, err := files(reference.URI)
			if err != nil {
				resources.Fail(reference.URI, err)
				continue
			}
			resources.Add(reference.URI, content)
		}
	}
}

// DiagnoseTests returns the violations of a test file. name is that of the file, without its folder: files reads the
// workflow beside it, which the cases are compared with.
func (t *Text) DiagnoseTests(name string, files Files) []Diagnostic {
	tests, violations := workflowtest.Parse([]byte(t.source))
	if tests == nil || files == nil {
		return t.diagnostics(violations)
	}
	source, err := workflowOf(tests, name, files)
	if err != nil {
		return []Diagnostic{{
			Range: Range{dsl.Pos{Line: 1, Column: 1}, dsl.Pos{Line: 1, Column: 1}}, Severity: dsl.SeverityError,
			Code: dsl.CodeResource, Message: err.Error(), Suggestion: "name the workflow: workflow: FILE",
		}}
	}
	if doc, _ := parse(source, files); doc != nil {
		violations = tests.Check(doc)
	}
	return t.diagnostics(violations)
}

// workflowOf reads the workflow of a test file.
func workflowOf(tests *workflowtest.File, name string, files Files) ([]byte, error) {
	if tests.Workflow != "" {
		source, err := files(path.Clean(tests.Workflow))
		if err != nil {
			return nil, fmt.Errorf("the workflow %q cannot be read: %w", tests.Workflow, err)
		}
		return source, nil
	}
	base := strings.TrimSuffix(strings.TrimSuffix(name, path.Ext(name)), ".test")
	for _, extension := range []string{".yaml", ".yml", ".json"} {
		source, err := files(base + extension)
		if err == nil {
			return source, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("the workflow %q cannot be read: %w", base+extension, err)
		}
	}
	return nil, fmt.Errorf("there is no workflow %s.yaml beside the tests", base)
}

func (t *Text) diagnostics(violations dsl.Violations) []Diagnostic {
	out := make([]Diagnostic, 0, len(violations))
	for _, v := range violations {
		s := t.concerned(v)
		d := Diagnostic{Range: t.rangeOf(s), Severity: v.Severity, Code: v.Code, Message: v.Message, Suggestion: v.Suggestion}
		if word, replacement, ok := v.Fix(); ok {
			if word != "" {
				s, ok = t.keyAt(v.Path, word)
			}
			if ok && s.end > s.start {
				d.Fixes = []Fix{{Title: fmt.Sprintf("Replace by %q", replacement),
					Edits: []Edit{{t.rangeOf(s), t.replacement(v, s, replacement)}}}}
			}
		}
		out = append(out, d)
	}
	return out
}

// replacement returns the text that a fix writes: in an expression as it is, elsewhere with the quotes that it needs.
func (t *Text) replacement(v dsl.Violation, s span, text string) string {
	if inExpression(v.Code) || strings.Contains(text, ":") && !strings.ContainsAny(text, " {}[],&*#?|<>=!%@'\"") {
		if quote := t.source[s.start]; quote != '\'' && quote != '"' {
			return text
		}
	}
	return t.quoted(s, text)
}

// inExpression reports whether violations of a code are at a word in an expression.
func inExpression(code dsl.Code) bool {
	return code == dsl.CodeExpression || code == dsl.CodeUnknownVariable
}

// keyAt returns the position of a key of the object at a pointer.
func (t *Text) keyAt(pointer, key string) (span, bool) {
	n, exact := t.at(pointer)
	if member := n.member(key); exact && member != nil {
		return span{member.keyStart, member.keyEnd}, true
	}
	return span{}, false
}

// concerned returns the part of the text that a violation concerns: the key or the value that begins at its position,
// or the word there.
func (t *Text) concerned(v dsl.Violation) span {
	if v.Pos.Line == 0 {
		return span{0, 0}
	}
	at := t.offset(v.Pos)
	if n, exact := t.at(v.Path); exact {
		switch {
		case n.name != "" && at == n.keyStart:
			return span{n.keyStart, n.keyEnd}
		case at == n.start && n.shape == scalar && n.end > n.start && !n.block:
			return span{n.start, n.end}
		case at == n.start && n.shape != scalar && n.name != "":
			return span{n.keyStart, n.keyEnd}
		}
	}
	start := at
	for start < len(t.source) && t.source[start] == '$' {
		start++
	}
	end := start
	for end < len(t.source) && isWordByte(t.source[end]) {
		end++
	}
	if end == start { // a sign
		return span{at, min(len(t.source), at+1)}
	}
	return span{start, end}
}

func isWordByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}
