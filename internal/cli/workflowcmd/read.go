package workflowcmd

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/cli/exit"
	"github.com/signalbox-dev/signalbox/internal/cli/invocation"
	"github.com/signalbox-dev/signalbox/internal/cli/output"
	"github.com/signalbox-dev/signalbox/internal/terminal"
)

func listCommand(s *invocation.Invocation) *cobra.Command {
	var text string
	var states []string
	var limit int
	var stats, everywhere bool
	var period window
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List workflows by name",
		Long: `List workflows by name. With -o wide, the table contains statistics of their runs; --stats adds these to JSON and YAML. With
--all-projects, list those of all projects in which you have a role, without statistics.`,
		Example: `  signalbox workflow list -o wide --window 7d
  signalbox workflow list --stats -o json
  signalbox workflow list --all-projects --text invoice`,
		Args: invocation.Args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if everywhere {
				if stats || period.text != "" || cmd.Flags().Changed("project") {
					return exit.Usagef("--all-projects excludes --project, --stats and --window")
				}
				return find(cmd.Context(), s, &signalboxv1.FindWorkflowsRequest{Text: text, States: states}, limit)
			}
			request := &signalboxv1.ListWorkflowsRequest{
				Project: s.Project(), Text: text, States: states, Stats: stats || s.Format() == output.Wide}
			if period.text != "" && !request.GetStats() {
				return exit.Usagef("--window has an effect only with -o wide or --stats")
			}
			var err error
			if request.StatsWindow, err = period.length(); err != nil {
				return err
			}
			return list(cmd.Context(), s, request, limit)
		},
	}
	known := []string{"draft", "published", "paused"}
	cmd.Flags().StringVar(&text, "text", "", "only names that contain this `text`")
	cmd.Flags().StringSliceVar(&states, "state", nil, "only these `states`, separated by commas: draft, published, paused")
	cmd.Flags().IntVarP(&limit, "limit", "n", 0, "at most this many; 0 for all")
	cmd.Flags().BoolVar(&stats, "stats", false, "with statistics of the runs")
	cmd.Flags().BoolVar(&everywhere, "all-projects", false, "of all projects in which you have a role")
	period.bind(cmd)
	// the flag is there
	_ = cmd.RegisterFlagCompletionFunc("state", cobra.FixedCompletions(known, cobra.ShellCompDirectiveNoFileComp))
	s.BindClient(cmd)
	return cmd
}

// statsPage is the server's limit for a page with statistics.
const statsPage = 50

func list(ctx context.Context, s *invocation.Invocation, request *signalboxv1.ListWorkflowsRequest, limit int) error {
	return invocation.Listing[*signalboxv1.Workflow]{
		Thing: "workflow", None: "no workflows match in project " + s.Project() + "; publish one: " +
			s.Command("workflow publish FILE"),
		Row: func(workflow *signalboxv1.Workflow) output.Row {
			stats := workflow.GetStats()
			return append(row(s, workflow), output.Cells(
				"+RUNS", runs(stats), "+SUCCESS", successRate(stats), "+P50", percentile(stats, stats.GetP50()), "+P95",
				percentile(stats, stats.GetP95()),
				"+OPEN", count(stats, "open", stats.GetOpen()), "+STUCK", count(stats, "stuck", stats.GetStuck()),
			)...)
		},
	}.List(s, limit, func(size int32, token string) ([]*signalboxv1.Workflow, string, error) {
		request.PageSize, request.PageToken = size, token
		if request.GetStats() {
			request.PageSize = min(size, statsPage)
		}
		response, err := invocation.Call(ctx, s, s.Workflows().ListWorkflows, request, "list workflows")
		return response.GetWorkflows(), response.GetNextPageToken(), err
	})
}

// find lists the workflows of all projects.
func find(ctx context.Context, s *invocation.Invocation, request *signalboxv1.FindWorkflowsRequest, limit int) error {
	return invocation.Listing[*signalboxv1.Workflow]{
		Thing: "workflow", None: "no workflows match in the projects in which you have a role",
		Row: func(workflow *signalboxv1.Workflow) output.Row {
			return append(output.Cells("PROJECT", workflow.GetProject()), row(s, workflow)...)
		},
	}.List(s, limit, func(size int32, token string) ([]*signalboxv1.Workflow, string, error) {
		request.PageSize, request.PageToken = size, token
		response, err := invocation.Call(ctx, s, s.Workflows().FindWorkflows, request, "list workflows")
		return response.GetWorkflows(), response.GetNextPageToken(), err
	})
}

