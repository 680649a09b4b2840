package platform

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
)

// T is what the kit needs of a test. *testing.T is one; a [Scope] is one for programs and for what tests share.
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

// Scope is a T outside of tests. Its failures panic with a [Failure]; Close runs what it has to clean up.
type Scope struct {
	ctx     context.Context
	cancel  context.CancelFunc
	name    string
	mu      sync.Mutex
	cleanup []func()
	failed  bool
}

// Failure is what a Scope panics with.
type Failure struct{ Message string }

func (f Failure) Error() string { return f.Message }

// NewScope makes a scope that lives until Close.
func NewScope(ctx context.Context, name string) *Scope {
	ctx, cancel := context.WithCancel(ctx)
	return &Scope{ctx: ctx, cancel: cancel, name: name}
}

// Close runs the clean-ups, last first.
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
	s.Cleanup(func() { _ = os.RemoveAll(dir) }) // what is left is in the system's temporary folder
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

// Suite holds what the tests of one package share. Make one in TestMain.
type Suite struct{ scope *Scope }

// Main runs the tests of a package and then ends what they shared. Its result is the exit code.
func Main(m *testing.M, use func(*Suite)) int {
	scope := NewScope(context.Background(), "shared by all tests")
	defer scope.Close()
	use(&Suite{scope: scope})
	return m.Run()
}

// Shared is a value that the first test to ask for it makes, and that all tests of the package share.
type Shared[V any] struct{ get func() (V, error) }

// Share tells how to make a value when it is first wanted.
func Share[V any](s *Suite, build func(T) V) *Shared[V] {
	return &Shared[V]{get: sync.OnceValues(func() (v V, err error) {
		err = Try(func() { v = build(s.scope) })
		return v, err
	})}
}

// Try calls f and returns the failure of a [Scope] that ended it, if one did. A goroutine that may fail so needs its own.
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

// Get returns the value. Where it could not be made every test that asks fails with the same message.
func (s *Shared[V]) Get(t T) V {
	t.Helper()
	v, err := s.get()
	if err != nil {
		t.Fatalf("%v", err)
	}
	return v
}
