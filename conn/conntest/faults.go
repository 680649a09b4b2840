package conntest

import (
	"context"
	"crypto/tls"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"go.temporal.io/api/serviceerror"
	"google.golang.org/grpc/metadata"

	"github.com/signalbox-dev/signalbox/conn/conntest/internal/wire"
)

// Direction is one way of the connections.
type Direction = wire.Direction

const (
	// ToServer is what clients send.
	ToServer = wire.ToServer
	// ToClient is what the frontend answers.
	ToClient = wire.ToClient
)

// Stop resets all connections and refuses new ones, as the port of a process that was killed. The port stays reserved for Restart.
func (f *Frontend) Stop() { f.port.Stop() }

// Restart takes connections again, on the same port. It does nothing on a frontend that was not stopped.
func (f *Frontend) Restart() error { return f.port.Listen() }

// CutConnections resets all connections; clients may connect again at once.
func (f *Frontend) CutConnections() { f.port.Cut() }

// Freeze lets not a byte pass in either direction, as a process stopped by SIGSTOP: connections stay, and the kernel accepts new
// ones. A frozen frontend does not notice that clients leave.
func (f *Frontend) Freeze() { f.port.Freeze(true) }

// Thaw ends Freeze: everything goes on where it stopped.
func (f *Frontend) Thaw() { f.port.Freeze(false) }

// Blackhole drops what is sent in a direction, on old connections and new ones, as a broken route does: with ToServer calls never
// arrive, with ToClient they are carried out and their answers never arrive.
func (f *Frontend) Blackhole(d Direction) { f.port.Hold(d) }

// Restore ends Blackhole in both directions. TCP sends again what did not get through, so the connections go on.
func (f *Frontend) Restore() { f.port.Release(ToServer | ToClient) }

// Forget makes all connections there are silent for ever, without any reset, as when a NAT has dropped their entries. Neither Stop
// nor CutConnections reaches their clients any more. New connections work.
func (f *Frontend) Forget() { f.port.Lose() }

// Mute accepts connections to come and says nothing on them for ever, as a port that speaks another protocol. Old ones go on.
func (f *Frontend) Mute() { f.port.Mute(true) }

// Unmute makes connections to come normal ones. Those accepted before stay silent.
func (f *Frontend) Unmute() { f.port.Mute(false) }

// GoAway asks all connections to end, as a frontend does with connections of five minutes' age: calls in flight go on to their
// ends, and clients connect again for new ones. It does not wait for that. A connection in the middle of its handshake delays it.
func (f *Frontend) GoAway() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.server != nil {
		f.tasks.Go(f.serve().GracefulStop)
	}
}

// Flap stops the frontend for a while and restarts it for a while, that many times. It leaves the frontend running, also when the
// context ends before.
func (f *Frontend) Flap(ctx context.Context, up, down time.Duration, times int) error {
	for range times {
		f.Stop()
		ended := pause(ctx, down)
		if err := f.Restart(); err != nil {
			return err
		}
		if ended != nil {
			return ended
		}
		if err := pause(ctx, up); err != nil {
			return err
		}
	}
	return nil
}

// Slow delays each answer, errors and empty polls as well, by d; 0 undoes it, also for answers that are being delayed.
func (f *Frontend) Slow(d time.Duration) {
	f.faults.mu.Lock()
	f.faults.slow = d
	f.faults.mu.Unlock()
	f.faults.changes.fire()
}

// Fail answers calls of a method with an error until Clear; the newest of several that fit wins. A method is named as in
// "DescribeNamespace" or in full as in "/grpc.health.v1.Health/Check"; "" is all of them. Calls that have arrived, such as polls,
// are not affected. A nil error carries them out: it excepts a method from an earlier rule for all.
//
// Errors of package serviceerror arrive with all their details, as from a real server, for example
// serviceerror.NewResourceExhausted; those of package status arrive as they are; others are of code Unknown.
func (f *Frontend) Fail(method string, err error) { f.faults.add(&failure{method, err, forever}) }

