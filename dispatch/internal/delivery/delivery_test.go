package delivery_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/dispatch/inbox/memory"
	"github.com/signalbox-dev/signalbox/dispatch/internal/delivery"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var name = inbox.Name{Project: "shop", TaskQueue: "orders"}

// bench is a routing in a synctest bubble, with scripted deliveries and failures.
type bench struct {
	*memory.Inbox
	t     *testing.T
	owner inbox.Owner
	stop  chan struct{}

	mu      sync.Mutex
	made    []string // attempts, as item and attempt
	counts  map[inbox.Result]int
	deliver func(ctx context.Context, d inbox.Delivery) inbox.Outcome
	away    error // the error of claims and records
	records int
	parks   int
}

func newBench(t *testing.T) *bench {
	b := &bench{t: t, stop: make(chan struct{}), counts: map[inbox.Result]int{}}
	b.Inbox = memory.New(func(ctx context.Context, _ inbox.Name, d inbox.Delivery) inbox.Outcome {
		b.mu.Lock()
		b.made = append(b.made, fmt.Sprintf("%v/%d", d.Item, d.Attempt))
		deliver := b.deliver
		b.mu.Unlock()
		if deliver == nil {
			return inbox.Outcome{Result: inbox.Done}
		}
		return deliver(ctx, d)
	})
	b.owner = b.own("a")
	return b
}

func (b *bench) own(holder string) inbox.Owner {
	owner, err := b.Fence(b.t.Context(), name, holder, 0)
	require.NoError(b.t, err)
	return owner
}

func (b *bench) failure() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.away
}

func (b *bench) set(change func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change()
}

func (b *bench) Claim(ctx context.Context, n inbox.Name, owner inbox.Owner, limit int,
	visible time.Duration) ([]inbox.Delivery, error) {
	if err := b.failure(); err != nil {
		return nil, err
	}
	return b.Inbox.Claim(ctx, n, owner, limit, visible)
}

func (b *bench) RecordOutcomes(ctx context.Context, n inbox.Name, owner inbox.Owner,
	outcomes []inbox.DeliveryOutcome) error {
	if err := b.failure(); err != nil {
		return err
	}
	b.set(func() { b.records++ })
	return b.Inbox.RecordOutcomes(ctx, n, owner, outcomes)
}

func (b *bench) Park(ctx context.Context, n inbox.Name, owner inbox.Owner) (bool, error) {
	b.set(func() { b.parks++ })
	return b.Inbox.Park(ctx, n, owner)
}

// advance advances the bubble's clock.
func advance(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

type ended struct {
	end delivery.End
	err error
}

// route starts a routing and returns a channel for its end.
func (b *bench) route(ctx context.Context) chan ended {
	over := make(chan ended, 1)
	go func() {
		end, err := delivery.Run(ctx, delivery.Routing{
			Name: name, Owner: b.owner, Inbox: b, Brief: 2 * time.Second, Idle: time.Minute, Stop: b.stop,
			Log:   slog.New(slog.DiscardHandler),
			Count: func(result inbox.Result, n int) { b.set(func() { b.counts[result] += n }) },
		})
		over <- ended{end, err}
	}()
	return over
}

func (b *bench) attempts() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.made)
}

func (b *bench) pending() inbox.Progress {
	list, err := b.Progress(b.t.Context(), name)
	require.NoError(b.t, err)
	return list[0]
}

func TestRoutingWithoutWorkParksSoon(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		began := time.Now()
		require.Equal(t, ended{end: delivery.Parked}, <-b.route(t.Context()))
		require.Equal(t, 2*time.Second, time.Since(began))
		require.True(t, b.pending().Parked)
	})
}

func TestRoutingPollsLongerAfterWork(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		began := time.Now()
		over := b.route(t.Context())
		for i := range 3 {
			advance(time.Second)
			b.Publish(name, "", i)
			published := time.Now()
			synctest.Wait()
			require.Len(t, b.attempts(), i+1)
			require.Equal(t, published, time.Now(), "at once")
		}
		require.Equal(t, ended{end: delivery.Parked}, <-over)
		require.InDelta(t, 63, time.Since(began).Seconds(), 1)
		require.Equal(t, 3, b.counts[inbox.Done])
	})
}

