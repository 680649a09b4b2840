package conn

import (
	"fmt"
	"time"

	"github.com/signalbox-dev/signalbox/conn/internal/machine"
	"github.com/signalbox-dev/signalbox/conn/internal/workerset"
)

// State is what the connection is good for. Requests may be sent while it is [Connected] or [Degraded].
type State = machine.State

// The states.
const (
	Connecting State = machine.Connecting // not connected since the start, and no attempt has failed yet
	Connected  State = machine.Connected  // it answers, in time, and workers poll
	Degraded   State = machine.Degraded   // it answers, but slowly, or does not serve requests, or a worker set does not poll
	Down       State = machine.Down       // it is not usable; the kind says why
	Closed     State = machine.Closed     // the manager was stopped
)

// Kind is what is wrong with a connection that is down or degraded.
type Kind = machine.Kind

// The kinds.
const (
	None             Kind = machine.None             // nothing
	Unreachable      Kind = machine.Unreachable      // down: nobody listens, or what listens is no frontend
	Hung             Kind = machine.Hung             // down: somebody listens, and does not answer in time
	NamespaceMissing Kind = machine.NamespaceMissing // down: the server has no such namespace
	AuthFailed       Kind = machine.AuthFailed       // down: the credentials are refused, or could not be read
	TLSError         Kind = machine.TLSError         // down: there is no agreement on a secure connection
	Slow             Kind = machine.Slow             // degraded: three answers running were slow
	Limited          Kind = machine.Limited          // degraded: it answers checks and does not serve most requests; LastError says more
	NotPolling       Kind = machine.NotPolling       // degraded: a worker set does not poll
)

// BreakerState is the state of the circuit breaker.
type BreakerState = machine.BreakerState

// The breaker's states.
const (
	BreakerClosed   BreakerState = machine.BreakerClosed   // attempts follow the back-off
	BreakerOpen     BreakerState = machine.BreakerOpen     // attempts are rare
	BreakerHalfOpen BreakerState = machine.BreakerHalfOpen // one attempt decides
)

// Breaker is what is known of the circuit breaker.
type Breaker = machine.Breaker

// Statistics count since [Manager.Start].
type Statistics = machine.Statistics

// Status is a snapshot of everything that is known.
type Status struct {
	State State
	Kind  Kind
	// Since is when State or Kind last changed.
	Since time.Time
	// Address and Namespace are those of the current client, NamespaceID is Temporal's own ID of the namespace, empty
	// before the first connection.
	Address, Namespace, NamespaceID string
	// LastError is the last failure of a check or an attempt; it is kept after recovery.
	LastError   string
	LastErrorAt time.Time
	// Generation is the number of the current client; 0 before the first.
	Generation int
	// Latency is what the last full check took.
	Latency time.Duration
	// Attempts counts attempts to connect since the start.
	Attempts int64
	// NextAttempt is zero while there is none to come.
	NextAttempt time.Time
	Breaker     Breaker
	Statistics  Statistics
	// Workers are the worker sets, by name.
	Workers []WorkerStatus
	// Draining is how many replaced generations still finish what they began.
	Draining int
}

// Ended is a connection, or an outage after one, that is over.
type Ended struct {
	Address, Namespace string
	Lasted             time.Duration
}

// WorkerStatus is what is known of one worker set.
type WorkerStatus = workerset.Status

// DownError is why there is no client to use.
type DownError struct {
	State State
	Kind  Kind
	Since time.Time
	// Address and Namespace are what could not be reached.
	Address, Namespace string
	// NextAttempt is when the next attempt to connect is due; zero while one is under way, or none is to come.
	NextAttempt time.Time
	// Cause is the last failure; nil while there was none.
	Cause error
}

// RetryAfter is when to ask again, from now: the time to the next attempt, at least a second and at most 30.
func (e *DownError) RetryAfter() time.Duration {
	return min(max(time.Until(e.NextAttempt), time.Second), backoffMost)
}

// Error says it in one line.
func (e *DownError) Error() string {
	text := fmt.Sprintf("temporal at %s (namespace %q) is %s", e.Address, e.Namespace, e.words())
	if e.Cause != nil {
		text += ": " + e.Cause.Error()
	}
	return text
}

// Unwrap returns the cause.
func (e *DownError) Unwrap() error { return e.Cause }

func (e *DownError) words() string {
	switch {
	case e.State == Closed:
		return "no longer used: the connection was closed"
	case e.State == Connecting:
		return "not connected yet"
	case e.Kind == NamespaceMissing:
		return "there, without that namespace"
	case e.Kind == AuthFailed:
		return "there, and refuses the credentials"
	case e.Kind == TLSError:
		return "there, without agreement on TLS"
	case e.Kind == Hung:
		return "hung: it accepts connections and does not answer"
	default:
		return "unreachable"
	}
}
