package conn_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/conn"
	"github.com/signalbox-dev/signalbox/conn/conntest"
	"github.com/signalbox-dev/signalbox/conn/conntype"
)

func TestRetryAfterIsOfTheMomentItIsAskedAt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		soon, late := &conn.DownError{NextAttempt: time.Now().Add(20 * time.Second)},
			&conn.DownError{NextAttempt: time.Now().Add(5 * time.Minute)}
		require.Equal(t, 20*time.Second, soon.RetryAfter())
		require.Equal(t, 30*time.Second, late.RetryAfter())
		<-time.After(15 * time.Second) // by the fake clock of synctest
		require.Equal(t, 5*time.Second, soon.RetryAfter())
		<-time.After(time.Minute)
		require.Equal(t, time.Second, soon.RetryAfter(), "an attempt is under way")
		require.Equal(t, time.Second, (&conn.DownError{}).RetryAfter())
	})
}

// TestStatusShowsRunningAttempt waits for an attempt that only BreakerEvery causes.
func TestStatusShowsRunningAttempt(t *testing.T) {
	t.Parallel()
	r := newRig(t, conntest.Options{}, func(o *conn.Options) {
		o.BreakerAfter, o.BreakerEvery, o.ProbeEvery = 1, time.Second, time.Hour
	})
	r.frontend.Mute()
	r.start(t)
	s := r.until(t, func(s conn.Status) bool { return s.Breaker.State == conntype.BreakerOpen })
	require.False(t, s.NextAttempt.IsZero())
	s = r.until(t, func(s conn.Status) bool { return s.Breaker.State == conntype.BreakerHalfOpen })
	require.Equal(t, int64(2), s.Attempts)
	require.Zero(t, s.NextAttempt)
	require.Zero(t, s.Breaker.NextProbe)
}
