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
	"github.com/signalbox-dev/signalbox/internal/engine/codec"
	"github.com/signalbox-dev/signalbox/lease"
	"github.com/signalbox-dev/signalbox/lease/redislease"
	"github.com/signalbox-dev/signalbox/test/database"
	"github.com/signalbox-dev/signalbox/test/platform"
	"github.com/signalbox-dev/signalbox/test/succession"
)

// processGroup simulates several processes of a program that embeds the library and share a Temporal, a Redis and an
// inbox. The members run in the test's process; each has its own connections, which can be frozen or cut.
type processGroup struct {
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

// shortTiming has times short enough for a test.
func shortTiming() dispatch.Timing {
	return dispatch.Timing{
		TTL: 3 * time.Second, Renew: 700 * time.Millisecond, Margin: 500 * time.Millisecond,
		Heartbeat:  700 * time.Millisecond,
		StaleAfter: 4 * time.Second, Retention: time.Minute, Idle: time.Second, CheckEvery: time.Second,
	}
}

// newProcessGroup starts the shared services.
func newProcessGroup(t *testing.T) *processGroup {
	t.Helper()
	c := &processGroup{
		temporal: shared.Get(t), namespace: fmt.Sprintf("n%08x", rand.Uint32()), redis: database.StartRedis(t, t.Skip),
		prefix:    "group:",
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

// member simulates one process.
type member struct {
	*dispatch.Dispatchers

	id       string
	client   client.Client
	leases   *faultyLeaseStore
	frontend *conntest.Frontend
	idle     atomic.Bool // it reports that it does not poll
}

// startMember starts a member that serves the names.
func (c *processGroup) startMember(t *testing.T, names ...dispatch.Name) *member {
	t.Helper()
	return c.startServing(t, c.newMember(t), names...)
}

// startServing makes a member serve the names.
func (c *processGroup) startServing(t *testing.T, m *member, names ...dispatch.Name) *member {
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

// newMember makes a member that does not serve yet.
func (c *processGroup) newMember(t *testing.T) *member {
	t.Helper()
	m := &member{id: fmt.Sprintf("member-%08x", rand.Uint32())}
	store, err := redislease.Open(redislease.Options{URL: c.redis.URL(), Prefix: c.prefix})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	m.leases = newFaultyLeaseStore(store)
	m.frontend = conntest.Run(t, conntest.Options{Upstream: c.temporal.Address})
	m.client = platform.DialNamespace(t, m.frontend.Addr(), c.namespace)
	m.Dispatchers, err = dispatch.New(dispatch.Options{
		ServerID: m.id, Build: "test", Client: func() (client.Client, error) {
			return m.client, nil
		}, Namespace: c.namespace, Converter: codec.Converter(platform.Keys(t)),
		Polls:  func(dispatch.Name) bool { return !m.idle.Load() },
		Leases: m.leases, Inbox: c.inbox, Timing: shortTiming(),
		Supervisor: dispatch.SupervisorOptions{Interval: time.Minute, Confirm: 300 * time.Millisecond},
	})
	require.NoError(t, err)
	return m
}

// freeze blocks all connections of a member, as if its process were stopped.
func (m *member) freeze() {
	m.frontend.Freeze()
	m.leases.freeze()
}

// recover unblocks them.
func (m *member) recover() {
	m.leases.thaw()
	m.frontend.Thaw()
}

// owns reports whether a member believes that it owns a name.
func (m *member) owns(name dispatch.Name) bool {
	return slices.ContainsFunc(m.Owned(), func(o dispatch.Owned) bool { return o.Name == name })
}

// owner waits until one of the members owns a name, and Temporal agrees.
func (c *processGroup) owner(t *testing.T, name dispatch.Name, members ...*member) *member {
	t.Helper()
	id, err := dispatch.ID(name.Project, name.TaskQueue)
	require.NoError(t, err)
	var found *member
	platform.Eventually(t, soon, func() string {
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
		return fmt.Sprintf("%s has no owner", id)
	})
	return found
}

// publish adds events to the inbox, numbered from first, and rings the doorbell if no consumer listens.
func (c *processGroup) publish(t *testing.T, m *member, name dispatch.Name, first, count int) {
	t.Helper()
	wake := false
	for n := first; n < first+count; n++ {
		wake = c.inbox.Publish(name, "lane", n) || wake
	}
	if wake {
		platform.Eventually(t, soon, func() string {
			if err := m.Ring(t.Context(), name); err != nil {
				return err.Error()
			}
			return ""
		})
	}
}

// requireDelivered waits until the events from 0 on were delivered, and requires each once and in order.
func (c *processGroup) requireDelivered(t *testing.T, name dispatch.Name, count int) {
	t.Helper()
	platform.Eventually(t, soon, func() string {
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

// executions reads the executions of a name's dispatcher.
func (c *processGroup) executions(t *testing.T, name dispatch.Name) []succession.Execution {
	t.Helper()
	id, err := dispatch.ID(name.Project, name.TaskQueue)
	require.NoError(t, err)
	line := succession.Read(t, c.client, id)
	succession.Judge(t, line)
	return line
}

// faultyLeaseStore is a store of leases that a test can freeze, and that calls a function between two reads.
type faultyLeaseStore struct {
	lease.Store

	mu     sync.Mutex
	frozen chan struct{} // closed by thaw; nil while not frozen
	read   func(call string)
}

func newFaultyLeaseStore(s lease.Store) *faultyLeaseStore { return &faultyLeaseStore{Store: s} }

func (b *faultyLeaseStore) freeze() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.frozen == nil {
		b.frozen = make(chan struct{})
	}
}

func (b *faultyLeaseStore) thaw() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.frozen != nil {
		close(b.frozen)
		b.frozen = nil
	}
}

// onRead sets a function that is called after each read, with "list" and a prefix, or "get" and a key.
func (b *faultyLeaseStore) onRead(f func(call string)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.read = f
}

func (b *faultyLeaseStore) callOnRead(call string) {
	b.mu.Lock()
	read := b.read
	b.mu.Unlock()
	if read != nil {
		read(call)
	}
}

// wait blocks while the store is frozen, also after a context's deadline: a frozen process detects that only after it
// is thawed.
func (b *faultyLeaseStore) wait() {
	b.mu.Lock()
	frozen := b.frozen
	b.mu.Unlock()
	if frozen != nil {
		<-frozen
	}
}

// Acquire implements lease.Store.
func (b *faultyLeaseStore) Acquire(ctx context.Context, key, holder string, value []byte,
	lifetime lease.Lifetime) (lease.Entry, *lease.Entry, error) {
	b.wait()
	return b.Store.Acquire(ctx, key, holder, value, lifetime)
}

// Renew implements lease.Store.
func (b *faultyLeaseStore) Renew(ctx context.Context, key, token string, value []byte,
	lifetime lease.Lifetime) (lease.Entry, error) {
	b.wait()
	return b.Store.Renew(ctx, key, token, value, lifetime)
}

// Resign implements lease.Store.
func (b *faultyLeaseStore) Resign(ctx context.Context, key, token string) error {
	b.wait()
	return b.Store.Resign(ctx, key, token)
}

// Delete implements lease.Store.
func (b *faultyLeaseStore) Delete(ctx context.Context, key, token string, revision int64) error {
	b.wait()
	return b.Store.Delete(ctx, key, token, revision)
}

// Get implements lease.Store.
func (b *faultyLeaseStore) Get(ctx context.Context, key string) (lease.Entry, error) {
	b.wait()
	defer b.callOnRead("get " + key)
	return b.Store.Get(ctx, key)
}

// List implements lease.Store.
func (b *faultyLeaseStore) List(ctx context.Context, prefix string) iter.Seq2[lease.Entry, error] {
	return func(yield func(lease.Entry, error) bool) {
		b.wait()
		b.Store.List(ctx, prefix)(yield)
		b.callOnRead("list " + prefix)
	}
}