// FailNext is Fail for the next n calls.
func (f *Frontend) FailNext(n int, method string, err error) { f.faults.add(&failure{method, err, n}) }

// Clear ends Fail and FailNext for the methods as they were named there, or for all if none is given.
func (f *Frontend) Clear(methods ...string) {
	f.faults.mu.Lock()
	defer f.faults.mu.Unlock()
	f.faults.failures = slices.DeleteFunc(f.faults.failures, func(rule *failure) bool {
		return len(methods) == 0 || slices.Contains(methods, rule.method)
	})
}

// Stall leaves the calls of these methods without an answer, as a server whose persistence hangs, and answers all others. Methods are named
// as for Fail. Each call replaces the methods of the one before.
func (f *Frontend) Stall(methods ...string) {
	f.faults.mu.Lock()
	f.faults.stalled = slices.Clone(methods)
	f.faults.mu.Unlock()
	f.faults.changes.fire()
}

// Unstall ends Stall: the calls that wait are carried out, unless their callers have gone.
func (f *Frontend) Unstall() { f.Stall() }

// SetAPIKeys lets calls in only with one of these keys as their bearer token; without any key, all are let in. Others are refused
// as Temporal Cloud does, with PermissionDenied. The gRPC health check needs no key.
func (f *Frontend) SetAPIKeys(keys ...string) {
	f.faults.mu.Lock()
	defer f.faults.mu.Unlock()
	f.faults.keys = slices.Clone(keys)
}

// SetTLS changes what is spoken on connections to come; nil is clear text. Old connections go on: see CutConnections and GoAway.
func (f *Frontend) SetTLS(config *tls.Config) { f.tls.Store(config) }

// faults are those of calls; those of bytes are the port's.
type faults struct {
	changes signal

	mu       sync.Mutex
	slow     time.Duration
	failures []*failure
	stalled  []string
	keys     []string
}

// failure is a rule: which calls to answer with an error, and how many of them.
type failure struct {
	method string
	err    error
	left   int
}

const forever = -1

func (r *failure) fits(method string) bool {
	return r.left != 0 && (r.method == "" || r.method == method || r.method == path.Base(method))
}

func (s *faults) add(rule *failure) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failures = append(s.failures, rule)
}

// refuse tells what a call is to be answered with instead of being carried out, if anything.
func (s *faults) refuse(ctx context.Context, method string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, rule := range slices.Backward(s.failures) {
		if rule.fits(method) {
			if rule.left != forever {
				rule.left--
			}
			return rule.err
		}
	}
	if len(s.keys) > 0 && !strings.HasPrefix(method, healthService) && !slices.Contains(s.keys, bearer(ctx)) {
		return serviceerror.NewPermissionDenied("Request unauthorized.", "")
	}
	return nil
}

// wait returns when calls of the method are answered, or why the context ended before.
func (s *faults) wait(ctx context.Context, method string) error {
	for {
		changed := s.changes.next()
		s.mu.Lock()
		stalled := slices.Contains(s.stalled, method) || slices.Contains(s.stalled, path.Base(method))
		s.mu.Unlock()
		if !stalled {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// bearer is the token of a call.
func bearer(ctx context.Context) string {
	header, _ := metadata.FromIncomingContext(ctx)
	for _, value := range header.Get("authorization") {
		if token, ok := strings.CutPrefix(value, "Bearer "); ok {
			return token
		}
	}
	return ""
}

// delay waits as long as answers are slow, counted from its beginning.
func (s *faults) delay(ctx context.Context) {
	begin := time.Now()
	for {
		changed := s.changes.next()
		s.mu.Lock()
		left := s.slow - time.Since(begin)
		s.mu.Unlock()
		if left <= 0 {
			return
		}
		timer := time.NewTimer(left)
		select {
		case <-timer.C:
		case <-changed:
		case <-ctx.Done():
		}
		timer.Stop()
		if ctx.Err() != nil {
			return
		}
	}
}
