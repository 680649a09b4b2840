package conn

import (
	"fmt"
	"time"

	"github.com/signalbox-dev/signalbox/conn/conntype"
)

// Types of the state of a connection, and its constants. Package conntype describes them, and has the types of the
// other fields of a Status.
type (
	// Status is a snapshot of a manager.
	Status = conntype.Status
	// State is the state of the connection. Requests may be sent while it is up: [Connected] or [Degraded].
	State = conntype.State
	// Kind is the reason why a connection is down or degraded.
	Kind = conntype.Kind
)

// The states.
const (
	Connecting = conntype.Connecting
	Connected  = conntype.Connected
	Degraded   = conntype.Degraded
	Down       = conntype.Down
	Closed     = conntype.Closed
)

// The kinds. The first five belong to Down, the last three to Degraded.
const (
	None             = conntype.None
	Unreachable      = conntype.Unreachable
	Hung             = conntype.Hung
	NamespaceMissing = conntype.NamespaceMissing
	AuthFailed       = conntype.AuthFailed
	TLSError         = conntype.TLSError
	Slow             = conntype.Slow
	Limited          = conntype.Limited
	NotPolling       = conntype.NotPolling
)

// Ended is a connection, or an outage after a connection, that has ended. A connection ends when the outage after it
// begins.
type Ended struct {
	Address, Namespace string
	Lasted             time.Duration
}

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

// RetryAfter returns how long to wait before the next call: the time to the next attempt, at least 1 s and at most 30
// s.
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
