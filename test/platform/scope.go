package platform

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
)

// T is the part of *testing.T that this package uses. A [Scope] implements it for programs and for values that tests
// share.
type T interface {
	Helper()
	Name() string
	Context() context.Context
	Cleanup(f func())
	TempDir() string
	Failed() bool
	Logf(format string, args ...any)
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	FailNow()
}

// Scope is a T outside of tests. Its failures panic with a [Failure]; Close runs its clean-ups.
type Scope struct {
	ctx     context.Context
	cancel  context.CancelFunc
	name    string
	mu      sync.Mutex
	cleanup []func()
	failed  bool
}

// Failure is the value that a Scope panics with.
type Failure struct{ Message string }

func (f Failure) Error() string { return f.Message }

// NewScope makes a scope that lives until Close.
func NewScope(ctx context.Context, name string) *Scope {
	ctx, cancel := context.WithCancel(ctx)
	return &Scope{ctx: ctx, cancel: cancel, name: name}
}

// Close runs the clean-ups, last one first.
func (s *Scope) Close() {
	s.cancel()
	for {
		s.mu.Lock()
		if len(s.cleanup) == 0 {
			s.mu.Unlock()
			return
		}
		last := s.cleanup[len(s.cleanup)-1]
		s.cleanup = s.cleanup[:len(s.cleanup)-1]
		s.mu.Unlock()
		last()
	}
}

// Helper implements T.
func (*Scope) Helper() {}

// Name implements T.
func (s *Scope) Name() string { return s.name }

// Context implements T. It ends with Close.
func (s *Scope) Context() context.Context { return s.ctx }

// Cleanup implements T.
func (s *Scope) Cleanup(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cleanup = append(s.cleanup, f)
}

// TempDir implements T.
func (s *Scope) TempDir() string {
	dir, err := os.MkdirTemp("", "signalbox-test-")
	if err != nil {
		s.Fatalf("make a temporary folder: %v", err)
	}
	s.Cleanup(func() { _ = os.RemoveAll(dir) }) // what remains is in the system's temporary folder
	return dir
}

// Failed implements T.
func (s *Scope) Failed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed
}

// Logf implements T.
func (*Scope) Logf(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }

// Errorf implements T.
func (s *Scope) Errorf(format string, args ...any) {
	s.mu.Lock()
	s.failed = true
	s.mu.Unlock()
	s.Logf(format, args...)
}

// Fatalf implements T.
func (s *Scope) Fatalf(format string, args ...any) {
	s.mu.Lock()
	s.failed = true
	s.mu.Unlock()
	panic(Failure{Message: fmt.Sprintf(format, args...)})
}

// FailNow implements T.
func (s *Scope) FailNow() { s.Fatalf("%s failed", s.name) }

// Suite holds the values that the tests of one package share. TestMain makes one with [Main].
type Suite struct{ scope *Scope }

// Main runs the tests of a package and then releases the shared values. It returns the exit code.
func Main(m *testing.M, use func(*Suite)) int {
	if reason := cannotThrottle(); reason != "" {
		fmt.Fprintf(os.Stderr, "%s is set, and no server can be limited here: %s; no test runs\n", processorsVariable, reason)
		return 0
	}
	scope := NewScope(context.Background(), "shared by all tests")
	defer scope.Close()
	use(&Suite{scope: scope})
	return m.Run()
}

// Shared is a value that is made on first use and shared by all tests of the package.
type Shared[V any] struct{ get func() (V, error) }

// Share returns a shared value that build makes on first use.
func Share[V any](s *Suite, build func(T) V) *Shared[V] {
	return &Shared[V]{get: sync.OnceValues(func() (v V, err error) {
		err = Try(func() { v = build(s.scope) })
		return v, err
	})}
}

// Try calls f and returns the [Failure] that f panicked with, if any. A goroutine that uses a [Scope] needs its own
// Try.
func Try(f func()) (err error) {
	defer func() {
		if p := recover(); p != nil {
			failure, ok := p.(Failure)
			if !ok {
				panic(p)
			}
			err = failure
		}
	}()
	f()
	return nil
}

// Get returns the value. If it could not be made, every test that needs it fails with the same message.
func (s *Shared[V]) Get(t T) V {
	t.Helper()
	v, err := s.get()
	if err != nil {
		t.Fatalf("%v", err)
	}
	return v
}
