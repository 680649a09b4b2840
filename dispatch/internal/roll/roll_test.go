package roll_test

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
	"go.uber.org/goleak"

	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/dispatch/internal/contract"
	"github.com/signalbox-dev/signalbox/dispatch/internal/remote"
	"github.com/signalbox-dev/signalbox/dispatch/internal/roll"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// desk is where one registers.
type desk struct {
	mu    sync.Mutex
	calls map[inbox.Name]int
	under int
	most  int
	slow  time.Duration
	err   error
}

func (d *desk) Register(ctx context.Context, name inbox.Name, r contract.Registration) error {
	d.mu.Lock()
	if r != (contract.Registration{ServerID: "w", TaskQueue: name.TaskQueue, Build: "v1"}) {
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

func (d *desk) count(name inbox.Name) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.calls[name]
}

func (d *desk) set(slow time.Duration, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.slow, d.err = slow, err
}

func story(t *testing.T, tell func(t *testing.T, d *desk, r *roll.Roll)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &desk{calls: map[inbox.Name]int{}}
		r := roll.New(d, "w", "v1", slog.New(slog.DiscardHandler))
		ctx, cancel := context.WithCancel(t.Context())
		over := make(chan struct{})
		go func() {
			defer close(over)
			r.Run(ctx)
		}()
		tell(t, d, r)
		cancel()
		<-over
	})
}

func pass(d time.Duration) {
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

func TestItIsPaced(t *testing.T) {
	story(t, func(t *testing.T, d *desk, r *roll.Roll) {
		d.set(100*time.Millisecond, nil)
		r.Add(names(1000)...)
		pass(10 * time.Second)
		done := 0
		for _, name := range names(1000) {
			done += d.count(name)
		}
		require.InDelta(t, 500, done, 10, "fifty a second")
		d.mu.Lock()
		require.LessOrEqual(t, d.most, 8)
		d.mu.Unlock()
		pass(time.Minute)
		for _, name := range names(1000) {
			require.Equal(t, 1, d.count(name))
		}
	})
}

func TestItTriesAgain(t *testing.T) {
	story(t, func(t *testing.T, d *desk, r *roll.Roll) {
		name := names(1)[0]
		for _, err := range []error{remote.ErrGone, errors.New("unavailable")} {
			d.set(0, err)
			r.Add(name)
			before := d.count(name)
			pass(10 * time.Minute)
			require.InDelta(t, 30, d.count(name)-before, 15, "with pauses")
			d.set(0, nil)
			pass(time.Minute)
			settled := d.count(name)
			pass(time.Hour)
			require.Equal(t, settled, d.count(name))
		}
	})
}

func TestItRegistersAgainWhenAsked(t *testing.T) {
	story(t, func(t *testing.T, d *desk, r *roll.Roll) {
		name := names(1)[0]
		d.set(time.Second, nil)
		r.Add(name)
		r.Add(name)
		pass(500 * time.Millisecond)
		require.Equal(t, 1, d.count(name))
		r.Add(name) // while one is under way, which may have come too early
		pass(time.Minute)
		require.Equal(t, 2, d.count(name))
		r.Add(name)
		pass(time.Minute)
		require.Equal(t, 3, d.count(name))
	})
}

func TestItForgets(t *testing.T) {
	story(t, func(t *testing.T, d *desk, r *roll.Roll) {
		name := names(1)[0]
		d.set(0, remote.ErrGone)
		r.Add(name)
		pass(time.Minute)
		r.Remove(name)
		before := d.count(name)
		pass(time.Hour)
		require.Equal(t, before, d.count(name))
	})
}
