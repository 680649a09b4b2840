package maintenance_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/maintenance"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rows is a store in memory.
type rows struct {
	mu      sync.Mutex
	state   maintenance.State
	away    error
	entries []string
}

func (r *rows) Maintenance(context.Context) (maintenance.State, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.state, r.away
}

func (r *rows) ChangeMaintenance(_ context.Context,
	change func(maintenance.State) (maintenance.State, *audit.Entry)) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	to, entry := change(r.state)
	if r.away == nil && entry != nil {
		r.state = to
		r.entries = append(r.entries, entry.Actor.Name+" "+entry.Action+" "+entry.Reason)
	}
	return r.away
}

func TestModeRefusesWhileOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &rows{}
		m, other := maintenance.New(r, time.Now), maintenance.New(r, time.Now)
		require.NoError(t, other.Start(t.Context()))
		ctx := auth.WithActor(t.Context(), auth.Actor{Kind: auth.KindToken, Name: "ada"})
		require.NoError(t, m.Check(ctx))
		state, err := m.Set(ctx, true, " upgrade ")
		require.NoError(t, err)
		require.Equal(t, maintenance.State{On: true, Reason: "upgrade", Actor: "ada", Since: state.Since}, state)
		refusal := m.Check(ctx)
		require.True(t, apperror.Is(refusal, apperror.Maintenance))
		require.ErrorContains(t, refusal, "upgrade")
		f, _ := apperror.From(refusal)
		require.Positive(t, f.RetryAfter)

		<-time.After(2 * time.Second)
		require.True(t, apperror.Is(other.Check(ctx), apperror.Maintenance), "another process follows")
		r.mu.Lock()
		r.away = errors.New("no database")
		r.mu.Unlock()
		<-time.After(2 * time.Second)
		require.True(t, apperror.Is(other.Check(ctx), apperror.Maintenance), "the last state holds")
		r.mu.Lock()
		r.away = nil
		r.mu.Unlock()

		_, err = m.Set(ctx, true, "upgrade")
		require.NoError(t, err)
		again, err := m.Set(ctx, true, "upgrade of Postgres")
		require.NoError(t, err)
		require.Equal(t, state.Since, again.Since, "another reason is no new maintenance")
		_, err = m.Set(ctx, false, "")
		require.NoError(t, err)
		_, err = m.Set(ctx, false, "twice")
		require.NoError(t, err)
		require.NoError(t, m.Check(ctx))
		require.Equal(t, []string{
			"ada system.maintenance_on upgrade", "ada system.maintenance_on upgrade of Postgres", "ada system.maintenance_off ",
		}, r.entries)
		require.NoError(t, other.Stop(t.Context()))
	})
}

func TestReasonIsChecked(t *testing.T) {
	t.Parallel()
	m := maintenance.New(&rows{}, time.Now)
	for _, reason := range []string{"", "  ", "two\nlines", strings.Repeat("x", maintenance.MaxReason+1), "\xff"} {
		_, err := m.Set(t.Context(), true, reason)
		require.True(t, apperror.Is(err, apperror.InvalidArgument), "%q", reason)
	}
	require.NoError(t, m.Check(t.Context()))
}

func TestUnknownStateRefusesNothing(t *testing.T) {
	t.Parallel()
	m := maintenance.New(&rows{state: maintenance.State{On: true}, away: errors.New("no database")}, time.Now)
	require.NoError(t, m.Check(t.Context()))
	_, known := m.Last()
	require.False(t, known)
}
