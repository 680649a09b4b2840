package workflowcmd

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/internal/cli/exit"
	"github.com/signalbox-dev/signalbox/internal/cli/invocation"
	"github.com/signalbox-dev/signalbox/internal/cli/output"
	"github.com/signalbox-dev/signalbox/internal/terminal"
)

// checked is what "validate" found in one file: the JSON of its output.
type checked struct {
	File       string      `json:"file"`
	Valid      bool        `json:"valid"`
	Workflow   string      `json:"workflow,omitempty"`
	Version    string      `json:"version,omitempty"`
	Hash       string      `json:"hash,omitempty"`
	Violations []violation `json:"violations"`
}

// violation has the shape of the API's Violation.
type violation struct {
	Severity   string `json:"severity"`
	Code       string `json:"code"`
	Message    string `json:"message"`
	Path       string `json:"path,omitempty"`
	Line       int    `json:"line"`
	Column     int    `json:"column"`
	Suggestion string `json:"suggestion,omitempty"`
}

func validateCommand(s *invocation.Invocation) *cobra.Command {
	var strict bool
	cmd := &cobra.Command{
		Use:   "validate FILE...",
		Short: "Check workflow files, without a server",
		Long: `Check workflow files, or all YAML and JSON files in folders, and print every violation as
file:line:column: code: message (suggestion). No server is needed, so only files beside a document that it refers to are read; for
other resources there is a warning. Exits with 1 when a file has an error; warnings, which
report valid documents that are probably wrong, count with --strict only.`,
		Example: `  signalbox workflow validate order.yaml
  signalbox workflow validate examples/workflows -o json`,
		Args: invocation.Args(1, -1, "FILE..."),
		RunE: func(_ *cobra.Command, args []string) error {
			return validate(s, args, strict)
		},
	}
	cmd.Flags().BoolVar(&strict, "strict", false, "fail on warnings, too")
	s.BindOutput(cmd)
	return cmd
}

func lintCommand(s *invocation.Invocation) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "lint FILE...",
		Short: "Check workflow files, and fail on warnings, too",
		Long: `Check workflow files, or all YAML and JSON files in folders, without a server: the same as "validate --strict". Exits with 1
when a file has an error or a warning.`,
		Example: `  signalbox workflow lint order.yaml`,
		Args:    invocation.Args(1, -1, "FILE..."),
		RunE: func(_ *cobra.Command, args []string) error {
			return validate(s, args, true)
		},
	}
	s.BindOutput(cmd)
	return cmd
}

func validate(s *invocation.Invocation, args []string, strict bool) error {
	files, err := workflowFiles(args)
	if err != nil {
		return err
	}
	results := make([]checked, len(files))
	violations := 0
	for i, file := range files {
		doc, err := readDocument(file, s.In)
		if err != nil {
			return err
		}
		results[i] = check(doc)
		violations += len(results[i].Violations)
	}
	if s.Format().Structured() {
		if err := output.Value(s.Out, s.Format(), results); err != nil {
			return err
		}
	} else if err := printViolations(s, results); err != nil {
		return err
	}
	s.Note("%s, %s", output.Count(int64(len(files)), "file"), output.Count(int64(violations), "violation"))
	for _, result := range results {
		if !result.Valid || strict && len(result.Violations) > 0 {
			return exit.Silently(exit.Failed)
		}
	}
	return nil
}

func check(doc document) checked {
	found := doc.resolve()
	result := checked{File: doc.name, Valid: !found.violations.HasErrors(), Violations: []violation{}}
	if parsed := found.parsed; parsed != nil {
		result.Workflow, result.Version = parsed.Namespace+"/"+parsed.Name, parsed.Version
		if !parsed.Partial {
			result.Hash = parsed.Hash()
		}
	}
	for _, p := range found.violations {
		result.Violations = append(result.Violations, violationOf(p))
	}
	return result
}

func violationOf(p dsl.Violation) violation {
	return violation{
		Severity: string(p.Severity), Code: string(p.Code), Message: p.Message, Path: p.Path,
		Line: p.Pos.Line, Column: p.Pos.Column, Suggestion: p.Suggestion,
	}
}

func printViolations(s *invocation.Invocation, results []checked) error {
	var text strings.Builder
	for _, result := range results {
		for _, f := range result.Violations {
			text.WriteString(f.line(result.File, s.Style()) + "\n")
		}
	}
	return terminal.Draw(s.Out, text.String())
}

// line is the form editors and CI systems turn into links.
func (f violation) line(file string, style output.Style) string {
	code := f.Code
	if f.Severity == string(dsl.SeverityWarning) {
		code = style.Status(f.Severity) + ": " + code
	}
	line := fmt.Sprintf("%s:%d:%d: %s: %s", file, max(1, f.Line), max(1, f.Column), code, terminal.Line(f.Message))
	if f.Suggestion != "" {
		line += " (" + terminal.Line(f.Suggestion) + ")"
	}
	return line
}
