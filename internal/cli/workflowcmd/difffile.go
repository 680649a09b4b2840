package workflowcmd

import (
	"context"
	"fmt"
	"strings"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/dsl/docdiff"
	"github.com/signalbox-dev/signalbox/internal/cli/exit"
	"github.com/signalbox-dev/signalbox/internal/cli/invocation"
	"github.com/signalbox-dev/signalbox/internal/cli/output"
)

// draftVersion is the name of the draft among versions.
const draftVersion = "draft"

// change is the JSON of one difference of a file from a published version.
type change struct {
	Kind   string   `json:"kind"`
	Task   string   `json:"task,omitempty"`
	Before string   `json:"before,omitempty"`
	After  string   `json:"after,omitempty"`
	Parts  []string `json:"parts,omitempty"`
	Line   int      `json:"line,omitempty"`
	Column int      `json:"column,omitempty"`
}

// diffFile compares a file with a version of its workflow on the server: the newest one when version is empty.
func diffFile(ctx context.Context, s *invocation.Invocation, file, version string) error {
	source, err := readDocument(file, s.In)
	if err != nil {
		return err
	}
	after := source.resolve().parsed
	if after == nil {
		return wrongDocument("diff", source, check(source).Violations)
	}
	name := after.Namespace + "/" + after.Name
	request := &signalboxv1.GetWorkflowRequest{Project: s.Project(), Workflow: name, Version: version}
	if version == draftVersion {
		request.Version, request.Draft = "", true
	}
	response, err := invocation.Call(ctx, s, s.Workflows().GetWorkflow, request, "read workflow %q", name)
	if err != nil {
		return err
	}
	published, label := response.GetVersion().GetSource(), response.GetVersion().GetVersion()
	if response.GetVersion() == nil {
		published, label = response.GetDraftSource(), "the draft"
	}
	before, violations := outline([]byte(published))
	if before == nil {
		return exit.Errorf(exit.Failed, "%s of workflow %q has errors: %w", label, name, violations)
	}
	return printChanges(s, docdiff.Compare(before, after), fmt.Sprintf("%s and %s of %s", source.name, label, name))
}

func printChanges(s *invocation.Invocation, changes []docdiff.Change, compared string) error {
	if s.Format().Structured() {
		list := make([]change, len(changes))
		for i, c := range changes {
			list[i] = change{string(c.Kind), c.Task, c.Before, c.After, c.Parts, c.Pos.Line, c.Pos.Column}
		}
		return output.Value(s.Out, s.Format(), list)
	}
	if len(changes) == 0 {
		s.Note("%s have the same structure", compared)
		return nil
	}
	rows := make([]output.Row, len(changes))
	for i, c := range changes {
		place := c.After
		if place == "" {
			place = c.Before
		}
		from := ""
		if c.Kind == docdiff.Moved {
			from = c.Before
		}
		rows[i] = output.Cells("CHANGE", string(c.Kind), "TASK", c.Task, "AT", place, "PARTS", strings.Join(c.Parts, ", "),
			"FROM", from)
	}
	s.Note("%s differ:", compared)
	return output.Rows(s.Out, s.Format(), s.Style(), rows)
}
