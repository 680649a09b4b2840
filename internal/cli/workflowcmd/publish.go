package workflowcmd

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/cli/exit"
	"github.com/signalbox-dev/signalbox/internal/cli/invocation"
	"github.com/signalbox-dev/signalbox/internal/cli/output"
)

// invalidDocument is the server's reason for refusing a document whose violations "validate" would list.
const invalidDocument = "INVALID_DOCUMENT"

func saveCommand(s *invocation.Invocation) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "save FILE",
		Short: "Save a file as its workflow's draft",
		Long: `Save a file (- for standard input) as the draft of the workflow it names. A draft may have violations; they are
printed, and only publishing refuses them.`,
		Example: `  signalbox workflow save order.yaml`,
		Args:    invocation.Args(1, 1, "FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return save(cmd.Context(), s, args[0])
		},
	}
	s.BindClient(cmd)
	return cmd
}

func save(ctx context.Context, s *invocation.Invocation, file string) error {
	doc, err := readDocument(file, s.In)
	if err != nil {
		return err
	}
	request := &signalboxv1.SaveDraftRequest{
		Project: s.Project(), Source: string(doc.source), Files: doc.resolve().files,
	}
	response, err := invocation.Send(ctx, s, s.Workflows().SaveDraft, request)
	if err != nil {
		return refusedDocument(s, err, "save", doc)
	}
	if !s.Format().Structured() {
		noteViolations(s, doc.name, response.GetViolations())
	}
	return s.Card(response, workflowFields(response.GetWorkflow()))
}

func publishCommand(s *invocation.Invocation) *cobra.Command {
	var (
		draft  string
		strict bool
	)
	cmd := &cobra.Command{
		Use:   "publish FILE|FOLDER…",
		Short: "Publish files, or a stored draft, as immutable versions",
		Long: `Publish files (- for standard input), or with --draft the stored draft of a workflow, as immutable versions. The
version is the one the document names. Of a folder, the workflow files in and below it are published; a file that is refused does not
keep the others from being published, and the exit code is then 1. The files beside it that it refers to are sent along; the server reads its other resources
and stores them with the version. Publishing the same content again changes nothing; other content under a
published version is refused. With --strict, so is a document with warnings.`,
		Example: `  signalbox workflow publish order.yaml
  signalbox workflow publish workflows/
  signalbox workflow publish --draft shop/order`,
		Args: invocation.Args(0, -1, "FILE|FOLDER…"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if (draft == "") == (len(args) == 0) {
				return exit.Usagef("publish either files or, with --draft NAME, a stored draft; see \"%s --help\"",
					cmd.CommandPath())
			}
			if draft != "" {
				return publish(cmd.Context(), s, document{name: "the draft of " + draft}, draft, strict)
			}
			files, err := workflowFiles(args)
			if err != nil {
				return err
			}
			if len(files) == 1 {
				return publishFile(cmd.Context(), s, files[0], strict)
			}
			return publishAll(cmd.Context(), s, files, strict)
		},
	}
	cmd.Flags().StringVar(&draft, "draft", "", "publish the stored draft of this workflow, by `name`")
	cmd.Flags().BoolVar(&strict, "strict", false, "publish nothing that has warnings")
	_ = cmd.RegisterFlagCompletionFunc("draft",
		func(cmd *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return s.CompleteWorkflows(cmd, nil, typed)
		}) // the flag is there
	s.BindClient(cmd)
	return cmd
}

func publishFile(ctx context.Context, s *invocation.Invocation, file string, strict bool) error {
	doc, err := documentToPublish(s, file)
	if err != nil {
		return err
	}
	return publish(ctx, s, doc, "", strict)
}

// documentToPublish reads a document that is not empty: the API takes an empty source for "the draft".
func documentToPublish(s *invocation.Invocation, file string) (document, error) {
	doc, err := readDocument(file, s.In)
	if err == nil && len(doc.source) == 0 {
		err = wrongDocument("publish", doc, check(doc).Violations)
	}
	return doc, err
}

// publishAll publishes several files, each by itself, and prints a table of the versions.
func publishAll(ctx context.Context, s *invocation.Invocation, files []string, strict bool) error {
	var published []*signalboxv1.PublishWorkflowResponse
	var rows []output.Row
	refused := 0
	for _, file := range files {
		doc, err := documentToPublish(s, file)
		var response *signalboxv1.PublishWorkflowResponse
		if err == nil {
			response, err = sendDocument(ctx, s, doc, "", strict)
		}
		if err != nil {
			if ctx.Err() != nil || exit.Code(err) == exit.Unavailable {
				return err
			}
			s.Note("error: %s", exit.Line(err))
			refused++
			continue
		}
		change := "published"
		if !response.GetCreated() {
			change = "unchanged"
		}
		published = append(published, response)
		rows = append(rows, output.Cells("WORKFLOW", response.GetWorkflow().GetName(),
			"VERSION", response.GetVersion().GetVersion(), "CHANGE", change,
			"+HASH", response.GetVersion().GetHash(), "+FILE", file))
	}
	show := func() error { return output.Rows(s.Out, s.Format(), s.Style(), rows) }
	if s.Format().Structured() {
		show = func() error { return output.List(s.Out, s.Format(), published) }
	}
	if err := show(); err != nil {
		return err
	}
	if refused > 0 {
		return exit.Errorf(exit.Failed, "%d of %s were not published", refused, output.Count(int64(len(files)), "file"))
	}
	return nil
}

