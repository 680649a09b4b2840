package leasetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/signalbox-dev/signalbox/lease"
)

// Load is the size of a random load; see [RunLoad].
type Load struct {
	Keys    int
	Clients int
	Calls   int // of each client
	Seed    uint64
}

// RunLoad runs clients that make random calls, invalid ones included: renewals, resignations and deletions with tokens
// and revisions that are no longer current, and pauses that are longer than their leases. It returns the calls with
// their results. Errors of the store do not end it.
func RunLoad(ctx context.Context, store lease.Store, load Load) []Call {
	recorder := NewRecorder(store)
	var clients sync.WaitGroup
	for i := range load.Clients {
		c := &client{
			store: recorder, name: fmt.Sprintf("client-%d", i), keys: load.Keys,
			random: rand.New(rand.NewPCG(load.Seed, uint64(i))),
			mine:   map[string][]lease.Entry{},
		}
		clients.Go(func() {
			for n := 0; n < load.Calls && ctx.Err() == nil; n++ {
				c.step(ctx, n)
			}
		})
	}
	clients.Wait()
	return recorder.Calls()
}

// client makes random calls. It keeps all leases that it acquired.
type client struct {
	store  lease.Store
	name   string
	keys   int
	random *rand.Rand
	mine   map[string][]lease.Entry
	read   lease.Entry // the entry that it read last
}

// shortLifetime lasts for a few calls, so that many leases run out.
func shortLifetime() lease.Lifetime {
	return lease.Lifetime{TTL: 15 * time.Millisecond, Retention: time.Minute}
}

func (c *client) step(ctx context.Context, n int) {
	key := fmt.Sprintf("history/%d", c.random.IntN(c.keys))
	value := fmt.Appendf(nil, "%s %d", c.name, n)
	lifetime := shortLifetime()
	lifetime.TTL += time.Duration(c.random.Int64N(int64(lifetime.TTL)))
	token := "unknown"
	if mine := c.mine[key]; len(mine) > 0 {
		token = mine[len(mine)-1].Token
		if c.random.IntN(4) == 0 {
			token = mine[c.random.IntN(len(mine))].Token
		}
	}
	switch dice := c.random.IntN(100); {
	case dice < 30:
		if got, _, err := c.store.Acquire(ctx, key, c.name, value, lifetime); err == nil {
			c.mine[key] = append(c.mine[key], got)
			c.read = got
		}
	case dice < 55:
		if c.random.IntN(3) == 0 {
			value = nil
		}
		_, _ = c.store.Renew(ctx, key, token, value, lifetime)
	case dice < 63:
		_ = c.store.Resign(ctx, key, token)
	case dice < 70 && c.read.Key != "":
		_ = c.store.Delete(ctx, c.read.Key, c.read.Token, c.read.Revision)
	case dice < 85:
		if got, err := c.store.Get(ctx, key); err == nil {
			c.read = got
		}
	case dice < 90:
		for e, err := range c.store.List(ctx, "history/") {
			if err == nil {
				c.read = e
			}
		}
	default:
		pause := time.Duration(c.random.Int64N(int64(3 * time.Millisecond)))
		if c.random.IntN(6) == 0 {
			pause = 2 * shortLifetime().TTL
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
}

// randomHistory is the check that runs random clients and verifies their history.
func randomHistory(t testing.TB, store lease.Store) {
	t.Helper()
	load := Load{Keys: 3, Clients: 6, Calls: 250, Seed: rand.Uint64()}
	calls := RunLoad(t.Context(), store, load)
	granted := 0
	for _, c := range calls {
		if c.unknown() {
			t.Errorf("a call failed: %v", c)
		}
		if c.Op == acquire && c.Err == nil {
			granted++
		}
		if errors.Is(c.Err, lease.ErrMalformed) {
			t.Errorf("an entry was malformed: %v", c)
		}
	}
	if granted < 10 {
		t.Errorf("only %d of %d calls acquired the lease: the history proves nothing", granted, len(calls))
	}
	for _, failure := range Verify(calls) {
		t.Errorf("%s\nin the history of %+v", failure, load)
	}
}
