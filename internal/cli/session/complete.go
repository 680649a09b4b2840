package session

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
func (s *Session) complete(cmd *cobra.Command, args []string, ask func(ctx context.Context) ([]cobra.Completion, error)) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 || s.Check() != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
	defer cancel()
	found, err := ask(ctx)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return found, cobra.ShellCompDirectiveNoFileComp
}

// CompleteWorkflows proposes workflow names for the first argument.
func (s *Session) CompleteWorkflows(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return s.complete(cmd, args, func(ctx context.Context) (names []cobra.Completion, err error) {
		response, err := s.Workflows().ListWorkflows(ctx, connect.NewRequest(&signalboxv1.ListWorkflowsRequest{
			Project: s.Project(), PageSize: completionLimit, Text: typed,
		}))
		if err != nil {
			return nil, err
		}
		for _, workflow := range response.Msg.GetWorkflows() {
			names = append(names, cobra.CompletionWithDesc(workflow.GetName(), workflow.GetTitle()))
		}
		return names, nil
	})
}

// CompleteRuns proposes the newest runs' IDs for the first argument.
func (s *Session) CompleteRuns(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return s.complete(cmd, args, func(ctx context.Context) (ids []cobra.Completion, err error) {
		response, err := s.Runs().ListRuns(ctx, connect.NewRequest(&signalboxv1.ListRunsRequest{Project: s.Project(), PageSize: completionLimit}))
		if err != nil {
			return nil, err
		}
		for _, run := range response.Msg.GetRuns() {
			ids = append(ids, cobra.CompletionWithDesc(run.GetId(), run.GetWorkflow()+" "+run.GetStatus()))
		}
		return ids, nil
	})
}

// CompleteEvents proposes the newest events' IDs for the first argument.
func (s *Session) CompleteEvents(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return s.complete(cmd, args, func(ctx context.Context) (ids []cobra.Completion, err error) {
		response, err := s.Events().ListEvents(ctx, connect.NewRequest(&signalboxv1.ListEventsRequest{Project: s.Project(), PageSize: completionLimit}))
		if err != nil {
			return nil, err
		}
		for _, event := range response.Msg.GetEvents() {
			ids = append(ids, cobra.CompletionWithDesc(event.GetId(), event.GetType()+" "+event.GetStatus()))
		}
		return ids, nil
	})
}

// CompleteBatches proposes the newest batches' IDs for the first argument.
func (s *Session) CompleteBatches(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return s.complete(cmd, args, func(ctx context.Context) (ids []cobra.Completion, err error) {
		response, err := s.Batches().ListBatches(ctx, connect.NewRequest(&signalboxv1.ListBatchesRequest{Project: s.Project(), PageSize: completionLimit}))
		if err != nil {
			return nil, err
		}
		for _, batch := range response.Msg.GetBatches() {
			ids = append(ids, cobra.CompletionWithDesc(batch.GetId(), batch.GetAction()+" "+batch.GetStatus()))
		}
		return ids, nil
	})
}

// CompleteProjects proposes the projects' names for the first argument.
func (s *Session) CompleteProjects(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return s.complete(cmd, args, func(ctx context.Context) (names []cobra.Completion, err error) {
		response, err := s.Projects().ListProjects(ctx, connect.NewRequest(&signalboxv1.ListProjectsRequest{PageSize: completionLimit}))
		if err != nil {
			return nil, err
		}
		for _, project := range response.Msg.GetProjects() {
			names = append(names, cobra.CompletionWithDesc(project.GetName(), project.GetDescription()))
		}
		return names, nil
	})
}
