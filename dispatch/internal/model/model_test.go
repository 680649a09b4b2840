package model_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dispatch/internal/model"
)

// Without a defect, every invariant holds in every state, and a routing dispatcher can be reached from each without
// another fault.
func TestInvariantsHold(t *testing.T) {
	t.Parallel()
	r := model.Explore(model.Defects{})
	require.Empty(t, r.Violated, r.String())
	t.Logf("%d states, %d steps", r.States, r.Steps)
	require.Greater(t, r.States, 100_000, "a model that explores little proves little")
}

// Each planted defect is detected as the violation of its invariant.
func TestDefectsAreDetected(t *testing.T) {
	t.Parallel()
	for name, planted := range map[string]struct {
		defects  model.Defects
		violated string
	}{
		"terminate without a run ID": {
			model.Defects{TerminateByID: true}, "a healthy dispatcher is terminated whose owner holds the lease"},
		"delete without compare": {
			model.Defects{DeleteWithoutCompare: true}, "a late request changes the successor's lease"},
		"resign without a token": {
			model.Defects{ResignWithoutToken: true}, "a late request changes the successor's lease"},
		"renew without a token": {
			model.Defects{RenewWithoutToken: true}, "a late request changes the successor's lease"},
		"claim without the fence": {
			model.Defects{ClaimWithoutFence: true}, "a delivery is claimed by a superseded owner"},
		"epochs from the store of leases": {model.Defects{EpochFromLeases: true}, "an epoch does not grow"},
		"adopt without comparing epochs": {
			model.Defects{AdoptWithoutEpoch: true, AdoptInterrupted: true}, "an epoch does not grow"},
		"adopt what another may terminate": {
			model.Defects{AdoptInterrupted: true}, "a healthy dispatcher is terminated whose owner holds the lease"},
		"adopt after a process without an epoch": {
			model.Defects{ExcuseUnclaimed: true}, "a healthy dispatcher is terminated whose owner holds the lease"},
		"start in place of what is open": {
			model.Defects{StartReplaces: true}, "a healthy dispatcher is terminated whose owner holds the lease"},
		"IDs with the server's name": {model.Defects{IDsWithServer: true}, "two dispatchers are open"},
		"act without a renewal": {
			model.Defects{ActUnrenewed: true}, "a healthy dispatcher is terminated whose owner holds the lease"},
		"terminate under an epoch in flight": {
			model.Defects{DecideOnOldEpoch: true}, "a healthy dispatcher is terminated whose owner holds the lease"},
		"an owner that ignores a later epoch": {
			model.Defects{IgnoreLaterEpoch: true, Unsupervised: true}, "no routing dispatcher is reachable"},
		"a supervisor that does not acquire the lease": {
			model.Defects{Unguarded: true}, "a healthy dispatcher is terminated whose owner holds the lease"},
		"a supervisor that ignores the lease": {
			model.Defects{LeaseIgnored: true}, "a healthy dispatcher is terminated whose owner holds the lease"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := model.Explore(planted.defects)
			t.Logf("after %d states: %s", r.States, r)
			require.Equal(t, planted.violated, r.Violated)
			require.NotEmpty(t, r.Trace)
		})
	}
}
