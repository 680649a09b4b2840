package handler

import (
	"context"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/durationpb"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/problem"
	"github.com/signalbox-dev/signalbox/internal/rpc/message"
)

// ProblemService is the domain's service of problems. It validates requests and checks roles.
type ProblemService interface {
	List(ctx context.Context, q problem.Query) (problem.List, error)
	Count(ctx context.Context, project string) (problem.Counts, error)
	Get(ctx context.Context, id string) (problem.Problem, error)
	Acknowledge(ctx context.Context, c problem.Change, note string) (problem.Problem, error)
	Snooze(ctx context.Context, c problem.Change, until time.Time, count int64) (problem.Problem, error)
	Update(ctx context.Context, c problem.Change, owner, note *string) (problem.Problem, error)
	Reopen(ctx context.Context, c problem.Change) (problem.Problem, error)
}

// Problems implements signalbox.v1.ProblemService.
type Problems struct {
	service  ProblemService
	projects message.ProjectFinder
}

// ListProblems lists problems.
func (h *Problems) ListProblems(
	ctx context.Context, req *connect.Request[signalboxv1.ListProblemsRequest],
) (*connect.Response[signalboxv1.ListProblemsResponse], error) {
	m := req.Msg
	if err := h.projectExists(ctx, m.GetProject()); err != nil {
		return nil, err
	}
	q := problem.Query{Project: m.GetProject(), Owner: m.GetOwner(), Text: m.GetText()}
	for _, kind := range m.GetKinds() {
		q.Kinds = append(q.Kinds, problem.Kind(kind))
	}
	for _, state := range m.GetStates() {
		q.States = append(q.States, problem.State(state))
	}
	res := &signalboxv1.ListProblemsResponse{}
	found, next, err := listPage(m, pageDefault, pageMost,
		func(after *problem.Cursor, limit int) ([]problem.Problem, error) {
			q.After, q.Limit = after, limit
			list, err := h.service.List(ctx, q)
			res.Errors, res.Time = list.Errors, message.Timestamp(list.At)
			return list.Problems, err
		}, problem.CursorOf)
	res.NextPageToken = next
	for _, p := range found {
		res.Problems = append(res.Problems, problemMessage(p))
	}
	return message.Reply(res, err)
}

// CountProblems counts problems by state.
func (h *Problems) CountProblems(
	ctx context.Context, req *connect.Request[signalboxv1.CountProblemsRequest],
) (*connect.Response[signalboxv1.CountProblemsResponse], error) {
	if err := h.projectExists(ctx, req.Msg.GetProject()); err != nil {
		return nil, err
	}
	c, err := h.service.Count(ctx, req.Msg.GetProject())
	res := &signalboxv1.CountProblemsResponse{States: map[string]int64{}, Errors: c.Errors, Time: message.Timestamp(c.At)}
	for state, n := range c.States {
		res.States[string(state)] = n
	}
	if c.AnyAcknowledged {
		res.MeanTimeToAcknowledge = message.Duration(c.TimeToAcknowledge)
	}
	return message.Reply(res, err)
}

// projectExists returns an error for a named project that does not exist.
func (h *Problems) projectExists(ctx context.Context, name string) error {
	if name == "" {
		return nil
	}
	_, err := h.projects.Get(ctx, name)
	return err
}

// GetProblem returns one problem.
func (h *Problems) GetProblem(
	ctx context.Context, req *connect.Request[signalboxv1.GetProblemRequest],
) (*connect.Response[signalboxv1.GetProblemResponse], error) {
	p, err := h.service.Get(ctx, req.Msg.GetId())
	return message.Reply(&signalboxv1.GetProblemResponse{Problem: problemMessage(p)}, err)
}

