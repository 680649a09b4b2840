package cli

import (
	"context"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/cli/output"
	"github.com/signalbox-dev/signalbox/internal/cli/session"
)

func projectCommand(s *session.Session) *cobra.Command {
	noun := session.Noun("project", "Create and list projects, the boundary of tenancy",
		"Each project has its own definitions, runs and task queue.")
	noun.AddCommand(projectListCommand(s), projectCreateCommand(s), projectShowCommand(s))
	return noun
}

func projectListCommand(s *session.Session) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List projects by name",
		Args:  session.Args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return listProjects(cmd.Context(), s)
		},
	}
	s.BindServer(cmd)
	return cmd
}

func listProjects(ctx context.Context, s *session.Session) error {
	projects, _, err := session.Pages(0, func(size int32, token string) ([]*signalboxv1.Project, string, error) {
		ctx, cancel := s.Deadline(ctx)
		defer cancel()
		response, err := s.Projects().ListProjects(ctx, connect.NewRequest(&signalboxv1.ListProjectsRequest{PageSize: size, PageToken: token}))
		if err != nil {
			return nil, "", s.Failed(err, "list projects")
		}
		return response.Msg.GetProjects(), response.Msg.GetNextPageToken(), nil
	})
	if err != nil {
		return err
	}
	if s.Format().Structured() {
		return output.List(s.Out, s.Format(), projects)
	}
	rows := make([][]string, len(projects))
	for i, project := range projects {
		rows[i] = []string{project.GetName(), project.GetDescription(), project.GetTaskQueue(), output.Moment(project.GetCreateTime())}
	}
	return output.Rows(s.Out, s.Format(), s.Style(), output.Columns("PROJECT", "DESCRIPTION", "+TASK QUEUE", "CREATED"), rows)
}

func projectCreateCommand(s *session.Session) *cobra.Command {
	var description string
	cmd := &cobra.Command{
		Use:   "create NAME",
		Short: "Create a project; workers serve it within seconds",
		Args:  session.Args(1, 1, "NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, cancel := s.Deadline(cmd.Context())
			defer cancel()
			response, err := s.Projects().CreateProject(ctx, connect.NewRequest(&signalboxv1.CreateProjectRequest{
				Name: args[0], Description: description,
			}))
			if err != nil {
				return s.Failed(err, "create project %q", args[0])
			}
			return printProject(s, response.Msg.GetProject())
		},
	}
	cmd.Flags().StringVar(&description, "description", "", "what it is for")
	s.BindServer(cmd)
	return cmd
}

func projectShowCommand(s *session.Session) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show NAME",
		Short: "Show one project",
		Args:  session.Args(1, 1, "NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, cancel := s.Deadline(cmd.Context())
			defer cancel()
			response, err := s.Projects().GetProject(ctx, connect.NewRequest(&signalboxv1.GetProjectRequest{Name: args[0]}))
			if err != nil {
				return s.Failed(err, "show project %q", args[0])
			}
			return printProject(s, response.Msg.GetProject())
		},
	}
	s.BindServer(cmd)
	return cmd
}

func printProject(s *session.Session, project *signalboxv1.Project) error {
	if s.Format().Structured() {
		return output.Message(s.Out, s.Format(), project)
	}
	return output.Card(s.Out, s.Style(), []output.Field{
		{Name: "project", Value: project.GetName()},
		{Name: "description", Value: project.GetDescription()},
		{Name: "task queue", Value: project.GetTaskQueue()},
		{Name: "created", Value: output.Moment(project.GetCreateTime())},
	})
}
