package worker_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/processor"
	"github.com/signalbox-dev/signalbox/internal/worker"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// book is a store in memory, whose clock is that of the synctest bubble.
type book struct {
	mu      sync.Mutex
	workers map[string]worker.Worker
	order   []string
	beats   int
	asked   int
	forget  time.Duration
	away    error
	slow    chan struct{}
}

func newBook() *book { return &book{workers: map[string]worker.Worker{}} }

func (b *book) BeatWorker(_ context.Context, w worker.Worker, forget time.Duration) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.beats++
	if b.away != nil {
		return b.away
	}
	if _, known := b.workers[w.ServerID]; !known {
		b.order = append(b.order, w.ServerID)
	}
	w.BeatAt, b.forget = time.Now(), forget
	b.workers[w.ServerID] = w
	return nil
}

func (b *book) LeaveWorker(_ context.Context, id string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.workers, id)
	return b.away
}

func (b *book) ListWorkers(ctx context.Context, within time.Duration, _ int) (list []worker.Worker, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked++
	if b.slow != nil {
		b.mu.Unlock()
		select {
		case <-b.slow:
		case <-ctx.Done():
		}
		b.mu.Lock()
	}
	for _, id := range b.order {
		if w, ok := b.workers[id]; ok && time.Since(w.BeatAt) <= within {
			list = append(list, w)
		}
	}
	return list, errors.Join(b.away, ctx.Err())
}

func (b *book) put(t *testing.T, id string, f worker.Fingerprint) {
	require.NoError(t, b.BeatWorker(t.Context(), worker.Worker{ServerID: id, Fingerprint: f}, time.Hour))
}

func made(contract, address, id string) worker.Fingerprint {
	return worker.Fingerprint{Contract: contract, Address: address, Namespace: "default", NamespaceID: id}
}

func TestDiffers(t *testing.T) {
	t.Parallel()
	own := made("a", "10.0.0.1:7233", "n1")
	tests := map[string]struct {
		other   worker.Fingerprint
		differs bool
	}{
		"the same":                    {own, false},
		"another name of the cluster": {made("a", "temporal:7233", "n1"), false},
		"another contract":            {made("b", "10.0.0.1:7233", "n1"), true},
		"another namespace":           {made("a", "10.0.0.1:7233", "n2"), true},
		"not connected yet":           {made("a", "elsewhere:7233", ""), false},
		"another contract, not yet":   {made("b", "10.0.0.1:7233", ""), true},
	}
	for name, tt := range tests {
		require.Equal(t, tt.differs, own.Differs(tt.other), name)
		require.Equal(t, tt.differs, tt.other.Differs(own), name)
	}
}

// check does what the start of a run does.
func check(ctx context.Context, r *worker.Registry, project string) error {
	live, _ := r.Live(ctx)
	return r.Check(project, live)
}

func TestCheck(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBook()
		own := made("a", "10.0.0.1:7233", "n1")
		r := worker.NewRegistry(b, func() worker.Fingerprint { return own })
		require.NoError(t, check(t.Context(), r, "shop"), "without live workers runs are accepted: one may start later")
		b.put(t, "old", made("b", "10.0.0.2:7233", "n2"))
		err := check(t.Context(), r, "shop")
		f, ok := apperror.From(err)
		require.True(t, ok)
		require.Equal(t, []any{apperror.Refused, apperror.ContractMismatch}, []any{f.Class, f.Reason})
		for _, part := range []string{
			"contract a", "10.0.0.1:7233", "n1", "worker old", "contract b", "10.0.0.2:7233", "n2"} {
			require.Contains(t, err.Error(), part)
		}
		for _, id := range []string{"old 2", "old 3", "old 4", "old 5"} {
			b.put(t, id, made("b", "", ""))
		}
		<-time.After(time.Second)
		require.ErrorContains(t, check(t.Context(), r, "shop"), "2 more differ")
		b.put(t, "new", own)
		<-time.After(time.Second)
		require.NoError(t, check(t.Context(), r, "shop"), "one matching worker is enough")
		require.NoError(t, b.LeaveWorker(t.Context(), "new"))
		<-time.After(time.Second)
		require.Error(t, check(t.Context(), r, "shop"))
		<-time.After(worker.AliveFor)
		require.NoError(t, check(t.Context(), r, "shop"), "the others have expired")
	})
}

func TestProjectWithoutLiveWorkerIsRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBook()
		own, other := made("a", "10.0.0.1:7233", "n1"), made("b", "10.0.0.2:7233", "n2")
		r := worker.NewRegistry(b, func() worker.Fingerprint { return own })
		put := func(id string, f worker.Fingerprint, projects ...string) {
			require.NoError(t, b.BeatWorker(t.Context(), worker.Worker{ServerID: id, Fingerprint: f, Projects: projects},
				time.Hour))
			<-time.After(time.Second)
		}
		put("w1", own, "default", "office")
		put("w2", other, "shop")
		require.NoError(t, check(t.Context(), r, "default"))
		err := check(t.Context(), r, "shop")
		f, ok := apperror.From(err)
		require.True(t, ok, "%v", err)
		require.Equal(t, []any{apperror.Unavailable, apperror.NoWorkerForProject}, []any{f.Class, f.Reason})
		require.Positive(t, f.RetryAfter)
		for _, part := range []string{`"shop"`, "w1", "default, office"} {
			require.Contains(t, err.Error(), part)
		}
		require.NotContains(t, err.Error(), "w2", "w2 uses another Temporal")
		put("w3", own)
		require.NoError(t, check(t.Context(), r, "shop"), "a worker without projects serves all")
		<-time.After(worker.AliveFor)
		require.NoError(t, check(t.Context(), r, "shop"), "none is alive: one may start later")
	})
}

func TestCheckReadsStoreOnceASecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBook()
		b.put(t, "one", made("a", "", ""))
		r := worker.NewRegistry(b, func() worker.Fingerprint { return made("a", "", "") })
		for range 50 {
			require.NoError(t, check(t.Context(), r, "shop"))
			<-time.After(100 * time.Millisecond)
		}
		require.Equal(t, 5, b.asked)
	})
}

// Without live workers, any run is accepted. As soon as one is alive, a run in a project that it does not serve is
// refused.
func TestFirstWorkerCountsAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, own := newBook(), made("c1", "t:7233", "n1")
		r := worker.NewRegistry(b, func() worker.Fingerprint { return own })
		require.NoError(t, check(t.Context(), r, "side"))
		require.NoError(t, b.BeatWorker(t.Context(),
			worker.Worker{ServerID: "w", Projects: []string{"main"}, Fingerprint: own}, time.Hour))
		require.True(t, apperror.Is(check(t.Context(), r, "side"), apperror.NoWorkerForProject))
	})
}

// An unavailable or slow store causes no refusal, and only the caller that queries it waits.
func TestUnavailableStoreRefusesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBook()
		r := worker.NewRegistry(b, func() worker.Fingerprint { return made("a", "", "") })
		b.put(t, "old", made("b", "", ""))
		require.Error(t, check(t.Context(), r, "shop"))
		b.away = errors.New("away")
		<-time.After(time.Second)
		require.NoError(t, check(t.Context(), r, "shop"))
		b.away = nil
		<-time.After(time.Second)
		b.put(t, "old", made("b", "", ""))
		b.slow = make(chan struct{})
		begun := time.Now()
		asked := make(chan error)
		go func() { asked <- check(t.Context(), r, "shop") }()
		synctest.Wait()
		require.NoError(t, check(t.Context(), r, "shop"))
		require.Zero(t, time.Since(begun))
		require.NoError(t, <-asked)
		require.Equal(t, time.Second, time.Since(begun))

		// A caller that cancels its query does not change the result of others.
		close(b.slow)
		<-time.After(time.Second)
		gone, leave := context.WithCancel(t.Context())
		leave()
		require.Error(t, check(gone, r, "shop"))
	})
}

func TestHeartbeat(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBook()
		id := ""
		share := 0.24
		h := worker.NewHeartbeat(b, "host-1", []string{"shop"}, worker.Sources{
			Fingerprint: func() worker.Fingerprint {
				b.mu.Lock()
				defer b.mu.Unlock()
				return made("a", "", id)
			},
			Busy:      func() []worker.Busy { return []worker.Busy{{Project: "shop", Activities: time.Unix(9, 0)}} },
			Processor: func() processor.State { return processor.State{Used: &share} },
		})
		require.NoError(t, h.Start(t.Context()))
		synctest.Wait()
		w := b.workers["host-1"]
		require.Equal(t, []any{[]string{"shop"}, time.Now(), "", 24 * time.Hour},
			[]any{w.Projects, w.StartedAt, w.Fingerprint.NamespaceID, b.forget})
		require.Equal(t, worker.Busy{Project: "shop", Activities: time.Unix(9, 0)}, w.BusyWith("shop"))
		require.Zero(t, w.BusyWith("bank"))
		require.Equal(t, &share, w.Processor.Used)
		b.mu.Lock()
		id, b.away = "n1", errors.New("away")
		b.mu.Unlock()
		<-time.After(worker.BeatEvery)
		synctest.Wait()
		b.mu.Lock()
		b.away = nil
		b.mu.Unlock()
		<-time.After(worker.BeatEvery)
		synctest.Wait()
		require.Equal(t, 3, b.beats)
		require.Equal(t, []any{"n1", time.Now()},
			[]any{b.workers["host-1"].Fingerprint.NamespaceID, b.workers["host-1"].BeatAt})
		b.mu.Lock()
		id = "n2"
		b.mu.Unlock()
		h.Wake()
		synctest.Wait()
		require.Equal(t, "n2", b.workers["host-1"].Fingerprint.NamespaceID, "a change is written at once")
		require.NoError(t, h.Stop(t.Context()))
		require.Empty(t, b.workers)
	})
}

func TestOnlyStoppedWorkersHaveLeft(t *testing.T) {
	t.Parallel()
	b := newBook()
	b.put(t, "killed", made("c1", "a:7233", ""))
	b.put(t, "stopped", made("c1", "a:7233", ""))
	require.NoError(t, b.LeaveWorker(t.Context(), "stopped"))
	left, err := worker.Left(t.Context(), b, []string{"killed", "stopped"})
	require.NoError(t, err)
	require.Equal(t, []string{"stopped"}, left)
	b.away = errors.New("away")
	_, err = worker.Left(t.Context(), b, []string{"killed"})
	require.Error(t, err)
}
