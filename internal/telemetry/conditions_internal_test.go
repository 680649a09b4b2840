package telemetry

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dispatch/dispatchtype"
	"github.com/signalbox-dev/signalbox/dispatch/inbox"
)

func TestConditionsOfDispatchersByProject(t *testing.T) {
	t.Parallel()
	of := func(project, queue string, d dispatchtype.Dispatcher) dispatchtype.Dispatcher {
		d.Name = inbox.Name{Project: project, TaskQueue: queue}
		return d
	}
	open := &dispatchtype.Execution{}
	older := make([]dispatchtype.Execution, 2)
	counted, _ := countConditions([]dispatchtype.Dispatcher{
		of("healthy", "q", dispatchtype.Dispatcher{Status: dispatchtype.Routing, Execution: open}),
		of("foreign", "q", dispatchtype.Dispatcher{Status: dispatchtype.Foreign, Unknown: older}),
		of("duplicates", "q", dispatchtype.Dispatcher{Status: dispatchtype.Parked, Execution: open, Others: older, Stale: 2}),
		of("older", "q", dispatchtype.Dispatcher{Status: dispatchtype.Missing, Others: older}),
		of("queues", "a", dispatchtype.Dispatcher{Status: dispatchtype.Foreign}),
		of("queues", "b", dispatchtype.Dispatcher{Status: dispatchtype.Stale, Execution: open, Stale: 1}),
		of("none", "q", dispatchtype.Dispatcher{Status: dispatchtype.Unknown}),
		of("unknown", "a", dispatchtype.Dispatcher{Status: dispatchtype.Routing, Execution: open}),
		of("unknown", "b", dispatchtype.Dispatcher{Status: dispatchtype.Unknown, Execution: open}),
		of("unread", "q", dispatchtype.Dispatcher{
			Status: dispatchtype.Routing,
			Errors: []dispatchtype.PartError{{Part: dispatchtype.PartLeases, Err: errors.New("away")}}}),
	})
	require.Equal(t, map[string]conditions{
		"duplicates": {stale: 2, duplicates: 2},
		"healthy":    {},
		"foreign":    {foreign: 3},
		"none":       {},
		"older":      {duplicates: 1},
		"queues":     {stale: 1, foreign: 1},
	}, counted)
}
