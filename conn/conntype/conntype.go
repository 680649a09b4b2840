// Package conntype has the plain types of package conn: what is reported of a connection to Temporal and of the workers
// on it. It imports neither Temporal's SDK nor gRPC, so that a package which only shows or counts them links neither.
package conntype

import "time"

// State is the state of a connection.
type State string

// The states.
const (
	Connecting State = "connecting" // not connected since the start, and no attempt has failed yet
	Connected  State = "connected"  // Temporal answers in time, and the workers poll
	// Degraded: Temporal answers, but slowly, or does not serve requests, or a worker set does not poll.
	Degraded State = "degraded"
	Down     State = "down"   // the connection cannot be used; the kind is the reason
	Closed   State = "closed" // the manager was stopped
)

// States returns all states.
func States() []State { return []State{Connecting, Connected, Degraded, Down, Closed} }

// Up reports whether requests may be sent.
func (s State) Up() bool { return s == Connected || s == Degraded }

// Kind is the reason why a connection is down or degraded.
type Kind string

// The kinds. The first five belong to Down, the last three to Degraded.
const (
	None             Kind = ""                  // the connection is neither down nor degraded
	Unreachable      Kind = "unreachable"       // no process listens at the address, or it is no Temporal frontend
	Hung             Kind = "hung"              // connections are accepted, but requests are not answered in time
	NamespaceMissing Kind = "namespace_missing" // the server answers, but has no such namespace
	AuthFailed       Kind = "auth_failed"       // the credentials are refused, or could not be read
	TLSError         Kind = "tls_error"         // the TLS handshake fails
	Slow             Kind = "slow"              // three consecutive answers were slow
	// Limited: checks are answered, but most requests are refused or late; LastError has the details.
	Limited    Kind = "limited"
	NotPolling Kind = "not_polling" // a worker set does not poll
)

// Kinds returns all kinds except None.
func Kinds() []Kind {
	return []Kind{Unreachable, Hung, NamespaceMissing, AuthFailed, TLSError, Slow, Limited, NotPolling}
}

// Title says what is wrong with the connection, in one sentence without addresses; empty while it is connected.
func (s Status) Title() string {
	switch s.Kind {
	case Unreachable:
		return "Temporal cannot be reached"
	case Hung:
		return "Temporal does not answer"
	case NamespaceMissing:
		return "Temporal has no namespace of the configured name"
	case AuthFailed:
		return "Temporal refuses the credentials of this server"
	case TLSError:
		return "The TLS connection to Temporal fails"
	case Slow:
		return "Temporal answers slowly"
	case Limited:
		return "Temporal refuses or delays most requests"
	case NotPolling:
		return "Workers of this server do not poll"
	case None:
	}
	switch s.State {
	case Connecting:
		return "This server has not been connected to Temporal yet"
	case Degraded:
		return "The connection to Temporal is degraded"
	case Down:
		return "Temporal is not available"
	case Closed:
		return "This server is stopping and has closed its connection to Temporal"
	case Connected:
	}
	return ""
}

// BreakerState is the state of the circuit breaker.
type BreakerState string

// The breaker's states.
const (
	BreakerClosed   BreakerState = "closed"    // attempts follow the back-off
	BreakerOpen     BreakerState = "open"      // attempts are rare
	BreakerHalfOpen BreakerState = "half_open" // one attempt is due or under way that may close it
)

// BreakerStates returns all states of the breaker.
func BreakerStates() []BreakerState {
	return []BreakerState{BreakerClosed, BreakerOpen, BreakerHalfOpen}
}

// Status is a snapshot of a connection. Zero times mean unknown or never.
type Status struct {
	State State
	Kind  Kind
	// Since is when State or Kind last changed. While Down it is when the outage began, also if Kind has changed since:
	// the time of its first sign, which is that gRPC lost the connection, or the end of the first of the consecutive
	// checks that failed. Statistics count outages from there.
	Since time.Time
	// Address and Namespace are those of the current client. NamespaceID is Temporal's own ID of the namespace, empty
	// before the first connection.
	Address, Namespace, NamespaceID string
	// LastError is the last failure of a check or an attempt; it is kept after recovery.
	LastError   string
	LastErrorAt time.Time
	// Generation is the number of the current client with its workers; 0 before the first.
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

// Breaker describes the circuit breaker.
type Breaker struct {
	State     BreakerState
	Failures  int       // consecutive failed attempts
	OpenedAt  time.Time // zero while closed
	NextProbe time.Time // the next attempt while not closed; zero while it runs
}

// Statistics count since the start.
type Statistics struct {
	Uptime         time.Duration // Connected or Degraded, until the first sign of an outage
	Downtime       time.Duration // Connecting or Down, from the first sign of an outage
	Connections    int64         // how often the connection came up
	Outages        int64         // how often it went down after it had been up
	LastOutage     time.Duration // from the first sign of it until connected again; until now, while it lasts
	LongestOutage  time.Duration
	ConnectedSince time.Time // zero while not up
}

// WorkerStatus is the status of one worker set.
type WorkerStatus struct {
	Name       string
	TaskQueues []string
	// Running: a worker was started and has not died. Polling: its task queues are polled, and the connection is up.
	// A worker whose pollers wait for a free slot counts as polling.
	Running, Polling bool
	// BusySince is since when the pollers of the worker wait for a free slot; zero while they do not, or it is not known.
	BusySince time.Time
	// Generation is the one that the running worker belongs to.
	Generation int
	// Since is when the running worker was started.
	Since time.Time
	// LastPoll is when a poll was last answered or sent.
	LastPoll time.Time
	// Failures counts consecutive failed starts. Error is the last of them, or the reason why the worker died or does not
	// poll.
	Failures int
	Error    string
}