// AcknowledgeProblem marks a problem as seen by the caller.
func (h *Problems) AcknowledgeProblem(
	ctx context.Context, req *connect.Request[signalboxv1.AcknowledgeProblemRequest],
) (*connect.Response[signalboxv1.AcknowledgeProblemResponse], error) {
	m := req.Msg
	p, err := h.service.Acknowledge(ctx, problem.Change{ID: m.GetId(), Revision: m.GetRevision()}, m.GetNote())
	return message.Reply(&signalboxv1.AcknowledgeProblemResponse{Problem: problemMessage(p)}, err)
}

// SnoozeProblem takes a problem out of the open ones until a time or a count.
func (h *Problems) SnoozeProblem(
	ctx context.Context, req *connect.Request[signalboxv1.SnoozeProblemRequest],
) (*connect.Response[signalboxv1.SnoozeProblemResponse], error) {
	m := req.Msg
	until, err := message.Time("until", m.GetUntil())
	if err != nil {
		return nil, err
	}
	p, err := h.service.Snooze(ctx, problem.Change{ID: m.GetId(), Revision: m.GetRevision()}, until, m.GetUntilCount())
	return message.Reply(&signalboxv1.SnoozeProblemResponse{Problem: problemMessage(p)}, err)
}

// UpdateProblem sets the owner and the note of a problem.
func (h *Problems) UpdateProblem(
	ctx context.Context, req *connect.Request[signalboxv1.UpdateProblemRequest],
) (*connect.Response[signalboxv1.UpdateProblemResponse], error) {
	m := req.Msg
	p, err := h.service.Update(ctx, problem.Change{ID: m.GetId(), Revision: m.GetRevision()}, m.Owner, m.Note)
	return message.Reply(&signalboxv1.UpdateProblemResponse{Problem: problemMessage(p)}, err)
}

// ReopenProblem ends the acknowledgement or the snooze of a problem.
func (h *Problems) ReopenProblem(
	ctx context.Context, req *connect.Request[signalboxv1.ReopenProblemRequest],
) (*connect.Response[signalboxv1.ReopenProblemResponse], error) {
	p, err := h.service.Reopen(ctx, problem.Change{ID: req.Msg.GetId(), Revision: req.Msg.GetRevision()})
	return message.Reply(&signalboxv1.ReopenProblemResponse{Problem: problemMessage(p)}, err)
}

func problemMessage(p problem.Problem) *signalboxv1.Problem {
	m := &signalboxv1.Problem{
		Id: p.ID, Kind: string(p.Kind), Code: string(p.Code), Project: p.Project, TaskQueue: p.TaskQueue,
		Workflow: p.Workflow,
		Task:     p.Task, Pointer: p.Pointer, Title: p.Title, Detail: p.Detail, Cause: p.Cause, Advice: p.Advice,
		Runbook: p.Runbook, More: p.More,
		FirstTime: message.Timestamp(p.First), LastTime: message.Timestamp(p.Last), Samples: p.Samples,
		State: string(p.State),
		Owner: p.Owner, Note: p.Note, AcknowledgeTime: message.Timestamp(p.AcknowledgedAt), Acknowledger: p.Acknowledger,
		SnoozeUntil: message.Timestamp(p.SnoozeUntil), SnoozeCount: p.SnoozeCount,
		ResolveTime: message.Timestamp(p.ResolvedAt),
		Revision:    p.Revision, FailureGroup: p.FailureGroup, DetectTime: message.Timestamp(p.SeenAt),
	}
	if p.Counted() {
		m.Count = &p.Count
	}
	if p.Kind == problem.Failure {
		m.NotReplayed = &p.NotReplayed
	}
	for _, v := range p.Versions {
		m.Versions = append(m.Versions, &signalboxv1.ProblemVersion{Version: v.Version, Count: v.Count})
	}
	if s := p.Series; s != nil {
		m.Series = &signalboxv1.ProblemSeries{
			StartTime: message.Timestamp(s.Start), Interval: durationpb.New(s.Interval), Counts: s.Counts}
	}
	return m
}
