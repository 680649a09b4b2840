package storetest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/maintenance"
)

func testMaintenance(t *testing.T, open Opener) {
	s, other, ctx := open(t), open(t), t.Context()
	state, err := s.Maintenance(ctx)
	require.NoError(t, err)
	require.Equal(t, maintenance.State{}, state)

	on := maintenance.State{On: true, Reason: "upgrade", Actor: "ada", Since: at(1)}
	e := entry(audit.SystemMaintenanceOn, "", "")
	change := func(to maintenance.State, e *audit.Entry, want maintenance.State) {
		t.Helper()
		require.NoError(t, s.ChangeMaintenance(ctx, func(now maintenance.State) (maintenance.State, *audit.Entry) {
			require.Equal(t, want, now)
			return to, e
		}))
	}
	change(on, &e, maintenance.State{})
	state, err = other.Maintenance(ctx)
	require.NoError(t, err)
	require.Equal(t, on, state, "other processes see it")
	change(maintenance.State{}, nil, on)
	change(maintenance.State{Actor: "bob", Since: at(2)}, &e, on)
	state, err = s.Maintenance(ctx)
	require.NoError(t, err)
	require.Equal(t, maintenance.State{Actor: "bob", Since: at(2)}, state)
	entries, err := s.ListAudit(ctx, audit.Filter{Action: audit.SystemMaintenanceOn, Limit: 10})
	require.NoError(t, err)
	require.Len(t, entries, 2, "a call that changes nothing is not audited")
}
