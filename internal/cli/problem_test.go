package cli_test

import (
	"context"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/api/signalbox/v1/signalboxv1connect"
	"github.com/signalbox-dev/signalbox/internal/cli/exit"
)

// problems is the ProblemService with one problem.
type problems struct {
	signalboxv1connect.UnimplementedProblemServiceHandler

	api *api
}

func (p *problems) note(m proto.Message) *signalboxv1.Problem {
	p.api.mu.Lock()
	defer p.api.mu.Unlock()
	p.api.note(proto.Clone(m))
	return &signalboxv1.Problem{
		Id: "failure.shop.00aa11bb22cc33dd", Kind: "failure", Project: "shop", Workflow: "shop/order",
		Versions: []*signalboxv1.ProblemVersion{{Version: "1.4.0", Count: 212}}, Task: "reserve", Title: "no answer",
		State: "open", Count: new(int64(212)), NotReplayed: new(int64(204)), FailureGroup: "00aa11bb22cc33dd",
		Samples: []string{"r2", "r1"}, Revision: 7,
	}
}

func (p *problems) ListProblems(_ context.Context,
	r *connect.Request[signalboxv1.ListProblemsRequest]) (*connect.Response[signalboxv1.ListProblemsResponse], error) {
	return connect.NewResponse(&signalboxv1.ListProblemsResponse{
		Problems: []*signalboxv1.Problem{p.note(r.Msg)}, Errors: []string{"dispatchers are not known"},
	}), nil
}

func (p *problems) CountProblems(_ context.Context,
	r *connect.Request[signalboxv1.CountProblemsRequest]) (*connect.Response[signalboxv1.CountProblemsResponse], error) {
	p.note(r.Msg)
	return connect.NewResponse(
		&signalboxv1.CountProblemsResponse{
			States: map[string]int64{"open": 4}, MeanTimeToAcknowledge: durationpb.New(192 * time.Second)}), nil
}

func (p *problems) GetProblem(_ context.Context,
	r *connect.Request[signalboxv1.GetProblemRequest]) (*connect.Response[signalboxv1.GetProblemResponse], error) {
	return connect.NewResponse(&signalboxv1.GetProblemResponse{Problem: p.note(r.Msg)}), nil
}

func (p *problems) AcknowledgeProblem(_ context.Context,
	r *connect.Request[signalboxv1.AcknowledgeProblemRequest]) (*connect.Response[signalboxv1.AcknowledgeProblemResponse],
	error) {
	return connect.NewResponse(&signalboxv1.AcknowledgeProblemResponse{Problem: p.note(r.Msg)}), nil
}

func (p *problems) SnoozeProblem(_ context.Context,
	r *connect.Request[signalboxv1.SnoozeProblemRequest]) (*connect.Response[signalboxv1.SnoozeProblemResponse], error) {
	return connect.NewResponse(&signalboxv1.SnoozeProblemResponse{Problem: p.note(r.Msg)}), nil
}

func (p *problems) UpdateProblem(_ context.Context,
	r *connect.Request[signalboxv1.UpdateProblemRequest]) (*connect.Response[signalboxv1.UpdateProblemResponse], error) {
	return connect.NewResponse(&signalboxv1.UpdateProblemResponse{Problem: p.note(r.Msg)}), nil
}

func (p *problems) ReopenProblem(_ context.Context,
	r *connect.Request[signalboxv1.ReopenProblemRequest]) (*connect.Response[signalboxv1.ReopenProblemResponse], error) {
	return connect.NewResponse(&signalboxv1.ReopenProblemResponse{Problem: p.note(r.Msg)}), nil
}

func TestProblems(t *testing.T) {
	t.Parallel()
	shell, a := sh(t)
	c := shell.run(t, "problem", "list", "--kind", "failure", "--project", "shop", "--owner", "ada", "--text", "answer")
	require.Zero(t, c.code, c.err.String())
	require.Contains(t, c.err.String(), "partial result: dispatchers are not known")
	require.Regexp(t, `failure.shop.00aa11bb22cc33dd +open +shop +no answer +shop/order reserve +212 +204`, c.out.String())
	listed := last[*signalboxv1.ListProblemsRequest](t, a)
	require.Equal(t, []string{"failure", "open", "acknowledged", "snoozed"},
		append(listed.GetKinds(), listed.GetStates()...))
	require.Equal(t, []string{"shop", "ada", "answer"}, []string{listed.GetProject(), listed.GetOwner(), listed.GetText()})
	shell.run(t, "problem", "list", "--state", "all")
	require.Empty(t, last[*signalboxv1.ListProblemsRequest](t, a).GetStates())
	require.Empty(t, last[*signalboxv1.ListProblemsRequest](t, a).GetProject(), "all projects")
	requireRefusal(t, shell.run(t, "problem", "list", "--kind", "odd"), exit.Usage, "odd")
	requireRefusal(t, shell.run(t, "problem", "list", "--state", "odd"), exit.Usage, "odd")

	c = shell.run(t, "problem", "count")
	require.Regexp(t, `(?s)open +4.*mean time to acknowledge +3m12s`, c.out.String())
	id := "failure.shop.00aa11bb22cc33dd"
	c = shell.run(t, "problem", "show", id)
	require.Regexp(t, `(?s)versions +1.4.0 \(212\).*not replayed +204.*failure group +00aa11bb22cc33dd.*newest runs +r2 r1.*revision +7`, c.out.String())

	c = shell.run(t, "problem", "acknowledge", id, "--note", "known")
	require.Zero(t, c.code, c.err.String())
	acknowledged := last[*signalboxv1.AcknowledgeProblemRequest](t, a)
	require.Equal(t, int64(7), acknowledged.GetRevision(), "the present one")
	require.Equal(t, "known", acknowledged.GetNote())
	shell.run(t, "problem", "reopen", id, "--revision", "3")
	require.Equal(t, int64(3), last[*signalboxv1.ReopenProblemRequest](t, a).GetRevision())
	shell.run(t, "problem", "snooze", id, "--until", "2h")
	require.WithinDuration(t, time.Now().Add(2*time.Hour),
		last[*signalboxv1.SnoozeProblemRequest](t, a).GetUntil().AsTime(), time.Minute)
	shell.run(t, "problem", "snooze", id, "--until-count", "500")
	require.Equal(t, int64(500), last[*signalboxv1.SnoozeProblemRequest](t, a).GetUntilCount())
	shell.run(t, "problem", "update", id, "--owner", "", "--note", "later")
	updated := last[*signalboxv1.UpdateProblemRequest](t, a)
	require.NotNil(t, updated.Owner, "an empty owner is set")
	require.Equal(t, "later", updated.GetNote())
	requireRefusal(t, shell.run(t, "problem", "snooze", id), exit.Usage, "either --until or --until-count")
	requireRefusal(t, shell.run(t, "problem", "snooze", id, "--until", "soon"), exit.Usage, "soon")
	requireRefusal(t, shell.run(t, "problem", "update", id), exit.Usage, "--owner or --note")
}