// row has the columns of every list of workflows.
func row(s *invocation.Invocation, workflow *signalboxv1.Workflow) output.Row {
	draft := ""
	if workflow.GetHasDraft() {
		draft = "yes"
	}
	return output.Cells(
		"WORKFLOW", workflow.GetName(), "STATE", workflow.GetState(), "LATEST", workflow.GetLatestVersion(),
		"DRAFT", draft, "TITLE", workflow.GetTitle(), "UPDATED", s.Age(workflow.GetUpdateTime()),
		"+CREATED", output.Moment(workflow.GetCreateTime()), "+PAUSE REASON", workflow.GetPauseReason(),
	)
}

func showCommand(s *invocation.Invocation) *cobra.Command {
	var version string
	var draft, source, resources bool
	var period window
	cmd := &cobra.Command{
		Use:   "show NAME",
		Short: "Show a workflow with the source of one version, or of its draft",
		Long: `Show a workflow with the source of one version, or of its draft. With --resources, list the texts outside the document that
the version refers to, as they were when it was published.`,
		Example: `  signalbox workflow show order@1.2.0
  signalbox workflow show order --source > order.yaml
  signalbox workflow show order --resources`,
		Args:              invocation.Args(1, 1, "NAME"),
		ValidArgsFunction: s.CompleteWorkflows,
		RunE: func(cmd *cobra.Command, args []string) error {
			name, version, err := invocation.NameAndVersion(args[0], version)
			if err != nil {
				return err
			}
			if draft && version != "" {
				return exit.Usagef("--draft and --version exclude each other")
			}
			if resources && (draft || source) {
				return exit.Usagef("--resources excludes --draft and --source")
			}
			length, err := period.length()
			if err != nil {
				return err
			}
			return show(cmd.Context(), s, &signalboxv1.GetWorkflowRequest{
				Project: s.Project(), Workflow: name, Version: version, Draft: draft, StatsWindow: length,
			}, source, resources)
		},
	}
	cmd.Flags().StringVar(&version, "version", "", "`version` to show; the newest published one when empty")
	cmd.Flags().BoolVar(&draft, "draft", false, "show the draft")
	period.bind(cmd)
	cmd.Flags().BoolVar(&source, "source", false, "print the document only, byte for byte")
	cmd.Flags().BoolVar(&resources, "resources", false, "list the resources of the version")
	s.BindClient(cmd)
	return cmd
}

func show(ctx context.Context, s *invocation.Invocation, request *signalboxv1.GetWorkflowRequest,
	sourceOnly, resources bool) error {
	response, err := invocation.Call(ctx, s, s.Workflows().GetWorkflow, request, "show workflow %q", request.GetWorkflow())
	if err != nil {
		return err
	}
	version := response.GetVersion()
	source := version.GetSource()
	if version == nil {
		source = response.GetDraftSource()
	}
	switch {
	case resources:
		return listResources(s, version)
	case sourceOnly:
		_, err := io.WriteString(s.Out, source)
		return err
	case s.Format().Structured():
		return output.Message(s.Out, s.Format(), response)
	}
	fields := workflowFields(response.GetWorkflow())
	if version != nil {
		fields = append(fields,
			output.Field{Name: "version", Value: version.GetVersion()},
			output.Field{Name: "hash", Value: version.GetHash()},
			output.Field{Name: "published", Value: output.Moment(version.GetPublishTime())},
			output.Field{Name: "publisher", Value: version.GetPublisher()})
	}
	fields = append(fields, statsFields(response.GetWorkflow().GetStats())...)
	fields = append(fields, timerFields(response.GetTimer())...)
	return output.Card(s.Out, s.Style(),
		append(fields, output.Field{Name: "source", Value: strings.TrimRight(source, "\n") + "\n"}))
}

func listResources(s *invocation.Invocation, version *signalboxv1.WorkflowVersion) error {
	return invocation.Listing[*signalboxv1.Resource]{
		Thing: "resource", None: "the version refers to no resources",
		Row: func(r *signalboxv1.Resource) output.Row {
			return output.Cells(
				"URI", r.GetUri(), "SIZE", output.Bytes(r.GetSize()), "LOADED", output.Moment(r.GetLoadTime()), "HASH", r.GetHash(),
			)
		},
	}.Print(s, version.GetResources(), false)
}

