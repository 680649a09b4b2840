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

// Direction is a direction of the connections.
type Direction = wire.Direction

const (
	// ToServer is what clients send.
	ToServer = wire.ToServer
	// ToClient is what the frontend sends.
	ToClient = wire.ToClient
)

// Stop resets all connections and refuses new ones, like the port of a process that was killed. The port stays reserved
// for Restart.
func (f *Frontend) Stop() { f.port.Stop() }

// Restart accepts connections again, on the same port. It does nothing on a frontend that was not stopped.
func (f *Frontend) Restart() error { return f.port.Listen() }

// CutConnections resets all connections; clients may connect again at once.
func (f *Frontend) CutConnections() { f.port.Cut() }

// Freeze lets no byte pass in either direction, like a process stopped by SIGSTOP: connections stay, and the kernel
// accepts new ones. A frozen frontend does not notice that clients disconnect.
func (f *Frontend) Freeze() { f.port.Freeze(true) }

// Thaw ends Freeze: all connections continue where they stopped.
func (f *Frontend) Thaw() { f.port.Freeze(false) }

// Blackhole drops what is sent in a direction, on open and new connections, like a broken route: with ToServer calls
// never arrive, with ToClient they are executed and their answers never arrive.
func (f *Frontend) Blackhole(d Direction) { f.port.Block(d) }

// Restore ends Blackhole in both directions. TCP sends again what did not arrive, so the connections continue.
func (f *Frontend) Restore() { f.port.Unblock(ToServer | ToClient) }

// LoseConnections makes all open connections silent forever, without a reset, as when a NAT has dropped their entries.
// Stop and CutConnections no longer affect them. New connections work.
func (f *Frontend) LoseConnections() { f.port.Lose() }

// Mute accepts future connections and never sends anything on them, like a port of another protocol. Open connections
// are not affected.
func (f *Frontend) Mute() { f.port.Mute(true) }

// Unmute ends Mute for future connections. Those accepted before stay silent.
func (f *Frontend) Unmute() { f.port.Mute(false) }

// GoAway asks all connections to end, as a frontend does with connections after five minutes: calls in flight finish,
// and clients connect again for new calls. GoAway does not wait for that. A connection in its handshake delays the end
// of the old server.
func (f *Frontend) GoAway() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.server != nil {
		f.tasks.Go(f.serve().GracefulStop)
	}
}

// Flap stops the frontend for the duration down and restarts it for the duration up, as often as times. It leaves the
// frontend running, also if the context ends first.
func (f *Frontend) Flap(ctx context.Context, up, down time.Duration, times int) error {
	for range times {
		f.Stop()
		ended := sleep(ctx, down)
		if err := f.Restart(); err != nil {
			return err
		}
		if ended != nil {
			return ended
		}
		if err := sleep(ctx, up); err != nil {
			return err
		}
	}
	return nil
}

// Slow delays each answer by d, including errors and empty polls. Slow(0) undoes it, also for answers that are being
// delayed.
func (f *Frontend) Slow(d time.Duration) {
	f.faults.mu.Lock()
	f.faults.slow = d
	f.faults.mu.Unlock()
	f.faults.changes.fire()
}

// Fail answers calls of a method with an error until Clear. Of several rules that match, the newest applies. A method
// is named as in "DescribeNamespace" or in full as in "/grpc.health.v1.Health/Check"; "" is all methods. Calls that
// have already arrived, such as polls, are not affected. With a nil error calls are executed: this exempts a method
// from an earlier rule for all.
//
// Errors of package serviceerror, for example serviceerror.NewResourceExhausted, arrive with all their details, as from
// a real server; those of package status arrive as they are; others have code Unknown.
func (f *Frontend) Fail(method string, err error) { f.faults.add(&errorRule{method, err, forever}) }

// FailNext is Fail for the next n calls.
func (f *Frontend) FailNext(n int, method string, err error) {
	f.faults.add(&errorRule{method, err, n})
}

// Clear ends Fail and FailNext for the methods as they were named there, or for all if none is given.
func (f *Frontend) Clear(methods ...string) {
	f.faults.mu.Lock()
	defer f.faults.mu.Unlock()
	f.faults.failures = slices.DeleteFunc(f.faults.failures, func(rule *errorRule) bool {
		return len(methods) == 0 || slices.Contains(methods, rule.method)
	})
}

// Stall leaves the calls of these methods without an answer, like a server with persistence that hangs, and answers all
// others. Methods are named as for Fail. Each call replaces the methods of the previous one.
func (f *Frontend) Stall(methods ...string) {
	f.faults.mu.Lock()
	f.faults.stalled = slices.Clone(methods)
	f.faults.mu.Unlock()
	f.faults.changes.fire()
}

// Unstall ends Stall: the calls that wait are executed, unless they were cancelled.
func (f *Frontend) Unstall() { f.Stall() }

// SetAPIKeys accepts only calls with one of these keys as their bearer token; without any key, all calls are accepted.
// Others are refused with PermissionDenied, as Temporal Cloud does. The gRPC health check requires no key.
func (f *Frontend) SetAPIKeys(keys ...string) {
	f.faults.mu.Lock()
	defer f.faults.mu.Unlock()
	f.faults.keys = slices.Clone(keys)
}

// SetTLS changes the TLS configuration of future connections; nil is clear text. Open connections are not affected: see
// CutConnections and GoAway.
func (f *Frontend) SetTLS(config *tls.Config) { f.tls.Store(config) }

// faults holds the faults of calls. The faults of connections are those of wire.Port.
type faults struct {
	changes broadcast

	mu       sync.Mutex
	slow     time.Duration
	failures []*errorRule
	stalled  []string
	keys     []string
}

// errorRule determines which calls are answered with an error, and how many.
type errorRule struct {
	method string
	err    error
	left   int
}

const forever = -1

func (r *errorRule) matches(method string) bool {
	return r.left != 0 && (r.method == "" || r.method == method || r.method == path.Base(method))
}

func (s *faults) add(rule *errorRule) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failures = append(s.failures, rule)
}

// errorFor returns the error with which a call is answered; nil: the call is executed.
func (s *faults) errorFor(ctx context.Context, method string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, rule := range slices.Backward(s.failures) {
		if rule.matches(method) {
			if rule.left != forever {
				rule.left--
			}
			return rule.err
		}
	}
	if len(s.keys) > 0 && !strings.HasPrefix(method, healthService) && !slices.Contains(s.keys, bearerToken(ctx)) {
		return serviceerror.NewPermissionDenied("Request unauthorized.", "")
	}
	return nil
}

// awaitUnstalled waits while calls of the method are stalled. If the context ends first, it returns the cause.
func (s *faults) awaitUnstalled(ctx context.Context, method string) error {
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

// bearerToken returns the bearer token of a call.
func bearerToken(ctx context.Context) string {
	header, _ := metadata.FromIncomingContext(ctx)
	for _, value := range header.Get("authorization") {
		if token, ok := strings.CutPrefix(value, "Bearer "); ok {
			return token
		}
	}
	return ""
}

// delay waits for the present delay of answers, counted from its call.
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