func TestRejectedParkContinuesRouting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.deliver = func(_ context.Context, d inbox.Delivery) inbox.Outcome {
			if d.Attempt == 1 {
				return inbox.Outcome{Result: inbox.Retry, After: 90 * time.Second}
			}
			return inbox.Outcome{Result: inbox.Done}
		}
		b.Publish(name, "", "late")
		require.Equal(t, ended{end: delivery.Parked}, <-b.route(t.Context()), "nothing is due for a while")
		advance(time.Minute)
		names, err := b.ParkedDue(t.Context(), 1)
		require.NoError(t, err)
		require.Equal(t, []inbox.Name{name}, names)
		require.Equal(t, ended{end: delivery.Parked}, <-b.route(t.Context()))
		require.Equal(t, []string{"late/1", "late/2"}, b.attempts())
	})
}

func TestLanesAreOrderedAndIndependent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.deliver = func(_ context.Context, d inbox.Delivery) inbox.Outcome {
			switch {
			case d.Item == "a1" && d.Attempt == 1:
				return inbox.Outcome{Result: inbox.Retry, After: 10 * time.Second}
			case d.Item == "b1":
				return inbox.Outcome{Result: inbox.Dead, Reason: "poison"}
			}
			return inbox.Outcome{Result: inbox.Done}
		}
		for i := range 3 {
			b.Publish(name, "a", fmt.Sprintf("a%d", i+1))
			b.Publish(name, "b", fmt.Sprintf("b%d", i+1))
		}
		over := b.route(t.Context())
		advance(time.Second)
		require.ElementsMatch(t, []string{"a1/1", "b1/1", "b2/1", "b3/1"}, b.attempts())
		<-over
		var a []string
		for _, made := range b.attempts() {
			if made[0] == 'a' {
				a = append(a, made)
			}
		}
		require.Equal(t, []string{"a1/1", "a1/2", "a2/1", "a3/1"}, a,
			"the rest of a lane waits, and its claim does not count as an attempt")
		require.Equal(t, map[inbox.Result]int{inbox.Done: 5, inbox.Retry: 1, inbox.Dead: 1}, b.counts)
		require.Len(t, b.Dead(name), 1)
	})
}

// TestLaneOutlastsItsClaim: the inbox returns deliveries again that still wait in a lane here.
func TestLaneOutlastsItsClaim(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.deliver = func(context.Context, inbox.Delivery) inbox.Outcome {
			<-time.After(5 * time.Second)
			return inbox.Outcome{Result: inbox.Done}
		}
		for i := range 5 {
			b.Publish(name, "lane", i+1)
		}
		require.Equal(t, ended{end: delivery.Parked}, <-b.route(t.Context()))
		require.Equal(t, []string{"1/1", "2/1", "3/1", "4/1", "5/1"}, b.attempts())
	})
}

// TestLaneWaitsForRetry: the inbox returns deliveries of a lane again, between a late failure and the write of its
// outcome. New deliveries of the lane must not be made first.
func TestLaneWaitsForRetry(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.deliver = func(_ context.Context, d inbox.Delivery) inbox.Outcome {
			switch {
			case d.Item == "a1" && d.Attempt == 1:
				<-time.After(9*time.Second - 4*time.Millisecond) // recorded after its visibility time
				return inbox.Outcome{Result: inbox.Retry, After: time.Second}
			case d.Item == "slow":
				<-time.After(20 * time.Second) // outcomes wait for others while attempts run
			}
			return inbox.Outcome{Result: inbox.Done}
		}
		b.Publish(name, "a", "a1")
		b.Publish(name, "", "slow")
		over := b.route(t.Context())
		advance(5 * time.Second)
		b.Publish(name, "a", "a2")
		advance(4*time.Second + time.Millisecond)
		b.Publish(name, "", "hint")
		require.Equal(t, ended{end: delivery.Parked}, <-over)
		made := slices.DeleteFunc(b.attempts(), func(m string) bool { return m[0] != 'a' })
		require.Equal(t, "a2", made[len(made)-1][:2])
		require.Equal(t, 1, slices.IndexFunc(made[1:], func(m string) bool { return m[:2] == "a2" }), made)
	})
}

func TestSlowDeliveriesDoNotBlockOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		var most, now int
		b.deliver = func(ctx context.Context, d inbox.Delivery) inbox.Outcome {
			b.set(func() { now++; most = max(most, now) })
			defer b.set(func() { now-- })
			if d.Item == "hangs" {
				<-ctx.Done()
				return inbox.Outcome{Result: inbox.Retry, After: time.Hour, Reason: "hung"}
			}
			<-time.After(100 * time.Millisecond)
			return inbox.Outcome{Result: inbox.Done}
		}
		for range 10 {
			b.Publish(name, "", "hangs")
		}
		for range 1000 {
			b.Publish(name, "", "ok")
		}
		over := b.route(t.Context())
		advance(3 * time.Second)
		require.Equal(t, int64(10), b.pending().Pending)
		b.set(func() {
			require.Equal(t, 64, most)
			require.Less(t, b.records, 200, "outcomes are written together")
		})
		<-over
		require.Equal(t, 10, b.counts[inbox.Retry], "hanging attempts time out")
		require.Len(t, b.attempts(), 1010, "no attempt is made twice")
	})
}

func TestNewOwnerEndsRouting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		over := b.route(t.Context())
		synctest.Wait()
		b.own("b")
		b.Publish(name, "", "not mine")
		require.Equal(t, ended{end: delivery.Fenced}, <-over)
		require.Empty(t, b.attempts())
		require.Equal(t, ended{end: delivery.Fenced}, <-b.route(t.Context()), "from the start")
	})
}

func TestNewOwnerDuringRecordEndsRouting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.deliver = func(context.Context, inbox.Delivery) inbox.Outcome {
			<-time.After(time.Second)
			return inbox.Outcome{Result: inbox.Done}
		}
		b.Publish(name, "", "x")
		over := b.route(t.Context())
		synctest.Wait()
		next := b.own("b")
		require.Equal(t, ended{end: delivery.Fenced}, <-over)
		require.Equal(t, int64(1), b.pending().Pending, "the outcome was rejected")
		b.owner = next
		require.Equal(t, ended{end: delivery.Parked}, <-b.route(t.Context()))
		require.Equal(t, []string{"x/1", "x/2"}, b.attempts())
	})
}

func TestInboxRequestsAreRetried(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.deliver = func(context.Context, inbox.Delivery) inbox.Outcome {
			b.set(func() { b.away = errors.New("the database is away") })
			return inbox.Outcome{Result: inbox.Done}
		}
		b.Publish(name, "", "x")
		over := b.route(t.Context())
		advance(30 * time.Second)
		require.Equal(t, int64(1), b.pending().Pending)
		b.set(func() { b.away = nil })
		require.Equal(t, ended{end: delivery.Parked}, <-over)
		require.Equal(t, []string{"x/1"}, b.attempts(),
			"a delivery claimed again before its outcome is written is not repeated")
		require.Zero(t, b.pending().Pending)
	})
}

func TestStopReleasesDeliveries(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.deliver = func(ctx context.Context, _ inbox.Delivery) inbox.Outcome {
			select {
			case <-ctx.Done():
				return inbox.Outcome{Result: inbox.Retry}
			case <-time.After(time.Second):
				return inbox.Outcome{Result: inbox.Done}
			}
		}
		for i := range 100 {
			b.Publish(name, "", i)
		}
		b.Publish(name, "lane", "first")
		b.Publish(name, "lane", "second")
		over := b.route(t.Context())
		advance(500 * time.Millisecond)
		began := time.Now()
		close(b.stop)
		got := <-over
		require.ErrorIs(t, got.err, delivery.ErrStopped)
		require.Equal(t, 500*time.Millisecond, time.Since(began), "running attempts complete")
		require.Equal(t, 64, b.counts[inbox.Done])
		p := b.pending()
		require.Equal(t, int64(102-64), p.Pending)
		require.True(t, p.Due, "the rest is due at once")
		b.stop = make(chan struct{})
		<-b.route(t.Context())
		require.Zero(t, b.pending().Pending)
		for _, made := range b.attempts() {
			require.Regexp(t, `/1$`, made, "a released delivery had no attempt")
		}
	})
}

