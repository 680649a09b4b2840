package connection_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/conn"
	"github.com/signalbox-dev/signalbox/conn/conntest"
	"github.com/signalbox-dev/signalbox/test/platform"
	"github.com/signalbox-dev/signalbox/test/promise"
)

// Stop returns within its budget in every state of the manager, and leaves nothing behind.
func TestStopEndsWithinItsBudget(t *testing.T) {
	t.Parallel()
	const budget = 3 * time.Second
	situations := map[string]func(*testing.T, *subject, *conntest.Frontend){
		"connecting": func(*testing.T, *subject, *conntest.Frontend) {},
		"down": func(t *testing.T, s *subject, f *conntest.Frontend) {
			s.waitForPolling(t, patience)
			f.Stop()
			s.waitForState(t, soonBusy, conn.Down, conn.Unreachable)
		},
		"hung": func(t *testing.T, s *subject, f *conntest.Frontend) {
			s.waitForPolling(t, patience)
			f.Freeze()
			s.waitForState(t, soonIdle, conn.Down, conn.Hung)
		},
		"hung and not known": func(t *testing.T, s *subject, f *conntest.Frontend) {
			s.waitForPolling(t, patience)
			f.Freeze()
		},
		"draining": func(t *testing.T, s *subject, f *conntest.Frontend) {
			s.waitForPolling(t, patience)
			held := s.mustStart(t, order{Hold: 15 * time.Second})
			platform.Eventually(t, soonBusy, func() string {
				if !s.begun(held) {
					return "the activity has not begun"
				}
				return ""
			})
			f.Stop()
			waitFor(t, 4*time.Second)
			require.NoError(t, f.Restart())
			s.waitForPolling(t, soonBusy)
			require.Positive(t, s.Status().Draining)
		},
		"busy": func(t *testing.T, s *subject, _ *conntest.Frontend) {
			s.waitForPolling(t, patience)
			s.traffic(t, 10*time.Millisecond)
			waitFor(t, time.Second)
		},
	}
	for name, bring := range situations {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			frontend := frontendOfShared(t, conntest.Options{})
			s := newSubject(t, rebuilding(promptOptions(frontend.Addr())))
			bring(t, s, frontend)
			ctx, cancel := context.WithTimeout(t.Context(), budget)
			defer cancel()
			began := time.Now()
			err := s.Stop(ctx)
			took := time.Since(began)
			if ctx.Err() == nil {
				require.NoError(t, err)
			}
			require.Less(t, took, budget+promise.Limit(500*time.Millisecond))
			require.Equal(t, conn.Closed, s.Status().State)
			_, err = s.Client()
			require.Error(t, err)
			platform.Eventually(t, patience, func() string {
				if s.goroutines(t) > 0 {
					return "goroutines are left:\n" + s.stacks(t)
				}
				return ""
			})
			promise.Record(t, promise.Figure{
				Promise: "C7", What: "library, stop while " + name + ", with 3 s to do it", Aim: "within the budget", Trials: 1,
				Figure: promise.Times{took}.String()})
		})
	}
}
