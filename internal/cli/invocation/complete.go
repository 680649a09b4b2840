package invocation

import (
	"context"
	"time"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
)

// completionTimeout keeps a shell from hanging on a server that is slow or away: better no proposals.
const completionTimeout = time.Second

const completionLimit = 100

// complete asks the server for proposals for the first argument.
func complete[Q, R, T any](
	s *Invocation, cmd *cobra.Command, args []string, list method[Q, R], request *Q,
	items func(*R) []T, proposal func(T) (text, description string),
) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 || s.Check() != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
	defer cancel()

	response, err := list(ctx, connect.NewRequest(request))
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var found []cobra.Completion
	for _, item := range items(response.Msg) {
		found = append(found, cobra.CompletionWithDesc(proposal(item)))
	}
	return found, cobra.ShellCompDirectiveNoFileComp
}

// CompleteContexts proposes the names of contexts.
func (s *Invocation) CompleteContexts(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	file, err := LoadContexts(ContextsPath(s.Env))
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return file.Names(), cobra.ShellCompDirectiveNoFileComp
}

// CompleteWorkflowFlag proposes workflow names for a flag.
func (s *Invocation) CompleteWorkflowFlag(cmd *cobra.Command, _ []string,
	typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return s.CompleteWorkflows(cmd, nil, typed)
}

// CompleteProblems proposes the IDs of problems for the first argument.
func (s *Invocation) CompleteProblems(cmd *cobra.Command, args []string,
	_ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	request := &signalboxv1.ListProblemsRequest{PageSize: completionLimit}
	return complete(s, cmd, args, s.Problems().ListProblems, request, (*signalboxv1.ListProblemsResponse).GetProblems,
		func(item *signalboxv1.Problem) (string, string) { return item.GetId(), item.GetTitle() })
}

// CompleteWebhooks proposes the names of webhooks for the first argument.
func (s *Invocation) CompleteWebhooks(cmd *cobra.Command, args []string,
	_ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	request := &signalboxv1.ListWebhooksRequest{Project: s.Project()}
	return complete(s, cmd, args, s.Webhooks().ListWebhooks, request, (*signalboxv1.ListWebhooksResponse).GetWebhooks,
		func(item *signalboxv1.Webhook) (string, string) { return item.GetName(), item.GetUrl() })
}

// CompleteWorkflows proposes workflow names for the first argument.
func (s *Invocation) CompleteWorkflows(cmd *cobra.Command, args []string,
	typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	request := &signalboxv1.ListWorkflowsRequest{Project: s.Project(), PageSize: completionLimit, Text: typed}
	return complete(s, cmd, args, s.Workflows().ListWorkflows, request, (*signalboxv1.ListWorkflowsResponse).GetWorkflows,
		func(item *signalboxv1.Workflow) (string, string) { return item.GetName(), item.GetTitle() })
}

// CompleteRuns proposes the newest runs' IDs for the first argument.
func (s *Invocation) CompleteRuns(cmd *cobra.Command, args []string,
	_ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	request := &signalboxv1.ListRunsRequest{Project: s.Project(), PageSize: completionLimit}
	return complete(s, cmd, args, s.Runs().ListRuns, request, (*signalboxv1.ListRunsResponse).GetRuns,
		func(item *signalboxv1.Run) (string, string) {
			return item.GetId(), item.GetWorkflow() + " " + item.GetStatus()
		})
}

// CompleteEvents proposes the newest events' IDs for the first argument.
func (s *Invocation) CompleteEvents(cmd *cobra.Command, args []string,
	_ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	request := &signalboxv1.ListEventsRequest{Project: s.Project(), PageSize: completionLimit}
	return complete(s, cmd, args, s.Events().ListEvents, request, (*signalboxv1.ListEventsResponse).GetEvents,
		func(item *signalboxv1.Event) (string, string) {
			return item.GetId(), item.GetType() + " " + item.GetStatus()
		})
}

// CompleteBatches proposes the newest batches' IDs for the first argument.
func (s *Invocation) CompleteBatches(cmd *cobra.Command, args []string,
	_ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	request := &signalboxv1.ListBatchesRequest{Project: s.Project(), PageSize: completionLimit}
	return complete(s, cmd, args, s.Batches().ListBatches, request, (*signalboxv1.ListBatchesResponse).GetBatches,
		func(item *signalboxv1.Batch) (string, string) {
			return item.GetId(), item.GetAction() + " " + item.GetStatus()
		})
}

// CompleteProjectFlag proposes the projects' names for a flag.
func (s *Invocation) CompleteProjectFlag(cmd *cobra.Command, _ []string,
	typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return s.CompleteProjects(cmd, nil, typed)
}

// CompleteProjects proposes the projects' names for the first argument.
func (s *Invocation) CompleteProjects(cmd *cobra.Command, args []string,
	_ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	request := &signalboxv1.ListProjectsRequest{PageSize: completionLimit}
	return complete(s, cmd, args, s.Projects().ListProjects, request, (*signalboxv1.ListProjectsResponse).GetProjects,
		func(item *signalboxv1.Project) (string, string) { return item.GetName(), item.GetDescription() })
}
