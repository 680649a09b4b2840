package cli

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/cli/exit"
	"github.com/signalbox-dev/signalbox/internal/cli/invocation"
	"github.com/signalbox-dev/signalbox/internal/cli/output"
)

func projectCommand(s *invocation.Invocation) *cobra.Command {
	noun := invocation.Noun("project", "Create, list and configure projects, the tenancy boundary",
		"Each project has its own definitions, runs, task queue and settings.")
	noun.AddCommand(projectListCommand(s), projectCreateCommand(s), projectShowCommand(s), projectSetCommand(s),
		projectAnnotationsCommand(s))
	return noun
}

func projectListCommand(s *invocation.Invocation) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List projects by name",
		Example: `  signalbox project list`,
		Args:    invocation.Args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return listProjects(cmd.Context(), s)
		},
	}
	s.BindServer(cmd)
	return cmd
}

func listProjects(ctx context.Context, s *invocation.Invocation) error {
	projects, _, err := invocation.Pages(0, func(size int32, token string) ([]*signalboxv1.Project, string, error) {
		request := &signalboxv1.ListProjectsRequest{PageSize: size, PageToken: token}
		response, err := invocation.Call(ctx, s, s.Projects().ListProjects, request, "list projects")
		return response.GetProjects(), response.GetNextPageToken(), err
	})
	if err != nil {
		return err
	}
	return invocation.Listing[*signalboxv1.Project]{
		Thing: "project", None: "no projects in which you have a role",
		Row: func(project *signalboxv1.Project) output.Row {
			return output.Cells(
				"PROJECT", project.GetName(), "DESCRIPTION", project.GetDescription(),
				"+TASK QUEUE", project.GetTaskQueue(), "ROLES", strings.Join(project.GetRoles(), ", "),
				"CREATED", output.Moment(project.GetCreateTime()), "PARKED", output.Moment(project.GetParkTime()),
			)
		},
	}.Print(s, projects, false)
}

func projectCreateCommand(s *invocation.Invocation) *cobra.Command {
	var description string
	cmd := &cobra.Command{
		Use:     "create NAME",
		Short:   "Create a project; workers serve it within seconds",
		Example: `  signalbox project create billing --description "invoices and payments"`,
		Args:    invocation.Args(1, 1, "NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			request := &signalboxv1.CreateProjectRequest{Name: args[0], Description: description}
			response, err := invocation.Call(cmd.Context(), s, s.Projects().CreateProject, request, "create project %q", args[0])
			if err != nil {
				return err
			}
			return printProject(s, response.GetProject())
		},
	}
	cmd.Flags().StringVar(&description, "description", "", "description of the project")
	s.BindServer(cmd)
	return cmd
}

func projectShowCommand(s *invocation.Invocation) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "show NAME",
		Short:   "Show one project",
		Example: `  signalbox project show shop`,
		Args:    invocation.Args(1, 1, "NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			request := &signalboxv1.GetProjectRequest{Name: args[0]}
			response, err := invocation.Call(cmd.Context(), s, s.Projects().GetProject, request, "show project %q", args[0])
			if err != nil {
				return err
			}
			return printProject(s, response.GetProject())
		},
	}
	s.BindServer(cmd)
	return cmd
}

// serverLimit removes a project's own limit of steps, as 0 does.
const serverLimit = "none"

// noRunners permits a project no programs.
const noRunners = "none"

// anyImage does not restrict the images of a project.
const anyImage = "any"

type projectSetFlags struct {
	description, maxSteps, maxGeneration string
	runners, images, programLimits       []string
	endPoison                            bool
}

func projectSetCommand(s *invocation.Invocation) *cobra.Command {
	var flags projectSetFlags
	cmd := &cobra.Command{
		Use:   "set NAME",
		Short: "Change the description and settings of a project",
		Long: `Change the description and settings of a project. A flag that is absent keeps the value. Processes apply a changed setting within
seconds; limits of steps and of generations apply to runs that start afterwards.`,
		Example: `  signalbox project set shop --max-steps 50000
  signalbox project set shop --max-steps none
  signalbox project set shop --max-generation 100
  signalbox project set shop --end-poison
  signalbox project set shop --end-poison=false
  signalbox project set shop --runners script,shell
  signalbox project set shop --runners none
  signalbox project set shop --runners container --images 'alpine:*,registry.example.com/**'
  signalbox project set shop --program-limits memory=64MiB,processors=0.5,time=1m,network=guarded`,
		Args: invocation.Args(1, 1, "NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return setProject(cmd, s, args[0], flags)
		},
	}
	cmd.Flags().StringVar(&flags.description, "description", "", "description of the project")
	cmd.Flags().StringVar(&flags.maxSteps, "max-steps", "",
		`maximum number of `+"`steps`"+` of one run; "none": only the limit of the servers`)
	cmd.Flags().StringVar(&flags.maxGeneration, "max-generation", "",
		`maximum number of `+"`starts`"+` between a run and one by a person or by the clock; "none": the limit of the servers`)
	cmd.Flags().BoolVar(&flags.endPoison, "end-poison", false, "terminate runs with the verdict POISON")
	cmd.Flags().StringSliceVar(&flags.runners, "runners", nil,
		"`kinds`"+` of programs that its workflows may run: script, shell, container; "none": no programs`)
	cmd.Flags().StringSliceVar(&flags.images, "images", nil,
		"`patterns`"+` of the images that its containers may use, beside those of each runner; "any": no further restriction`)
	cmd.Flags().StringSliceVar(&flags.programLimits, "program-limits", nil,
		"`limits`"+` of each program, all of them: memory, processes, processors, disk, output, time, network; those of the runner `+
			`hold, too; "none": only those`)
	s.BindServer(cmd)
	return cmd
}

