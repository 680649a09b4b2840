package systemcmd

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/cli/invocation"
	"github.com/signalbox-dev/signalbox/internal/cli/output"
	"github.com/signalbox-dev/signalbox/internal/terminal"
)

func queuesCommand(s *invocation.Invocation) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "queues",
		Short: "List the task queues of the projects with their pollers and backlog",
		Long: `List the task queues of the projects as Temporal describes them to the server at --address: for workflow tasks and for
activities the number of pollers, the last poll, and the approximate number of tasks that wait, with the age of the oldest.
A poller counts if it has polled within the last 70 seconds, or is a worker that does not poll because all its slots are in
use; "2, 1 busy" has one of these. A queue that cannot be read is listed with the reason.`,
		Example: `  signalbox system queues`,
		Args:    invocation.Args(0, 0, ""),
		RunE:    func(cmd *cobra.Command, _ []string) error { return listQueues(cmd.Context(), s) },
	}
	s.BindServer(cmd)
	return cmd
}

func listQueues(ctx context.Context, s *invocation.Invocation) error {
	request, now := &signalboxv1.ListQueuesRequest{}, s.Now()
	found, _, err := invocation.Pages(0, func(size int32, token string) ([]*signalboxv1.Queue, string, error) {
		request.PageSize, request.PageToken = size, token
		response, err := invocation.Call(ctx, s, s.System().ListQueues, request, "list the task queues")
		if response.GetTime() != nil {
			now = response.GetTime().AsTime()
		}
		return response.GetQueues(), response.GetNextPageToken(), err
	})
	if err != nil {
		return err
	}
	return invocation.Listing[*signalboxv1.Queue]{
		Thing: "task queue", None: "there is no project",
		Row: func(q *signalboxv1.Queue) output.Row {
			pollers, polled, backlog := line(q.GetWorkflowTasks(), now)
			activityPollers, activityPolled, activityBacklog := line(q.GetActivities(), now)
			return output.Cells(
				"PROJECT", q.GetProject(), "TASK QUEUE", q.GetName(), "POLLERS", pollers, "POLLED", polled, "BACKLOG", backlog,
				"ACTIVITY POLLERS", activityPollers, "ACTIVITY POLLED", activityPolled, "ACTIVITY BACKLOG", activityBacklog,
				"ERROR", terminal.Line(q.GetError()),
			)
		},
	}.Print(s, found, false)
}

// line returns the cells of one kind of task.
func line(l *signalboxv1.QueueLine, now time.Time) (pollers, polled, backlog string) {
	if l == nil {
		return "unknown", "unknown", "unknown"
	}
	backlog = "unknown"
	if l.Backlog != nil {
		backlog = fmt.Sprint(l.GetBacklog())
		if l.GetBacklog() > 0 {
			backlog += ", oldest " + output.Span(l.GetBacklogAge().AsDuration())
		}
	}
	pollers = fmt.Sprint(l.GetPollers())
	if l.GetBusy() > 0 {
		pollers += fmt.Sprintf(", %d busy", l.GetBusy())
	}
	return pollers, cmp.Or(past(l.GetLastPollTime(), now), "none known"), backlog
}
