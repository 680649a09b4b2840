package workflowcmd

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/dsl"
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
	found := source.resolve()
	after, _ := dsl.ParseStructure(source.source)
	if found.parsed == nil || after == nil {
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
	before, violations := dsl.ParseStructure([]byte(published))
	if before == nil {
		return exit.Errorf(exit.Failed, "%s of workflow %q has errors: %w", label, name, violations)
	}
	changes := docdiff.Compare(before, after)
	if response.GetVersion() != nil {
		changes = append(changes, changedFiles(response.GetVersion().GetResources(), found.files)...)
	}
	return printChanges(s, changes, fmt.Sprintf("%s and %s of %s", source.name, label, name))
}

// changedFiles returns the files beside the document that differ from those of a version. What a version has from
// elsewhere is not compared.
func changedFiles(published []*signalboxv1.Resource, files map[string]string) []docdiff.Change {
	before := map[string]string{}
	for _, r := range published {
		if !strings.Contains(r.GetUri(), ":") { // a path has no scheme and no version of a function
			before[r.GetUri()] = r.GetHash()
		}
	}
	var changes []docdiff.Change
	for _, path := range slices.Sorted(maps.Keys(files)) {
		switch hash, known := before[path]; {
		case !known:
			changes = append(changes, docdiff.Change{Kind: docdiff.Added, After: path})
		case hash != dsl.ContentHash([]byte(files[path])):
			changes = append(changes, docdiff.Change{Kind: docdiff.Changed, Before: path, After: path})
		}
		delete(before, path)
	}
	for _, path := range slices.Sorted(maps.Keys(before)) {
		changes = append(changes, docdiff.Change{Kind: docdiff.Removed, Before: path})
	}
	return changes
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
