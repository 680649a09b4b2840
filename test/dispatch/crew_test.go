package dispatch_test

import (
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	sdkworker "go.temporal.io/sdk/worker"

	"github.com/signalbox-dev/signalbox/conn/conntest"
	"github.com/signalbox-dev/signalbox/dispatch"
	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/dispatch/inbox/memory"
	"github.com/signalbox-dev/signalbox/internal/engine/payload"
	"github.com/signalbox-dev/signalbox/lease"
	"github.com/signalbox-dev/signalbox/lease/redislease"
	"github.com/signalbox-dev/signalbox/test/database"
	"github.com/signalbox-dev/signalbox/test/platform"
	"github.com/signalbox-dev/signalbox/test/succession"
)

// crew is what several processes of a program that embeds the library share: a Temporal, a Redis and an inbox. Its members live
// in the test's own process; each has a way of its own to all of it, which can be frozen or cut.
type crew struct {
	temporal  *platform.Temporal
	namespace string
	client    client.Client
	redis     *database.Redis
	prefix    string
	inbox     *memory.Inbox

	mu        sync.Mutex
	delivered map[inbox.Name][]int
	times     map[inbox.Name][]time.Time
}

// brisk are times short enough for a test.
func brisk() dispatch.Timing {
	return dispatch.Timing{
		TTL: 3 * time.Second, Renew: 700 * time.Millisecond, Margin: 500 * time.Millisecond, Heartbeat: 700 * time.Millisecond,
		StaleAfter: 4 * time.Second, Retention: time.Minute, Idle: time.Second, CheckEvery: time.Second,
	}
}

// assemble starts what a crew shares.
func assemble(t *testing.T) *crew {
	t.Helper()
	c := &crew{
		temporal: shared.Get(t), namespace: fmt.Sprintf("n%08x", rand.Uint32()), redis: database.StartRedis(t, t.Skip), prefix: "crew:",
		delivered: map[inbox.Name][]int{}, times: map[inbox.Name][]time.Time{},
	}
	c.temporal.CreateNamespace(t, c.namespace)
	c.client = platform.DialNamespace(t, c.temporal.Address, c.namespace)
	c.inbox = memory.New(func(_ context.Context, name inbox.Name, d inbox.Delivery) inbox.Outcome {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.delivered[name] = append(c.delivered[name], d.Item.(int))
		c.times[name] = append(c.times[name], time.Now())
		return inbox.Outcome{Result: inbox.Done}
	})
	return c
}

// member is one process of the crew.
type member struct {
	*dispatch.Dispatchers

	id       string
	client   client.Client
	leases   *brittle
	frontend *conntest.Frontend
	idle     atomic.Bool // it says that it does not poll
}

// enroll starts a member that serves the names.
func (c *crew) enroll(t *testing.T, names ...dispatch.Name) *member {
	t.Helper()
	return c.admit(t, c.visit(t), names...)
}

// admit has a member that did nothing so far serve the names.
func (c *crew) admit(t *testing.T, m *member, names ...dispatch.Name) *member {
	t.Helper()
	queues := map[string]bool{}
	for _, name := range names {
		if queues[name.TaskQueue] {
			continue
		}
		queues[name.TaskQueue] = true
		w := sdkworker.New(m.client, name.TaskQueue, sdkworker.Options{WorkerStopTimeout: time.Second})
		m.Register(w)
		require.NoError(t, w.Start())
		t.Cleanup(func() {
			m.recover()
			w.Stop()
		})
	}
	for _, name := range names {
		require.NoError(t, m.Serve(name))
	}
	require.NoError(t, m.Start(t.Context()))
	t.Cleanup(func() {
		m.recover()
		require.NoError(t, m.Stop(context.WithoutCancel(t.Context())))
	})
	return m
}

// visit makes a member that does nothing by itself.
func (c *crew) visit(t *testing.T) *member {
	t.Helper()
	m := &member{id: fmt.Sprintf("member-%08x", rand.Uint32())}
	store, err := redislease.Open(redislease.Options{URL: c.redis.URL(), Prefix: c.prefix})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	m.leases = newBrittle(store)
	m.frontend = conntest.Run(t, conntest.Options{Upstream: c.temporal.Address})
	m.client = platform.DialNamespace(t, m.frontend.Addr(), c.namespace)
	m.Dispatchers, err = dispatch.New(dispatch.Options{
		ServerID: m.id, Build: "test", Client: func() (client.Client, error) { return m.client, nil }, Namespace: c.namespace, Converter: payload.Converter(platform.Keys(t)),
		Polls:  func(dispatch.Name) bool { return !m.idle.Load() },
		Leases: m.leases, Inbox: c.inbox, Timing: brisk(),
		Supervisor: dispatch.SupervisorOptions{Interval: time.Minute, Confirm: 300 * time.Millisecond},
	})
	require.NoError(t, err)
	return m
}