func versionsCommand(s *invocation.Invocation) *cobra.Command {
	cmd := &cobra.Command{
		Use:               "versions NAME",
		Short:             "List a workflow's published versions, newest first",
		Example:           `  signalbox workflow versions shop/order`,
		Args:              invocation.Args(1, 1, "NAME"),
		ValidArgsFunction: s.CompleteWorkflows,
		RunE: func(cmd *cobra.Command, args []string) error {
			return versions(cmd.Context(), s, args[0])
		},
	}
	s.BindClient(cmd)
	return cmd
}

func versions(ctx context.Context, s *invocation.Invocation, name string) error {
	return invocation.Listing[*signalboxv1.WorkflowVersion]{
		Thing: "version", None: fmt.Sprintf("no version of %q is published yet", name),
		Row: func(version *signalboxv1.WorkflowVersion) output.Row {
			return output.Cells(
				"VERSION", version.GetVersion(), "PUBLISHED", output.Moment(version.GetPublishTime()),
				"PUBLISHER", version.GetPublisher(), "+HASH", version.GetHash(),
			)
		},
	}.List(s, 0, func(size int32, token string) ([]*signalboxv1.WorkflowVersion, string, error) {
		response, err := invocation.Call(ctx, s, s.Workflows().ListVersions, &signalboxv1.ListVersionsRequest{
			Project: s.Project(), Workflow: name, PageSize: size, PageToken: token,
		}, "list the versions of workflow %q", name)
		return response.GetVersions(), response.GetNextPageToken(), err
	})
}

func diffCommand(s *invocation.Invocation) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "diff NAME V1 V2 | FILE [VERSION]",
		Short: "Compare two versions, or the tasks of a file and a version",
		Long: `Compare the sources of two versions of a workflow, line by line. "draft" means the draft.

With a file (an argument that ends with .yaml, .yml or .json, or - for standard input), compare its structure with the newest
published version of its workflow, or with VERSION: the tasks that were added, removed, moved or changed, with the members
that differ. The order of keys, comments and the version do not count.`,
		Example: `  signalbox workflow diff shop/order 1.0.0 1.1.0
  signalbox workflow diff order.yaml`,
		Args:              invocation.Args(1, 3, "NAME V1 V2 | FILE [VERSION]"),
		ValidArgsFunction: s.CompleteWorkflows,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch file := isYAML(args[0]) || args[0] == stdinName; {
			case file && len(args) == 1:
				return diffFile(cmd.Context(), s, args[0], "")
			case file && len(args) == 2:
				return diffFile(cmd.Context(), s, args[0], args[1])
			case file:
				return exit.Usagef("a file is compared with one version; write %s FILE [VERSION]", cmd.CommandPath())
			case len(args) < 3:
				return exit.Usagef("name two versions; write %s NAME V1 V2", cmd.CommandPath())
			}
			return diff(cmd.Context(), s, args[0], args[1], args[2])
		},
	}
	s.BindClient(cmd)
	return cmd
}

func diff(ctx context.Context, s *invocation.Invocation, name, from, to string) error {
	response, err := invocation.Call(ctx, s, s.Workflows().DiffVersions, &signalboxv1.DiffVersionsRequest{
		Project: s.Project(), Workflow: name, From: from, To: to,
	}, "compare %s and %s of workflow %q", from, to, name)
	if err != nil {
		return err
	}
	if s.Format().Structured() {
		return output.Message(s.Out, s.Format(), response)
	}
	if response.GetUnified() == "" {
		s.Note("the sources are equal")
		return nil
	}
	unified := strings.TrimRight(response.GetUnified(), "\n") + "\n"
	if !invocation.IsTerminal(s.Out) {
		_, err = io.WriteString(s.Out, unified) // as it is, so that it can be applied
		return err
	}
	var text strings.Builder
	for line := range strings.Lines(unified) {
		text.WriteString(s.Style().Diff(terminal.Line(strings.TrimSuffix(line, "\n"))) + "\n")
	}
	return terminal.Draw(s.Out, text.String())
}
