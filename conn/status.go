package conn

import (
	"fmt"
	"time"

	"github.com/signalbox-dev/signalbox/conn/internal/fsm"
	"github.com/signalbox-dev/signalbox/conn/internal/workers"
)

// State is the state of the connection. Requests may be sent while it is [Connected] or [Degraded].
type State = fsm.State

// The states.
const (
	Connecting State = fsm.Connecting // not connected since the start, and no attempt has failed yet
	Connected  State = fsm.Connected  // Temporal answers in time, and the workers poll
	Degraded   State = fsm.Degraded   // Temporal answers, but slowly, or does not serve requests, or a worker set does not poll
	Down       State = fsm.Down       // the connection cannot be used; the kind is the reason
	Closed     State = fsm.Closed     // the manager was stopped
)

// Kind is the reason why a connection is down or degraded.
type Kind = fsm.Kind

// The kinds.
const (
	None             Kind = fsm.None             // the connection is neither down nor degraded
	Unreachable      Kind = fsm.Unreachable      // down: no process listens at the address, or it is no Temporal frontend
	Hung             Kind = fsm.Hung             // down: connections are accepted, but requests are not answered in time
	NamespaceMissing Kind = fsm.NamespaceMissing // down: the server has no such namespace
	AuthFailed       Kind = fsm.AuthFailed       // down: the credentials are refused, or could not be read
	TLSError         Kind = fsm.TLSError         // down: the TLS handshake fails
	Slow             Kind = fsm.Slow             // degraded: three consecutive answers were slow
	Limited          Kind = fsm.Limited          // degraded: Temporal answers checks but does not serve most requests; LastError has the details
	NotPolling       Kind = fsm.NotPolling       // degraded: a worker set does not poll
)

// BreakerState is the state of the circuit breaker.
type BreakerState = fsm.BreakerState

// The breaker's states.
const (
	BreakerClosed   BreakerState = fsm.BreakerClosed   // attempts follow the back-off
	BreakerOpen     BreakerState = fsm.BreakerOpen     // attempts are rare
	BreakerHalfOpen BreakerState = fsm.BreakerHalfOpen // one attempt decides
)

// Breaker describes the circuit breaker.
type Breaker = fsm.Breaker

// Statistics count since [Manager.Start].
type Statistics = fsm.Statistics

// Status is a snapshot of a manager.
type Status struct {
	State State
	Kind  Kind
	// Since is when State or Kind last changed. While Down it is when the outage began, also if Kind has changed since: the time of its
	// first sign, which is that gRPC lost the connection, or the end of the first of the consecutive checks that failed. Statistics count
	// outages from there.
	Since time.Time
	// Address and Namespace are those of the current client. NamespaceID is Temporal's own ID of the namespace, empty before the first
	// connection.
	Address, Namespace, NamespaceID string
	// LastError is the last failure of a check or an attempt; it is kept after recovery.
	LastError   string
	LastErrorAt time.Time
	// Generation is the number of the current client; 0 before the first.
	Generation int
	// Latency is the duration of the last full check that was answered.
	Latency time.Duration
	// Attempts counts attempts to connect since the start.
	Attempts int64
	// NextAttempt is when the next attempt is due; zero if none is, or one is under way.
	NextAttempt time.Time
	Breaker     Breaker
	Statistics  Statistics
	// Workers are the worker sets, sorted by name.
	Workers []WorkerStatus
	// Draining is the number of replaced generations that have not finished yet.
	Draining int
}

// Ended is a connection, or an outage after a connection, that has ended. A connection ends when the outage after it begins.
type Ended struct {
	Address, Namespace string
	Lasted             time.Duration
}

// WorkerStatus is the status of one worker set.
type WorkerStatus = workers.Status

// DownError is the error of [Manager.Client], [Manager.Borrow] and [Manager.Await] while the connection is not up.
type DownError struct {
	State State
	Kind  Kind
	Since time.Time
	// Address and Namespace are those that the manager connects to.
	Address, Namespace string
	// NextAttempt is when the next attempt to connect is due; zero while one is under way, or none is due.
	NextAttempt time.Time
	// Cause is the last failure; nil if there was none.
	Cause error
}

// RetryAfter returns how long to wait before the next call: the time to the next attempt, at least 1 s and at most 30 s.
func (e *DownError) RetryAfter() time.Duration {
	return min(max(time.Until(e.NextAttempt), time.Second), backoffMax)
}

// Error returns the state and its cause in one line.
func (e *DownError) Error() string {
	text := fmt.Sprintf("temporal at %s (namespace %q) is %s", e.Address, e.Namespace, e.description())
	if e.Cause != nil {
		text += ": " + e.Cause.Error()
	}
	return text
}

// Unwrap returns the cause.
func (e *DownError) Unwrap() error { return e.Cause }

func (e *DownError) description() string {
	switch {
	case e.State == Closed:
		return "no longer used: the connection was closed"
	case e.State == Connecting:
		return "not connected yet"
	case e.Kind == NamespaceMissing:
		return "reachable, but has no such namespace"
	case e.Kind == AuthFailed:
		return "reachable, but refuses the credentials"
	case e.Kind == TLSError:
		return "reachable, but the TLS handshake fails"
	case e.Kind == Hung:
		return "hung: it accepts connections but does not answer"
	default:
		return "unreachable"
	}
}
