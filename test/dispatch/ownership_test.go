package dispatch_test

import (
	"fmt"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/internal/sealed"
	"github.com/signalbox-dev/signalbox/internal/store/activity"
	"github.com/signalbox-dev/signalbox/internal/store/events"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/lease"
	"github.com/signalbox-dev/signalbox/lease/redislease"
	"github.com/signalbox-dev/signalbox/test/platform"
)

// ownership is the state by which an owner acts, and which may be outdated.
type ownership struct {
	lease lease.Entry
	owner inbox.Owner
	runID string
}

// redisLeases opens the platform's leases.
func (x *environment) redisLeases(t *testing.T) *redislease.Store {
	t.Helper()
	store, err := redislease.Open(redislease.Options{URL: x.redis.URL(), Prefix: x.key("")})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	return store
}

// currentOwnership returns the owner's state once Redis and Temporal name the same owner: each read may fall between
// two steps of an owner, and Temporal may be too busy to answer.
func (x *environment) currentOwnership(t *testing.T) ownership {
	t.Helper()
	leases := x.redisLeases(t)
	var now ownership
	platform.Eventually(t, soon, func() string {
		entry, err := leases.Get(t.Context(), ownerKey)
		if err != nil {
			return err.Error()
		}
		d, err := x.dispatcher(t)
		if err != nil {
			return err.Error()
		}
		o := d.GetExecution().GetOwner()
		now = ownership{entry, inbox.Owner{Epoch: o.GetEpoch(), Holder: o.GetServerId()}, d.GetExecution().GetRunId()}
		if entry.Holder != o.GetServerId() {
			return fmt.Sprintf("%q holds the lease, and the dispatcher has the owner %q: %v", entry.Holder, o.GetServerId(),
				d.GetErrors())
		}
		return ""
	})
	return now
}

// requireStaleOwnerRefused acts as a former owner at Redis, Postgres and Temporal, and requires that every request is
// refused.
func (x *environment) requireStaleOwnerRefused(t *testing.T, p ownership) {
	t.Helper()
	ctx, leases := t.Context(), x.redisLeases(t)
	before := x.currentOwnership(t)
	_, err := leases.Renew(ctx, ownerKey, p.lease.Token, nil, lease.Lifetime{TTL: time.Minute, Retention: time.Hour})
	require.ErrorIs(t, err, lease.ErrLost, "its renewal")
	require.ErrorIs(t, leases.Resign(ctx, ownerKey, p.lease.Token), lease.ErrLost, "its resignation")
	require.ErrorIs(t, leases.Delete(ctx, ownerKey, p.lease.Token, p.lease.Revision), lease.ErrChanged, "its deletion")

	db, err := sqldb.Open(ctx, sqldb.Options{Driver: sqldb.Postgres, DSN: x.options.Store.DSN, MaxConns: 1})
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	kept := events.New(db, activity.New(db, time.Minute).Record)
	_, err = kept.Due(ctx, platform.DefaultProject, p.owner, 10, time.Minute)
	require.ErrorIs(t, err, inbox.ErrFenced, "its claim")
	require.ErrorIs(t, kept.RecordOutcomes(ctx, platform.DefaultProject, p.owner,
		make([]sealed.Sealed[inbox.DeliveryOutcome], 1)), inbox.ErrFenced, "its settlement")
	_, err = kept.Park(ctx, platform.DefaultProject, p.owner)
	require.ErrorIs(t, err, inbox.ErrFenced, "its mark")

	handle, err := x.client.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
		WorkflowID: dispatcherID, UpdateName: "adopt", WaitForStage: client.WorkflowUpdateStageCompleted,
		Args: []any{map[string]any{"serverId": p.owner.Holder, "epoch": p.owner.Epoch}},
	})
	if err == nil {
		err = handle.Get(ctx, nil)
	}
	var refusal *temporal.ApplicationError
	require.ErrorAs(t, err, &refusal, "its adoption")
	require.Equal(t, "fenced", refusal.Type())
	if p.runID != before.runID { // its successor has adopted it if Redis was slow to answer, too
		var gone *serviceerror.NotFound
		require.ErrorAs(t, x.client.TerminateWorkflow(ctx, dispatcherID, p.runID, "I own it"), &gone,
			"its termination, which names the run that it knew")
	}

	after := x.currentOwnership(t)
	require.Equal(t, []any{before.lease.Token, before.owner, before.runID},
		[]any{after.lease.Token, after.owner, after.runID})
}

// waitForExpiry waits until a worker is stale: its heartbeat and the delay after it have expired.
func (x *environment) waitForExpiry(t *testing.T, w *worker) {
	t.Helper()
	platform.Eventually(t, soon, func() string {
		res, err := x.Workers.ListWorkers(t.Context(), connect.NewRequest(&signalboxv1.ListWorkersRequest{}))
		if err != nil || len(res.Msg.GetErrors()) > 0 {
			return fmt.Sprint(err, res)
		}
		for _, p := range res.Msg.GetWorkers() {
			if p.GetServerId() == w.id && (p.GetState() == "alive" || p.GetStaleIn().AsDuration() > 0) {
				return fmt.Sprintf("%s is %s, and stale in %s", w.id, p.GetState(), p.GetStaleIn().AsDuration())
			}
		}
		return ""
	})
}
