package load

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/test/platform"
)

// Evidence is the input of Judge. Only the loads may have started runs, beside those of the other workflows.
type Evidence struct {
	Loads    []*Load
	Others   []string // workflows whose runs are not judged
	Server   *platform.Server
	Temporal client.Client
	Limit    time.Duration // until every run has ended
	Status   string        // the one that every run ends with; empty: completed
}

// findings holds the requests, the rows and the executions at one moment.
type findings struct {
	requests   map[string]Request                         // by request ID
	rows       map[string]*signalboxv1.Run                // by request ID
	executions map[string][]enums.WorkflowExecutionStatus // by workflow ID
}

// Judge waits until every run has ended and then checks: each accepted request has its row and exactly one execution in
// Temporal, both with the expected status; a refused one has neither; a lost one has both or neither; there are no
// others.
func Judge(t platform.T, e Evidence) {
	t.Helper()
	if e.Status == "" {
		e.Status = "completed"
	}
	platform.Eventually(t, e.Limit, func() string {
		v, err := e.collect(t)
		if err != nil {
			return err.Error()
		}
		if wrong := slices.Concat(v.fatal(), v.open(e.Status)); len(wrong) > 0 {
			return FirstOf(wrong)
		}
		return ""
	})
}

// FirstOf joins the first findings, and says how many there are.
func FirstOf(wrong []string) string {
	const most = 8
	if len(wrong) > most {
		return strings.Join(wrong[:most], "\n") + fmt.Sprintf("\n… %d in all", len(wrong))
	}
	return strings.Join(wrong, "\n")
}

func (e Evidence) collect(t platform.T) (*findings, error) {
	v := &findings{requests: map[string]Request{}, rows: map[string]*signalboxv1.Run{}}
	workflows := map[string]bool{}
	for _, l := range e.Loads {
		workflows[l.workflow] = true
		for _, r := range l.Requests() {
			v.requests[r.ID] = r
		}
	}
	for workflow := range workflows {
		for _, row := range e.Server.AllRuns(t, workflow, 500) {
			if other, ok := v.rows[row.GetRequestId()]; ok {
				return nil, fmt.Errorf("request %s has two rows: %s and %s", row.GetRequestId(), other.GetId(), row.GetId())
			}
			v.rows[row.GetRequestId()] = row
		}
	}
	var err error
	v.executions, err = Executions(t.Context(), e.Temporal)
	for _, workflow := range e.Others {
		for _, row := range e.Server.AllRuns(t, workflow, 500) {
			delete(v.executions, row.GetId())
		}
	}
	return v, err
}

// Executions lists all executions of Temporal but the platform's own, with the status of each. An execution that was
// continued as new and its successor count as one.
func Executions(ctx context.Context, c client.Client) (map[string][]enums.WorkflowExecutionStatus, error) {
	all := map[string][]enums.WorkflowExecutionStatus{}
	var token []byte
	for {
		page, err := c.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
			Query: "WorkflowType = 'signalbox.run'", PageSize: 1000, NextPageToken: token,
		})
		if err != nil {
			return nil, err
		}
		for _, x := range page.GetExecutions() {
			if x.GetStatus() == enums.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW {
				continue
			}
			id := x.GetExecution().GetWorkflowId()
			all[id] = append(all[id], x.GetStatus())
		}
		if token = page.GetNextPageToken(); len(token) == 0 {
			return all, nil
		}
	}
}

// fatal lists findings that time does not resolve, or must not take long to resolve.
func (v *findings) fatal() []string {
	var wrong []string
	runs := map[string]bool{}
	for id, row := range v.rows {
		runs[row.GetId()] = true
		r, known := v.requests[id]
		switch {
		case !known:
			wrong = append(wrong, fmt.Sprintf("row %s of request %q, which was never sent", row.GetId(), id))
		case r.Outcome == Refused:
			wrong = append(wrong, fmt.Sprintf("request %s was refused (%v) and has the row %s, %s", id, r.Err, row.GetId(),
				row.GetStatus()))
		case r.Outcome == Accepted && r.Run != row.GetId():
			wrong = append(wrong, fmt.Sprintf("request %s was answered with run %s and has the row %s", id, r.Run, row.GetId()))
		}
	}
	for id, r := range v.requests {
		if r.Outcome == Accepted && v.rows[id] == nil {
			wrong = append(wrong, fmt.Sprintf("run %s of request %s was accepted and has no row", r.Run, id))
		}
	}
	for id, statuses := range v.executions {
		if len(statuses) > 1 {
			wrong = append(wrong, fmt.Sprintf("run %s has %d executions: %v", id, len(statuses), statuses))
		}
		if !runs[id] {
			wrong = append(wrong, fmt.Sprintf("execution %s has no row", id))
		}
	}
	slices.Sort(wrong)
	return wrong
}

// open lists the rows that do not have the expected status yet, or differ from Temporal.
func (v *findings) open(status string) []string {
	var wrong []string
	for id, row := range v.rows {
		statuses := v.executions[row.GetId()]
		if row.GetStatus() != status || len(statuses) != 1 || platformStatus(statuses[0]) != status {
			wrong = append(wrong, fmt.Sprintf("run %s of request %s (%s) is %s %s, in Temporal %v", row.GetId(), id,
				v.requests[id].Outcome, row.GetStatus(), row.GetQueuedReason(), statuses))
		}
	}
	slices.Sort(wrong)
	return wrong
}

// platformStatus maps Temporal's status to the platform's.
func platformStatus(s enums.WorkflowExecutionStatus) string {
	switch s {
	case enums.WORKFLOW_EXECUTION_STATUS_COMPLETED:
		return "completed"
	case enums.WORKFLOW_EXECUTION_STATUS_FAILED:
		return "failed"
	case enums.WORKFLOW_EXECUTION_STATUS_CANCELED:
		return "canceled"
	case enums.WORKFLOW_EXECUTION_STATUS_TERMINATED:
		return "terminated"
	case enums.WORKFLOW_EXECUTION_STATUS_TIMED_OUT:
		return "timed_out"
	}
	return "running"
}
