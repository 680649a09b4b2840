package leasetest_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/signalbox-dev/signalbox/lease"
	"github.com/signalbox-dev/signalbox/lease/leasetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// witness is a test that notes its failure and nothing more.
type witness struct {
	testing.TB

	mu     sync.Mutex
	failed []string
}

func (w *witness) Helper() {}

func (w *witness) Errorf(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failed = append(w.failed, fmt.Sprintf(format, args...))
}

func (w *witness) FailNow() { runtime.Goexit() }

// fails tells how a check fails; not at all if there is nothing.
func fails(t *testing.T, check leasetest.Check, store lease.Store) []string {
	t.Helper()
	w := &witness{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		check.Run(w, store)
	}()
	<-done
	return w.failed
}

// checks are those that need no second, without the one by a history.
func checks() []leasetest.Check {
	return slices.DeleteFunc(leasetest.Checks(), func(c leasetest.Check) bool {
		return c.Name == "a history of many clients is in order" || c.Name == "entries outlive their leases"
	})
}

func TestChecksFindDefects(t *testing.T) {
	t.Parallel()
	for name, defect := range defects() {
		if defect.timed {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, check := range checks() {
				if failures := fails(t, check, defect.store()); len(failures) > 0 {
					t.Logf("%s: %s", check.Name, failures[0])
					return
				}
			}
			require.Fail(t, "no check finds it")
		})
	}
}

var load = leasetest.Load{Keys: 3, Clients: 6, Calls: 250}

func TestHistoriesProveDefects(t *testing.T) {
	t.Parallel()
	for name, defect := range defects() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var problems []string
			for seed := range uint64(100) { // some need luck, and more of it on a busy machine
				load := load
				load.Seed = seed
				problems = leasetest.Judge(leasetest.Explore(t.Context(), defect.store(), load))
				if slices.ContainsFunc(problems, func(p string) bool { return strings.HasPrefix(p, defect.proves) }) {
					return
				}
			}
			require.Fail(t, "not proven: "+defect.proves, strings.Join(problems, "\n"))
		})
	}
}

// lossy carries out what it is asked for, and loses every third answer.
type lossy struct {
	*lease.Memory

	asked atomic.Int64
}

var errAway = errors.New("no answer")

func (l *lossy) lost() bool { return l.asked.Add(1)%3 == 0 }

func (l *lossy) Acquire(ctx context.Context, key, holder string, value []byte, terms lease.Terms) (lease.Entry, *lease.Entry, error) {
	got, before, err := l.Memory.Acquire(ctx, key, holder, value, terms)
	if l.lost() {
		return lease.Entry{Key: key, Holder: holder, Token: cmp.Or(got.Token, "refused")}, nil, errAway
	}
	return got, before, err
}

func (l *lossy) Renew(ctx context.Context, key, token string, value []byte, terms lease.Terms) (lease.Entry, error) {
	got, err := l.Memory.Renew(ctx, key, token, value, terms)
	if l.lost() {
		return lease.Entry{}, errAway
	}
	return got, err
}

func (l *lossy) Resign(ctx context.Context, key, token string) error {
	err := l.Memory.Resign(ctx, key, token)
	if l.lost() {
		return errAway
	}
	return err
}

func (l *lossy) Delete(ctx context.Context, key, token string, revision int64) error {
	err := l.Memory.Delete(ctx, key, token, revision)
	if l.lost() {
		return errAway
	}
	return err
}

// TestLostAnswersAreNoDefect: whoever does not know the outcome accuses nobody.
func TestLostAnswersAreNoDefect(t *testing.T) {
	t.Parallel()
	for seed := range uint64(10) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			load := load
			load.Seed = seed
			require.Empty(t, leasetest.Judge(leasetest.Explore(t.Context(), &lossy{Memory: lease.NewMemory()}, load)))
		})
	}
}