// freeze keeps a member from reaching anything, as if its process were stopped.
func (m *member) freeze() {
	m.frontend.Freeze()
	m.leases.freeze()
}

// recover lets it go on.
func (m *member) recover() {
	m.leases.thaw()
	m.frontend.Thaw()
}

// owns tells whether a member believes that it owns a name.
func (m *member) owns(name dispatch.Name) bool {
	return slices.ContainsFunc(m.Owned(), func(o dispatch.Owned) bool { return o.Name == name })
}

// owner waits until one of the members owns a name, and Temporal agrees.
func (c *crew) owner(t *testing.T, name dispatch.Name, members ...*member) *member {
	t.Helper()
	id, err := dispatch.ID(name.Project, name.TaskQueue)
	require.NoError(t, err)
	var found *member
	platform.Eventually(t, patience, func() string {
		for _, m := range members {
			if !m.owns(name) {
				continue
			}
			open := succession.Open(succession.Read(t, c.client, id))
			if len(open) == 1 && open[0].Owner().Server == m.id {
				found = m
				return ""
			}
		}
		return fmt.Sprintf("nobody owns %s", id)
	})
	return found
}

// publish gives events to the inbox, numbered from first on, and rings where nobody listens.
func (c *crew) publish(t *testing.T, m *member, name dispatch.Name, first, count int) {
	t.Helper()
	wake := false
	for n := first; n < first+count; n++ {
		wake = c.inbox.Publish(name, "lane", n) || wake
	}
	if wake {
		require.NoError(t, m.Ring(t.Context(), name))
	}
}

// delivers waits until the events from 0 on were delivered, each once and in order.
func (c *crew) delivers(t *testing.T, name dispatch.Name, count int) {
	t.Helper()
	platform.Eventually(t, patience, func() string {
		c.mu.Lock()
		defer c.mu.Unlock()
		if got := len(c.delivered[name]); got < count {
			return fmt.Sprintf("%d of %d events were delivered", got, count)
		}
		return ""
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	require.Len(t, c.delivered[name], count, "events were delivered twice")
	require.True(t, slices.IsSorted(c.delivered[name]), "events of one lane were delivered out of order")
}

// line reads the succession of a name.
func (c *crew) line(t *testing.T, name dispatch.Name) []succession.Execution {
	t.Helper()
	id, err := dispatch.ID(name.Project, name.TaskQueue)
	require.NoError(t, err)
	line := succession.Read(t, c.client, id)
	succession.Judge(t, line)
	return line
}

// brittle is a store of leases that a test can freeze, and in which it can do something between two calls.
type brittle struct {
	lease.Store

	mu     sync.Mutex
	frozen chan struct{} // closed when it is thawed; nil while it is not frozen
	read   func(call string)
}

func newBrittle(s lease.Store) *brittle { return &brittle{Store: s} }

func (b *brittle) freeze() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.frozen == nil {
		b.frozen = make(chan struct{})
	}
}

func (b *brittle) thaw() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.frozen != nil {
		close(b.frozen)
		b.frozen = nil
	}
}

// onRead has f called after each reading, with "list" and a prefix, or "get" and a key.
func (b *brittle) onRead(f func(call string)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.read = f
}

func (b *brittle) told(call string) {
	b.mu.Lock()
	read := b.read
	b.mu.Unlock()
	if read != nil {
		read(call)
	}
}

// wait returns when the store is not frozen. A frozen process does not notice that its time is over before it is thawed.
func (b *brittle) wait() {
	b.mu.Lock()
	frozen := b.frozen
	b.mu.Unlock()
	if frozen != nil {
		<-frozen
	}
}

// Acquire implements lease.Store.
func (b *brittle) Acquire(ctx context.Context, key, holder string, value []byte, terms lease.Terms) (lease.Entry, *lease.Entry, error) {
	b.wait()
	return b.Store.Acquire(ctx, key, holder, value, terms)
}

// Renew implements lease.Store.
func (b *brittle) Renew(ctx context.Context, key, token string, value []byte, terms lease.Terms) (lease.Entry, error) {
	b.wait()
	return b.Store.Renew(ctx, key, token, value, terms)
}

// Resign implements lease.Store.
func (b *brittle) Resign(ctx context.Context, key, token string) error {
	b.wait()
	return b.Store.Resign(ctx, key, token)
}

// Delete implements lease.Store.
func (b *brittle) Delete(ctx context.Context, key, token string, revision int64) error {
	b.wait()
	return b.Store.Delete(ctx, key, token, revision)
}

// Get implements lease.Store.
func (b *brittle) Get(ctx context.Context, key string) (lease.Entry, error) {
	b.wait()
	defer b.told("get " + key)
	return b.Store.Get(ctx, key)
}

// List implements lease.Store.
func (b *brittle) List(ctx context.Context, prefix string) iter.Seq2[lease.Entry, error] {
	return func(yield func(lease.Entry, error) bool) {
		b.wait()
		b.Store.List(ctx, prefix)(yield)
		b.told("list " + prefix)
	}
}
