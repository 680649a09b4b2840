package workflowcmd

import (
	"context"
	"fmt"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/api/signalbox/v1/signalboxv1connect"
	"github.com/signalbox-dev/signalbox/internal/cli/exit"
	"github.com/signalbox-dev/signalbox/internal/cli/invocation"
	"github.com/signalbox-dev/signalbox/internal/cli/runcmd"
)

// otherContent is the server's reason for refusing other content under a published version.
const otherContent = "VERSION_TAKEN"

type runFlags struct {
	runcmd.Input

	bump, detach bool
}

func runCommand(s *invocation.Invocation) *cobra.Command {
	var flags runFlags
	cmd := &cobra.Command{
		Use:   "run FILE",
		Short: "Validate and publish a file, and run it",
		Long: `Validate a file, publish it unless this content is published already, start a run of it, and wait for its end. The outputs and exit
codes are those of "run start --wait".

If the file has changed since its version was published, the command is refused; with --bump it writes the next free version (the
third number plus one) into the file first.`,
		Example: `  signalbox workflow run order.yaml --input '{"sku": "A-7"}'
  signalbox workflow run order.yaml --input order.json --bump`,
		Args: invocation.Args(1, 1, "FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return run(cmd.Context(), s, args[0], &flags)
		},
	}
	flags.Bind(cmd)
	cmd.Flags().BoolVar(&flags.bump, "bump", false,
		"write the next version into the file if its version is published with other content")
	cmd.Flags().BoolVar(&flags.detach, "detach", false, "do not wait for the end of the run")
	s.BindClient(cmd)
	return cmd
}

func run(ctx context.Context, s *invocation.Invocation, file string, flags *runFlags) error {
	doc, err := readDocument(file, s.In)
	if err != nil {
		return err
	}
	if checked := check(doc); !checked.Valid {
		return wrongDocument("run", doc, checked.Violations)
	}
	response, err := publishOnce(ctx, s, doc, flags.bump)
	if err != nil {
		return err
	}
	noteViolations(s, doc.name, response.GetViolations())
	name, version := response.GetWorkflow().GetName(), response.GetVersion().GetVersion()
	if response.GetCreated() {
		s.Note("published %s %s", name, version)
	}
	return flags.Start(ctx, s, name, version, !flags.detach)
}

// publishOnce publishes a document, if bump is set with the next free version.
func publishOnce(ctx context.Context, s *invocation.Invocation, doc document,
	bump bool) (*signalboxv1.PublishWorkflowResponse, error) {
	send := func(doc document) (*signalboxv1.PublishWorkflowResponse, error) {
		request := &signalboxv1.PublishWorkflowRequest{
			Project: s.Project(), Source: string(doc.source), Files: doc.resolve().files,
		}
		return invocation.Send(ctx, s, s.Workflows().PublishWorkflow, request)
	}
	response, err := send(doc)
	if exit.Reason(err) == otherContent {
		if !bump {
			return nil, s.FailedHint(err, "--bump writes the next version into the file", "publish %s", doc.name)
		}
		if doc, response, err = publishNext(doc, send); err == nil {
			s.Note("%s has version %s now", doc.name, response.GetVersion().GetVersion())
		}
	}
	if err != nil {
		return nil, refusedDocument(s, err, "publish", doc)
	}
	return response, nil
}

// publishNext publishes a document with the next free version, which it writes into the file.
func publishNext(
	doc document, send func(document) (*signalboxv1.PublishWorkflowResponse, error),
) (document, *signalboxv1.PublishWorkflowResponse, error) {
	for {
		next, err := withNextVersion(doc)
		if err != nil {
			return doc, nil, err
		}
		doc = next
		if response, err := send(doc); exit.Reason(err) != otherContent {
			return doc, response, err
		}
	}
}

// PublishFile validates a file and publishes it with a client. If its version is published with other content, the next
// free version is written into the file first. The error of an invalid file has a line for each violation, with file,
// line and column.
func PublishFile(
	ctx context.Context, client signalboxv1connect.WorkflowServiceClient, project, file string,
) (*signalboxv1.PublishWorkflowResponse, error) {
	doc, err := readDocument(file, nil)
	if err != nil {
		return nil, err
	}
	if checked := check(doc); !checked.Valid {
		return nil, wrongDocument("publish", doc, checked.Violations)
	}
	send := func(doc document) (*signalboxv1.PublishWorkflowResponse, error) {
		response, err := client.PublishWorkflow(ctx,
			connect.NewRequest(&signalboxv1.PublishWorkflowRequest{
				Project: project, Source: string(doc.source), Files: doc.resolve().files,
			}))
		if err != nil {
			return nil, err
		}
		return response.Msg, nil
	}
	response, err := send(doc)
	if exit.Reason(err) == otherContent {
		_, response, err = publishNext(doc, send)
	}
	if err != nil {
		return nil, fmt.Errorf("publish %s: %w", file, err)
	}
	return response, nil
}
