package heartbeat_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/dispatch/internal/heartbeat"
	"github.com/signalbox-dev/signalbox/dispatch/internal/remote"
	"github.com/signalbox-dev/signalbox/dispatch/internal/wire"
)

// registry receives registrations.
type registry struct {
	mu    sync.Mutex
	calls map[inbox.Name]int
	under int
	most  int
	slow  time.Duration
	err   error
}

func (d *registry) Register(ctx context.Context, name inbox.Name, r wire.Registration) error {
	d.mu.Lock()
	if r != (wire.Registration{ServerID: "w", TaskQueue: name.TaskQueue, Build: "v1"}) {
		panic(fmt.Sprintf("%+v", r))
	}
	d.calls[name]++
	d.under++
	d.most = max(d.most, d.under)
	slow, err := d.slow, d.err
	d.mu.Unlock()
	select {
	case <-time.After(slow):
	case <-ctx.Done():
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.under--
	return err
}

func (d *registry) count(name inbox.Name) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.calls[name]
}

func (d *registry) set(slow time.Duration, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.slow, d.err = slow, err
}

func withRegistrations(t *testing.T, test func(t *testing.T, d *registry, r *heartbeat.Registrations)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &registry{calls: map[inbox.Name]int{}}
		r := heartbeat.NewRegistrations(d, "w", "v1", slog.New(slog.DiscardHandler))
		ctx, cancel := context.WithCancel(t.Context())
		over := make(chan struct{})
		go func() {
			defer close(over)
			r.Run(ctx)
		}()
		test(t, d, r)
		cancel()
		<-over
	})
}

func advanceRegistrations(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func names(n int) []inbox.Name {
	var list []inbox.Name
	for i := range n {
		list = append(list, inbox.Name{Project: fmt.Sprintf("p%d", i), TaskQueue: "q"})
	}
	return list
}

func TestRegistrationsAreRateLimited(t *testing.T) {
	withRegistrations(t, func(t *testing.T, d *registry, r *heartbeat.Registrations) {
		d.set(100*time.Millisecond, nil)
		r.Add(names(1000)...)
		advanceRegistrations(10 * time.Second)
		done := 0
		for _, name := range names(1000) {
			done += d.count(name)
		}
		require.InDelta(t, 500, done, 10, "fifty per second")
		d.mu.Lock()
		require.LessOrEqual(t, d.most, 8)
		d.mu.Unlock()
		advanceRegistrations(time.Minute)
		for _, name := range names(1000) {
			require.Equal(t, 1, d.count(name))
		}
	})
}

func TestFailedRegistrationIsRetried(t *testing.T) {
	withRegistrations(t, func(t *testing.T, d *registry, r *heartbeat.Registrations) {
		name := names(1)[0]
		for _, err := range []error{remote.ErrGone, errors.New("unavailable")} {
			d.set(0, err)
			r.Add(name)
			before := d.count(name)
			advanceRegistrations(10 * time.Minute)
			require.InDelta(t, 30, d.count(name)-before, 15, "with pauses")
			d.set(0, nil)
			advanceRegistrations(time.Minute)
			registered := d.count(name)
			advanceRegistrations(time.Hour)
			require.Equal(t, registered, d.count(name))
		}
	})
}

func TestAddDuringRegistrationRepeatsIt(t *testing.T) {
	withRegistrations(t, func(t *testing.T, d *registry, r *heartbeat.Registrations) {
		name := names(1)[0]
		d.set(time.Second, nil)
		r.Add(name)
		r.Add(name)
		advanceRegistrations(500 * time.Millisecond)
		require.Equal(t, 1, d.count(name))
		r.Add(name) // while one is running, which may have been too early
		advanceRegistrations(time.Minute)
		require.Equal(t, 2, d.count(name))
		r.Add(name)
		advanceRegistrations(time.Minute)
		require.Equal(t, 3, d.count(name))
	})
}

func TestRemoveCancelsRegistration(t *testing.T) {
	withRegistrations(t, func(t *testing.T, d *registry, r *heartbeat.Registrations) {
		name := names(1)[0]
		d.set(0, remote.ErrGone)
		r.Add(name)
		advanceRegistrations(time.Minute)
		r.Remove(name)
		before := d.count(name)
		advanceRegistrations(time.Hour)
		require.Equal(t, before, d.count(name))
	})
}
