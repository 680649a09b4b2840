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

// failureRecorder is a testing.TB that records failures.
type failureRecorder struct {
	testing.TB

	mu     sync.Mutex
	failed []string
}

func (w *failureRecorder) Helper() {}

func (w *failureRecorder) Errorf(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failed = append(w.failed, fmt.Sprintf(format, args...))
}

func (w *failureRecorder) FailNow() { runtime.Goexit() }

// fails returns the failures of a check.
func fails(t *testing.T, check leasetest.Check, store lease.Store) []string {
	t.Helper()
	w := &failureRecorder{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		check.Run(w, store)
	}()
	<-done
	return w.failed
}

// checks returns the checks that take less than a second, without the random history.
func checks() []leasetest.Check {
	return slices.DeleteFunc(leasetest.Checks(), func(c leasetest.Check) bool {
		return c.Name == "a random history is consistent" || c.Name == "entries outlive their leases"
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
			require.Fail(t, "no check finds the defect")
		})
	}
}

var load = leasetest.Load{Keys: 3, Clients: 6, Calls: 250}

func TestVerifyFindsDefects(t *testing.T) {
	t.Parallel()
	for name, defect := range defects() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var failures []string
			for seed := range uint64(100) { // some defects show only in some histories, and less often on a busy machine
				load := load
				load.Seed = seed
				failures = leasetest.Verify(leasetest.RunLoad(t.Context(), defect.store(), load))
				if slices.ContainsFunc(failures, func(p string) bool { return strings.HasPrefix(p, defect.want) }) {
					return
				}
			}
			require.Fail(t, "not found: "+defect.want, strings.Join(failures, "\n"))
		})
	}
}

// dropsAnswers executes every request and loses every third answer.
type dropsAnswers struct {
	*lease.Memory

	asked atomic.Int64
}

var errAway = errors.New("no answer")

func (l *dropsAnswers) lost() bool { return l.asked.Add(1)%3 == 0 }

func (l *dropsAnswers) Acquire(ctx context.Context, key, holder string, value []byte,
	terms lease.Lifetime) (lease.Entry, *lease.Entry, error) {
	got, before, err := l.Memory.Acquire(ctx, key, holder, value, terms)
	if l.lost() {
		return lease.Entry{Key: key, Holder: holder, Token: cmp.Or(got.Token, "refused")}, nil, errAway
	}
	return got, before, err
}

func (l *dropsAnswers) Renew(ctx context.Context, key, token string, value []byte,
	terms lease.Lifetime) (lease.Entry, error) {
	got, err := l.Memory.Renew(ctx, key, token, value, terms)
	if l.lost() {
		return lease.Entry{}, errAway
	}
	return got, err
}

func (l *dropsAnswers) Resign(ctx context.Context, key, token string) error {
	err := l.Memory.Resign(ctx, key, token)
	if l.lost() {
		return errAway
	}
	return err
}

func (l *dropsAnswers) Delete(ctx context.Context, key, token string, revision int64) error {
	err := l.Memory.Delete(ctx, key, token, revision)
	if l.lost() {
		return errAway
	}
	return err
}

// TestLostAnswersAreNoDefect verifies a history that contains calls with an unknown outcome.

func TestLostAnswersAreNoDefect(t *testing.T) {
	t.Parallel()
	for seed := range uint64(10) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			load := load
			load.Seed = seed
			require.Empty(t, leasetest.Verify(leasetest.RunLoad(t.Context(), &dropsAnswers{Memory: lease.NewMemory()}, load)))
		})
	}
}