func publish(ctx context.Context, s *invocation.Invocation, doc document, draft string, strict bool) error {
	response, err := sendDocument(ctx, s, doc, draft, strict)
	if err != nil {
		return err
	}
	if !s.Format().Structured() && !response.GetCreated() {
		s.Note("this content was published before; nothing changed")
	}
	version := response.GetVersion()
	return s.Card(response, []output.Field{
		{Name: "workflow", Value: response.GetWorkflow().GetName()},
		{Name: "version", Value: version.GetVersion()},
		{Name: "hash", Value: version.GetHash()},
		{Name: "state", Value: response.GetWorkflow().GetState()},
	})
}

// sendDocument publishes a document, or a draft, and notes its violations.
func sendDocument(ctx context.Context, s *invocation.Invocation, doc document, draft string,
	strict bool) (*signalboxv1.PublishWorkflowResponse, error) {
	ctx, cancel := s.Deadline(ctx)
	defer cancel()
	if strict {
		var err error
		if doc, err = withoutViolations(ctx, s, doc, draft); err != nil {
			return nil, err
		}
		draft = "" // what was checked is what is published
	}
	request := &signalboxv1.PublishWorkflowRequest{
		Project: s.Project(), Source: string(doc.source), Workflow: draft, Files: doc.resolve().files,
	}
	response, err := invocation.Send(ctx, s, s.Workflows().PublishWorkflow, request)
	if err != nil {
		return nil, refusedDocument(s, err, "publish", doc)
	}
	if !s.Format().Structured() {
		noteViolations(s, doc.name, response.GetViolations())
	}
	return response, nil
}

// withoutViolations returns the document, or the draft, if the server has nothing to say about it.
func withoutViolations(ctx context.Context, s *invocation.Invocation, doc document, draft string) (document, error) {
	if draft != "" {
		request := &signalboxv1.GetWorkflowRequest{Project: s.Project(), Workflow: draft, Draft: true}
		response, err := invocation.Call(ctx, s, s.Workflows().GetWorkflow, request, "publish %s", doc.name)
		if err != nil {
			return doc, err
		}
		doc.source = []byte(response.GetDraftSource())
	}
	request := &signalboxv1.ValidateWorkflowRequest{
		Project: s.Project(), Source: string(doc.source), Files: doc.resolve().files,
	}
	response, err := invocation.Call(ctx, s, s.Workflows().ValidateWorkflow, request, "publish %s", doc.name)
	if err != nil {
		return doc, err
	}
	if found := response.GetViolations(); len(found) > 0 {
		return doc, wrongDocument("publish", doc, received(found))
	}
	return doc, nil
}

// refusedDocument is the error of a document that the server has refused. Its violations are printed with their
// positions in the file, as "validate" prints them; the server's own list has no file names.
func refusedDocument(s *invocation.Invocation, err error, what string, doc document) error {
	if exit.Reason(err) == invalidDocument && len(doc.source) > 0 {
		if checked := check(doc); !checked.Valid {
			return wrongDocument(what, doc, checked.Violations)
		}
	}
	return s.Failed(err, "%s %s", what, doc.name)
}

// wrongDocument is one line for one violation, and a line for each of several.
func wrongDocument(what string, doc document, violations []violation) error {
	if len(violations) == 1 {
		return exit.Errorf(exit.Failed, "%s %s", what, violations[0].line(doc.name, output.Style{}))
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%s %s: %s", what, doc.name, output.Count(int64(len(violations)), "violation"))
	for _, f := range violations {
		text.WriteString("\n" + f.line(doc.name, output.Style{}))
	}
	return exit.Errorf(exit.Failed, "%s", text.String())
}

func noteViolations(s *invocation.Invocation, file string, violations []*signalboxv1.Violation) {
	for _, f := range received(violations) {
		s.Note("%s", f.line(file, s.ErrStyle()))
	}
}

// received are the violations of a server.
func received(violations []*signalboxv1.Violation) []violation {
	out := make([]violation, len(violations))
	for i, f := range violations {
		out[i] = violation{
			Severity: f.GetSeverity(), Code: f.GetCode(), Message: f.GetMessage(), Path: f.GetPath(),
			Line: int(f.GetLine()), Column: int(f.GetColumn()), Suggestion: f.GetSuggestion(),
		}
	}
	return out
}
