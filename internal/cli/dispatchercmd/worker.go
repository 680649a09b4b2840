package dispatchercmd

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/cli/invocation"
	"github.com/signalbox-dev/signalbox/internal/cli/output"
	"github.com/signalbox-dev/signalbox/internal/terminal"
)

// NewWorker returns the noun "worker": the worker processes, by their heartbeats and their registrations with
// dispatchers.
func NewWorker(s *invocation.Invocation) *cobra.Command {
	noun := invocation.Noun("worker", "List the worker processes", "")
	noun.AddCommand(workerListCommand(s))
	return noun
}

// workerStates are the states of workers, as the API spells them.
func workerStates() []string {
	return []string{"alive", "late", "dead", "stopped", "silent", "unknown"}
}

type listFlags struct {
	states  []string
	project string
}

func workerListCommand(s *invocation.Invocation) *cobra.Command {
	var flags listFlags
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the workers with their heartbeats and registrations",
		Long: `List the worker processes: their heartbeats, and the dispatchers that they are registered with. A worker is alive, late (it
sent no heartbeat in time, and the dispatchers are about to evict it), dead (none for three times that time), stopped,
or silent (registered with a dispatcher, without a heartbeat). A worker is busy while all its slots for tasks of one of its
task queues are in use: it does not poll that queue until one of them ends.`,
		Example: `  signalbox worker list
  signalbox worker list --project shop --state late,dead`,
		Args: invocation.Args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return workerList(cmd.Context(), s, flags)
		},
	}
	cmd.Flags().StringSliceVar(&flags.states, "state", nil,
		"only these `states`, separated by commas: "+strings.Join(workerStates(), ", "))
	cmd.Flags().StringVar(&flags.project, "project", "", "only workers of this `project`")
	// the flag is there
	_ = cmd.RegisterFlagCompletionFunc("state", cobra.FixedCompletions(workerStates(), cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("project", s.CompleteProjects) // as above
	s.BindServer(cmd)
	return cmd
}

func workerList(ctx context.Context, s *invocation.Invocation, flags listFlags) error {
	wanted, err := invocation.Words("state", flags.states, workerStates())
	if err != nil {
		return err
	}
	var unread []string
	found, _, err := invocation.Pages(0, func(size int32, token string) ([]*signalboxv1.WorkerProcess, string, error) {
		response, err := invocation.Call(ctx, s, s.Workers().ListWorkers, &signalboxv1.ListWorkersRequest{
			PageSize: size, PageToken: token, Project: flags.project, States: wanted,
		}, "list workers")
		unread = response.GetErrors()
		return response.GetWorkers(), response.GetNextPageToken(), err
	})
	if err != nil {
		return err
	}
	for _, line := range unread {
		s.Note("partial result: %s", terminal.Line(line))
	}
	return invocation.Listing[*signalboxv1.WorkerProcess]{
		Thing: "worker",
		Row: func(w *signalboxv1.WorkerProcess) output.Row {
			return output.Cells(
				"SERVER", w.GetServerId(), "STATE", w.GetState(), "BUILD", cmp.Or(w.GetBuild(), unknown),
				"PROJECTS", projects(w), "HEARTBEAT", lastBeat(s, w), "STALE", stale(w), "BUSY", busy(s, w),
				"REGISTERED", registrations(w), "+INTERPRETER", interpreter(w), "+CONTRACT", w.GetContract(),
				"+STARTED", output.Moment(w.GetStartTime()), "+LAST POLL", output.Moment(w.GetLastPollTime()),
			)
		},
	}.Print(s, found, false)
}

// interpreter is the version of a worker's interpreter.
func interpreter(w *signalboxv1.WorkerProcess) string {
	if w.GetInterpreter() == 0 {
		return unknown
	}
	return fmt.Sprint(w.GetInterpreter())
}

// projects that it says it works for.
func projects(w *signalboxv1.WorkerProcess) string {
	switch {
	case w.GetLastBeatTime() == nil: // heartbeats say it
		return unknown
	case len(w.GetProjects()) == 0:
		return "all"
	default:
		return strings.Join(w.GetProjects(), ",")
	}
}

func lastBeat(s *invocation.Invocation, w *signalboxv1.WorkerProcess) string {
	switch {
	case w.GetLastBeatTime() != nil:
	case w.GetState() == "unknown": // the heartbeats cannot be asked for
		return unknown
	default:
		return "none" // it may have had heartbeats that have run out
	}
	return s.Age(w.GetLastBeatTime()) + " ago"
}

// stale is when a worker will be stale without a further heartbeat, or for how long it has been.
func stale(w *signalboxv1.WorkerProcess) string {
	switch left := w.GetStaleIn().AsDuration(); {
	case w.GetStaleIn() == nil:
		return ""
	case left < 0:
		return "for " + output.Span(-left)
	default:
		return "in " + output.Span(left)
	}
}

// busy is for how long the worker has had no free slot for one of its task queues; empty while it has.
func busy(s *invocation.Invocation, w *signalboxv1.WorkerProcess) string {
	if w.GetBusyTime() == nil {
		return ""
	}
	return "for " + s.Age(w.GetBusyTime())
}

// registrations are the projects with whose dispatchers it is registered.
func registrations(w *signalboxv1.WorkerProcess) string {
	names := make([]string, len(w.GetRegistrations()))
	for i, r := range w.GetRegistrations() {
		names[i] = r.GetProject()
	}
	return strings.Join(names, ",")
}
