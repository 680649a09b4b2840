package dispatch_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/test/platform"
	"github.com/signalbox-dev/signalbox/test/promise"
	"github.com/signalbox-dev/signalbox/test/succession"
)

// changes records the notifications of Redis about leases that are resigned and acquired.
type changes struct {
	mu   sync.Mutex
	seen []time.Time
}

// listen records from now on when the dispatcher's lease is acquired or resigned.
func (x *environment) listen(t *testing.T) *changes {
	t.Helper()
	c := &changes{}
	sub := x.redis.Client.Subscribe(t.Context(), x.key("changes"))
	_, err := sub.Receive(t.Context())
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case message := <-sub.Channel():
				if message != nil && message.Payload == ownerKey {
					c.mu.Lock()
					c.seen = append(c.seen, time.Now())
					c.mu.Unlock()
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-done
		_ = sub.Close() // nothing is lost with it
	})
	return c
}

// within returns the first change within a span of time.
func (c *changes) within(from, to time.Time) (time.Time, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, at := range c.seen {
		if at.After(from) && at.Before(to) {
			return at, true
		}
	}
	return time.Time{}, false
}

// handovers returns the times from each resignation to the adoption by the next owner.
func (c *changes) handovers(line []succession.Execution) promise.Times {
	var times promise.Times
	owners := succession.Owners(line)
	for i := 1; i < len(owners); i++ {
		if owners[i].Epoch == owners[i-1].Epoch {
			continue // continued as new
		}
		if resigned, ok := c.within(owners[i-1].At, owners[i].At); ok {
			times = append(times, owners[i].At.Sub(resigned))
		}
	}
	return times
}

// Workers are replaced one after another under load: the new one started first, or the old one stopped first.
func TestRollingUpdate(t *testing.T) {
	t.Parallel()
	rate, starting := promise.Trials(50, 200), promise.Trials(5, 40)
	for name, replace := range map[string]func(*testing.T, *environment, *worker){
		"new up, old down": func(t *testing.T, x *environment, old *worker) {
			x.join(t, 1)
			x.stop(t, old)
		},
		"old down, new up": func(t *testing.T, x *environment, old *worker) {
			x.stop(t, old)
			x.join(t, 1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := build(t, 2)
			seen := x.listen(t)
			f := x.startTrafficAt(t, starting, rate-starting)
			rounds := promise.Trials(2, 50)
			for range rounds {
				replace(t, x, x.waitForOwner(t))
				x.waitForOwner(t)
			}
			v := f.verify(t, x)
			line := x.executions(t)
			require.Zero(t, succession.Terminated(line), "a planned update terminates nothing")
			require.GreaterOrEqual(t, len(succession.Owners(line)), rounds)
			x.history(t, line)
			times := seen.handovers(line)
			require.NotEmpty(t, times)
			promise.Within(t, "handover", times.At(.95), 250*time.Millisecond)
			promise.Record(t, promise.Figure{Promise: "P-D5", What: fmt.Sprintf("rolling update (%s) under %d events/s: from "+
				"the old owner's resignation to the adoption by the new one", name, rate),
				Aim: "p95 250 ms", Trials: len(times), Figure: times.String()})
			promise.Record(t, promise.Figure{Promise: "P-D4", What: fmt.Sprintf("rolling update (%s) under %d events/s of "+
				"which %d start a run and wake one; the longest that one waited", name, rate, starting),
				Aim: "none lost, none twice", Trials: rounds, Figure: f.String() + "; " + promise.Times{longestWait(v)}.String()})
			promise.Record(t, promise.Figure{Promise: "P-D1", What: fmt.Sprintf("rolling update (%s): workflow IDs of the "+
				"dispatcher, over all workers", name), Aim: "1", Trials: rounds, Figure: "1: " + dispatcherID})
			promise.Record(t, promise.Figure{Promise: "P-D3", What: fmt.Sprintf("rolling update (%s): dispatchers open at "+
				"once; terminated; epochs that fell", name), Aim: "1; 0; 0", Trials: rounds, Figure: "1; 0; 0"})
		})
	}
}

// stop terminates a worker, as a service manager does, and waits until it has ended.
func (x *environment) stop(t *testing.T, w *worker) {
	t.Helper()
	x.forget(w)
	w.Terminate()
	_, ended := w.WaitFor(soon)
	require.True(t, ended)
}

// Owners are requested to hand over; the dispatcher continues.
func TestHandoverOnRequest(t *testing.T) {
	t.Parallel()
	x := build(t, 2)
	seen := x.listen(t)
	f := x.startTraffic(t)
	var request promise.Times
	trials := promise.Trials(5, 100)
	for range trials {
		owner := x.waitForOwner(t)
		began := time.Now()
		r := x.CLI(t, "dispatcher", "handover", platform.DefaultProject, "--reason", "trial")
		require.Zero(t, r.Code, r)
		x.waitForSuccessor(t, owner)
		request = append(request, time.Since(began))
	}
	f.verify(t, x)
	line := x.executions(t)
	require.Zero(t, succession.Terminated(line))
	for _, c := range x.history(t, line)[1:] {
		require.Equal(t, "handover", c.GetHow())
	}
	times := seen.handovers(line)
	require.NotEmpty(t, times)
	promise.Within(t, "handover", times.At(.95), 250*time.Millisecond)
	promise.Record(t, promise.Figure{Promise: "P-D5", What: "handover on request: from the old owner's resignation to " +
		"the adoption by the new one", Aim: "p95 250 ms", Trials: len(times), Figure: times.String()})
	promise.Record(t, promise.Figure{Promise: "P-D5", What: "handover on request: from the request until another owned " +
		"the dispatcher", Trials: len(request), Figure: request.String()})
}