func TestStopDoesNotWaitForHangingDeliveries(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.deliver = func(ctx context.Context, _ inbox.Delivery) inbox.Outcome {
			<-ctx.Done()
			return inbox.Outcome{Result: inbox.Retry}
		}
		b.Publish(name, "", "hangs")
		over := b.route(t.Context())
		synctest.Wait()
		began := time.Now()
		close(b.stop)
		require.ErrorIs(t, (<-over).err, delivery.ErrStopped)
		require.Equal(t, 2*time.Second, time.Since(began))

		b.stop = make(chan struct{})
		b.set(func() { b.away = errors.New("the database is away") })
		over = b.route(t.Context())
		synctest.Wait()
		close(b.stop)
		require.ErrorIs(t, (<-over).err, delivery.ErrStopped, "nor for an unavailable inbox")
	})
}

func TestContextEndsRouting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		ctx, cancel := context.WithCancel(t.Context())
		over := b.route(ctx)
		synctest.Wait()
		cancel()
		require.ErrorIs(t, (<-over).err, context.Canceled)
	})
}

func TestRoutingTurnsWithPendingWork(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.deliver = func(context.Context, inbox.Delivery) inbox.Outcome {
			<-time.After(time.Second)
			b.Publish(name, "", "more")
			return inbox.Outcome{Result: inbox.Done}
		}
		b.Publish(name, "", "first")
		began := time.Now()
		require.Equal(t, ended{end: delivery.Turned}, <-b.route(t.Context()))
		require.InDelta(t, 600, time.Since(began).Seconds(), 2)
		require.True(t, b.pending().Due)
	})
}

func TestPanicAffectsOneDelivery(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.deliver = func(_ context.Context, d inbox.Delivery) inbox.Outcome {
			if d.Item == "bad" {
				panic("bad definition")
			}
			return inbox.Outcome{Result: inbox.Done}
		}
		b.Publish(name, "", "bad")
		b.Publish(name, "", "good")
		for len(b.Dead(name)) == 0 {
			<-b.route(t.Context())
		}
		require.Equal(t, "the delivery panicked: bad definition", b.Dead(name)[0].Reason)
		require.Equal(t, 10, b.Dead(name)[0].Delivery.Attempt)
		require.Equal(t, 1, b.counts[inbox.Done])
	})
}

// batched is a bench whose inbox makes several deliveries of a lane at a time.
type batched struct {
	*bench
	many func(list []inbox.Delivery) []inbox.Outcome
}

func (b *batched) DeliverMany(_ context.Context, _ inbox.Name, list []inbox.Delivery) []inbox.Outcome {
	return b.many(list)
}

// TestDeliveriesOfALaneAreMadeTogether has the first attempt fail at its second delivery, and the second one panic.
func TestDeliveriesOfALaneAreMadeTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		var attempts [][]any
		over := &batched{b, func(list []inbox.Delivery) []inbox.Outcome {
			var items []any
			for _, d := range list {
				items = append(items, d.Item)
			}
			attempts = append(attempts, items)
			switch len(attempts) {
			case 1:
				return []inbox.Outcome{{Result: inbox.Done}, {Result: inbox.Retry, After: time.Second, Reason: "away"}}
			case 2:
				panic("broken")
			}
			return slices.Repeat([]inbox.Outcome{{Result: inbox.Done}}, len(list))
		}}
		for i := range 5 {
			b.Publish(name, "lane", i)
		}
		ended := make(chan error, 1)
		go func() {
			_, err := delivery.Run(t.Context(), delivery.Routing{
				Name: name, Owner: b.owner, Inbox: over, Brief: time.Minute, Idle: time.Minute, Log: slog.New(slog.DiscardHandler),
			})
			ended <- err
		}()
		advance(30 * time.Second)
		require.Equal(t, [][]any{{0, 1, 2, 3, 4}, {1, 2, 3, 4}, {1, 2, 3, 4}}, attempts)
		require.NoError(t, <-ended)
	})
}
