package system_test

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/project"
	"github.com/signalbox-dev/signalbox/internal/run/diagnose"
	"github.com/signalbox-dev/signalbox/internal/system"
)

func permitting(name string) project.Project {
	return project.Project{Name: name, Settings: project.Settings{Runners: []string{"script"}}}
}

func TestStatusHasTheRunnersOfProjectsThatPermitPrograms(t *testing.T) {
	t.Parallel()
	service, s := newService()
	s.permitting = []project.Project{permitting("toys"), permitting("unread"), permitting("zoo")}
	s.runners = func(name string) (diagnose.ProgramQueue, error) {
		q := diagnose.ProgramQueue{Name: "runner-" + name}
		switch name {
		case "toys":
			q.Pollers = []diagnose.Poller{
				{Identity: "gone", LastAccess: noon.Add(-diagnose.PollCycle)}, {Identity: "b", LastAccess: noon,
					Isolations: map[string]string{"shell": "none"}},
				{Identity: "a", LastAccess: noon}}
		case "unread":
			return q, apperror.New(apperror.Unavailable, apperror.EngineUnavailable, "temporal is away")
		}
		return q, nil
	}
	status := service.Status(t.Context())
	require.Equal(t, []system.RunnerQueue{
		{Project: "toys", Name: "runner-toys", Kinds: []string{"script"}, Runners: []system.Runner{
			{ServerID: "a", PolledAt: noon, Polls: true}, {ServerID: "b", PolledAt: noon, Polls: true,
				Isolations: map[string]string{"shell": "none"}},
			{ServerID: "gone", PolledAt: noon.Add(-diagnose.PollCycle)},
		}},
		{Project: "unread", Name: "runner-unread", Kinds: []string{"script"}, Error: "temporal is away"},
		{Project: "zoo", Name: "runner-zoo", Kinds: []string{"script"}},
	}, status.Runners)
	require.False(t, status.MoreRunners)
	require.Empty(t, status.RunnersError)

	s.listError = apperror.New(apperror.Unavailable, apperror.StoreUnavailable, "the database is away")
	status = service.Status(t.Context())
	require.Empty(t, status.Runners)
	require.Equal(t, "the database is away", status.RunnersError)
}

func TestStatusBoundsTheRunners(t *testing.T) {
	t.Parallel()
	service, s := newService()
	var asked atomic.Int64
	s.runners = func(string) (diagnose.ProgramQueue, error) {
		asked.Add(1)
		return diagnose.ProgramQueue{}, nil
	}
	for n := range 101 {
		s.permitting = append(s.permitting, permitting(fmt.Sprintf("p%03d", n)))
	}
	status := service.Status(t.Context())
	require.Len(t, status.Runners, 100)
	require.True(t, status.MoreRunners)
	require.EqualValues(t, 100, asked.Load())
}
