package app

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dispatch"
	"github.com/signalbox-dev/signalbox/internal/telemetry"
)

func TestConditionsOfDispatchersByProject(t *testing.T) {
	t.Parallel()
	of := func(project, queue string, d dispatch.Dispatcher) dispatch.Dispatcher {
		d.Name = dispatch.Name{Project: project, TaskQueue: queue}
		return d
	}
	open := &dispatch.Execution{}
	older := make([]dispatch.Execution, 2)
	counted := conditions([]dispatch.Dispatcher{
		of("healthy", "q", dispatch.Dispatcher{Status: dispatch.Routing, Execution: open}),
		of("duplicates", "q", dispatch.Dispatcher{Status: dispatch.Parked, Execution: open, Others: older, Stale: 2}),
		of("older", "q", dispatch.Dispatcher{Status: dispatch.Missing, Others: older}),
		of("queues", "a", dispatch.Dispatcher{Status: dispatch.Foreign}),
		of("queues", "b", dispatch.Dispatcher{Status: dispatch.Stale, Execution: open, Stale: 1}),
		of("none", "q", dispatch.Dispatcher{Status: dispatch.Unknown}),
		of("unknown", "a", dispatch.Dispatcher{Status: dispatch.Routing, Execution: open}),
		of("unknown", "b", dispatch.Dispatcher{Status: dispatch.Unknown, Execution: open}),
		of("unread", "q", dispatch.Dispatcher{Status: dispatch.Routing, Errors: []dispatch.PartError{{Part: dispatch.PartLeases, Err: errors.New("away")}}}),
	})
	slices.SortFunc(counted, func(a, b telemetry.Conditions) int { return strings.Compare(a.Project, b.Project) })
	require.Equal(t, []telemetry.Conditions{
		{Project: "duplicates", Stale: 2, Duplicates: 2},
		{Project: "healthy"},
		{Project: "none"},
		{Project: "older", Duplicates: 1},
		{Project: "queues", Stale: 1, Foreign: 1},
	}, counted)
}