func setProject(cmd *cobra.Command, s *invocation.Invocation, name string, flags projectSetFlags) error {
	request := &signalboxv1.UpdateProjectRequest{Name: name}
	changed := false
	if cmd.Flags().Changed("description") {
		request.Description, changed = &flags.description, true
	}
	if cmd.Flags().Changed("max-steps") {
		steps, err := parseLimit("--max-steps", flags.maxSteps)
		if err != nil {
			return err
		}
		request.MaxSteps, changed = &steps, true
	}
	if cmd.Flags().Changed("max-generation") {
		starts, err := parseLimit("--max-generation", flags.maxGeneration)
		if err != nil {
			return err
		}
		request.MaxGeneration, changed = &starts, true
	}
	if cmd.Flags().Changed("end-poison") {
		request.EndPoison, changed = &flags.endPoison, true
	}
	if cmd.Flags().Changed("runners") {
		request.Runners, changed = &signalboxv1.RunnerKinds{Kinds: flags.runners}, true
		if slices.Equal(flags.runners, []string{noRunners}) {
			request.Runners.Kinds = nil
		}
	}
	if cmd.Flags().Changed("images") {
		request.Images, changed = &signalboxv1.ImagePatterns{Patterns: flags.images}, true
		if slices.Equal(flags.images, []string{anyImage}) {
			request.Images.Patterns = nil
		}
	}
	if cmd.Flags().Changed("program-limits") {
		var err error
		if request.ProgramLimits, err = parseProgramLimits(flags.programLimits); err != nil {
			return err
		}
		changed = true
	}
	if !changed {
		return exit.Usagef("nothing to set: give --description, --max-steps, --max-generation, --end-poison, --runners, " +
			"--images or --program-limits")
	}
	response, err := invocation.Call(cmd.Context(), s, s.Projects().UpdateProject, request, "set project %q", name)
	if err != nil {
		return err
	}
	return printProject(s, response.GetProject())
}

// parseLimit reads the value of a flag: a number from 0 on, or none.
func parseLimit(flag, text string) (int64, error) {
	if text == serverLimit {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0, exit.Usagef("%s %q: use a number from 0 on, or %q", flag, text, serverLimit)
	}
	return n, nil
}

func limitText(limit int64) string {
	if limit == 0 {
		return "the limit of the servers"
	}
	return strconv.FormatInt(limit, 10)
}

// imagePatterns returns the patterns of the images of a project, as a text.
func imagePatterns(patterns []string) string {
	if len(patterns) == 0 {
		return anyImage + " that the runner permits"
	}
	return strings.Join(patterns, ", ")
}

// runnerKinds returns the kinds of programs that a project permits, as a text.
func runnerKinds(kinds []string) string {
	if len(kinds) == 0 {
		return noRunners
	}
	return strings.Join(kinds, ", ")
}

func printProject(s *invocation.Invocation, project *signalboxv1.Project) error {
	return s.Card(project, []output.Field{
		{Name: "project", Value: project.GetName()},
		{Name: "description", Value: project.GetDescription()},
		{Name: "task queue", Value: project.GetTaskQueue()},
		{Name: "created", Value: output.Moment(project.GetCreateTime())},
		{Name: "parked", Value: output.Moment(project.GetParkTime())},
		{Name: "max steps", Value: limitText(project.GetSettings().GetMaxSteps())},
		{Name: "max generation", Value: limitText(project.GetSettings().GetMaxGeneration())},
		{Name: "end poison", Value: strconv.FormatBool(project.GetSettings().GetEndPoison())},
		{Name: "runners", Value: runnerKinds(project.GetSettings().GetRunners())},
		{Name: "images", Value: imagePatterns(project.GetSettings().GetImages())},
		{Name: "program limits", Value: programLimits(project.GetSettings().GetProgramLimits())},
	})
}
