package machine

import "time"

// State is what the connection is good for.
type State string

// Connected and Degraded are up: requests may be sent. The others are not.
const (
	Connecting State = "connecting" // not connected since the start, and nothing known against it
	Connected  State = "connected"  // answers, and answers fast
	Degraded   State = "degraded"   // answers, but Slow, Limited or NotPolling
	Down       State = "down"       // does not answer as it should; the Kind says how
	Closed     State = "closed"     // for good
)

// Kind is what is wrong with a connection that is Down or Degraded.
type Kind string

// The kinds. The first five belong to Down, the last three to Degraded.
const (
	None             Kind = ""
	Unreachable      Kind = "unreachable"       // nobody listens
	Hung             Kind = "hung"              // somebody listens and does not answer in time
	NamespaceMissing Kind = "namespace_missing" // the server is well and has no such namespace
	AuthFailed       Kind = "auth_failed"       // the credentials are refused
	TLSError         Kind = "tls_error"         // there is no agreement on a secure connection
	Slow             Kind = "slow"              // three answers running took longer than Settings.SlowAfter
	Limited          Kind = "limited"           // checks are answered, most requests are not served
	NotPolling       Kind = "not_polling"       // a worker set does not poll
)

// BreakerState is the state of the circuit breaker.
type BreakerState string

// The breaker's states.
const (
	BreakerClosed   BreakerState = "closed"    // attempts back off in seconds
	BreakerOpen     BreakerState = "open"      // attempts go slowly
	BreakerHalfOpen BreakerState = "half_open" // one attempt is due or under way that may close it
)

// Settings are the paces of a machine. All durations are positive.
type Settings struct {
	CheckEvery   time.Duration // between full checks while up
	ProbeEvery   time.Duration // between light probes, up or down
	ConfirmAfter time.Duration // from a miss to the check that confirms or refutes it
	SlowAfter    time.Duration // an answer that took longer is slow
	FreshAfter   time.Duration // attempts in an outage of this length try a new client too; a dead connection needs one
	RebuildAfter time.Duration // an outage of this length ends with a new client, even if the old one is well again

	BackoffFirst time.Duration // before the second attempt of an outage; doubled for each further one
	BackoffMost  time.Duration // what doubling ends at

	BreakerAfter int           // consecutive failed attempts that open the breaker
	BreakerEvery time.Duration // between attempts while it is open

	Random func() float64 // in [0,1): lengthens a back-off and a confirmation by up to 20 %, a probe's pace by up to 10 %
}

// Event is what happened; see Machine.On.
type Event interface{ isEvent() }

// Checked is the end of a Probe, a Check or an Attempt.
type Checked struct {
	Kind Kind // None: it answered; else one of the kinds of Down
	Took time.Duration
	Err  error
	// Current tells, at the end of a fresh Attempt, that the current client was answered, whatever became of the new one.
	Current bool
}

// Built is the end of a Build: workers run on the new client and everybody uses it, or Err says why not.
type Built struct {
	Err  error
	Kind Kind // of the failure, as in Checked; None where the connection is not to blame
	// Current tells, of a Build that has failed while not up, that the current client was answered after it.
	Current bool
}

// Ready says that one of our gRPC connections has become ready.
type Ready struct{}

// Lost says that the gRPC connection of the current client is no longer ready.
type Lost struct{}

// Suspected says that a request failed in a way that suggests an outage.
type Suspected struct{}

// Changed says that address, TLS, credentials, namespace or capabilities are others: the client must be replaced.
type Changed struct{}

// Polling says whether every worker set polls.
type Polling struct{ OK bool }

// Requests says how the requests of others than the machine's owner are served: most of them too late, or most of them not at all. Err says
// more about it.
type Requests struct {
	Late, Failing bool
	Err           error
}

// Reset is an operator's wish to close the breaker.
type Reset struct{}

// Close ends the machine.
type Close struct{}

func (Checked) isEvent()   {}
func (Built) isEvent()     {}
func (Ready) isEvent()     {}
func (Lost) isEvent()      {}
func (Suspected) isEvent() {}
func (Changed) isEvent()   {}
func (Polling) isEvent()   {}
func (Requests) isEvent()  {}
func (Reset) isEvent()     {}
func (Close) isEvent()     {}

// Do is an operation.
type Do int

// The operations. Each one but Nothing ends with exactly one Checked, or Built for a Build.
const (
	Nothing Do = iota
	Probe      // the light health check, on the newest client there is
	Check      // the full check, on the current client
	Attempt    // the full check while not up
	Build      // put a new client and its workers in the place of the current ones
)

// Command asks for an operation. It is under way from the moment it is returned until its end is reported.
type Command struct {
	Do      Do
	Fresh   bool          // of an Attempt or a Build: on a new client rather than the current one
	Number  int64         // of the attempt in this outage, from 1; of an Attempt, and of the Build that follows it
	Backoff time.Duration // of an Attempt: the pause it waited for; cut short where there was a sign of life
}

// View is what a machine knows at one moment.
type View struct {
	State       State
	Kind        Kind
	Since       time.Time // when State or Kind changed last
	LastErr     error     // of the last failure; kept after recovery
	LastErrAt   time.Time
	Latency     time.Duration // of the last full check that was answered
	Attempts    int64         // since New
	NextAttempt time.Time     // zero while up, closed, or under way
	Breaker     Breaker
	Statistics  Statistics
}

// Breaker is what is known of the circuit breaker.
type Breaker struct {
	State     BreakerState
	Failures  int       // consecutive failed attempts
	OpenedAt  time.Time // zero while closed
	NextProbe time.Time // the next attempt while not closed; zero while it is under way
}

// Statistics count since New.
type Statistics struct {
	Uptime         time.Duration // Connected or Degraded
	Downtime       time.Duration // Connecting or Down
	Connections    int64         // how often the connection came up
	Outages        int64         // how often it went down after it had been up
	LastOutage     time.Duration // from its first sign to connected again; until now, while it lasts
	LongestOutage  time.Duration
	ConnectedSince time.Time // zero while not up
}
