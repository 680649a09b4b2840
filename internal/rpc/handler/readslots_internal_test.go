package handler

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/auth"
)

func TestRequestKeepsItsSlotUntilItWrites(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newReadSlots(1)
		ctx, slot := WithHeldSlot(t.Context())
		read := func() {
			done, err := s.acquire(ctx, "busy")
			require.NoError(t, err)
			done()
		}
		read()
		read() // the same request does not wait for itself

		others := 0
		for range 2 {
			go func() {
				done, err := s.acquire(t.Context(), "busy")
				if err != nil {
					t.Error(err)
					return
				}
				others++ // the slot guards it
				done()
			}()
		}
		synctest.Wait()
		require.Zero(t, others, "the answer is being encoded")

		slot.Release()
		synctest.Wait()
		require.Equal(t, 2, others)

		read()
		slot.Release()
		slot.Release()
		done, err := s.acquire(t.Context(), "busy")
		require.NoError(t, err)
		done()
	})
}

func TestSlotRestsWhileReadsWait(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ read, rest time.Duration }{
		"as long as the read": {30 * time.Millisecond, 30 * time.Millisecond},
		"for a bounded time":  {time.Minute, maxRest},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newReadSlots(1)
				begun := time.Now()
				done, err := s.acquire(t.Context(), "busy")
				require.NoError(t, err)
				acquired := make(chan time.Duration, 1)
				go func() {
					done, err := s.acquire(t.Context(), "busy")
					if err != nil {
						t.Error(err)
						return
					}
					acquired <- time.Since(begun)
					done()
				}()
				<-time.After(tt.read)
				done()
				require.Equal(t, tt.read+tt.rest, <-acquired)

				begun = time.Now()
				done, err = s.acquire(t.Context(), "busy")
				require.NoError(t, err)
				done()
				require.Zero(t, time.Since(begun), "none waits, so there is no rest")
			})
		})
	}
}

func TestReadsOfOneTokenDoNotHoldUpOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newReadSlots(1)
		const each = 10 * time.Millisecond
		read := func(token string) {
			ctx := auth.WithActor(t.Context(), auth.Actor{ID: token})
			done, err := s.acquire(ctx, "busy")
			if err != nil {
				t.Error(err)
				return
			}
			time.Sleep(each)
			done()
		}
		for range 100 {
			go read("viewer")
		}
		synctest.Wait()
		begun := time.Now()
		read("admin")
		require.Equal(t, 3*each, time.Since(begun), "the read in progress, its rest, and the own one")
		time.Sleep(time.Minute)
	})
}
