package fsm

import (
	"time"

	"github.com/signalbox-dev/signalbox/conn/conntype"
)

// Settings configure a machine. All durations are positive.
type Settings struct {
	CheckEvery   time.Duration // between full checks while up
	ProbeEvery   time.Duration // between light probes, up or down
	ConfirmAfter time.Duration // from a failed check to the check that confirms it or not
	SlowAfter    time.Duration // an answer that took longer counts as slow
	// after an outage of this length attempts also try a new client, which a dead connection requires
	FreshAfter time.Duration
	// an outage of this length ends with a new client, even where the current one is answered again
	RebuildAfter time.Duration

	BackoffFirst time.Duration // before the second attempt of an outage; doubled for each further one
	BackoffMax   time.Duration // limit of the doubling

	BreakerAfter int           // consecutive failed attempts that open the breaker
	BreakerEvery time.Duration // between attempts while it is open

	Random func() float64 // in [0,1): lengthens a back-off and ConfirmAfter by up to 20 %, ProbeEvery by up to 10 %
}

// Event is an input of Machine.Handle.
type Event interface{ isEvent() }

// Checked is the result of a Probe, a Check or an Attempt.
type Checked struct {
	Kind conntype.Kind // None: the server answered; otherwise one of the kinds of Down
	Took time.Duration
	Err  error
	// CurrentAnswered reports, after a fresh Attempt, that the server answered the current client, whether or not it
	// answered the new one.
	CurrentAnswered bool
}

// Built is the result of a Build. Without Err, workers run on the new client and it is the current one.
type Built struct {
	Err  error
	Kind conntype.Kind // of the failure, as in Checked; None where the connection is not its cause
	// CurrentAnswered reports, after a Build that failed while not up, that the server then answered the current client.
	CurrentAnswered bool
}

// Ready reports that the gRPC connection of the current client or of a new one has become ready.
type Ready struct{}

// Lost reports that the gRPC connection of the current client is no longer ready.
type Lost struct{}

// Suspected reports that a request failed in a way that suggests an outage.
type Suspected struct{}

// Changed reports that address, TLS, credentials, namespace or capabilities have changed: the client must be replaced.
type Changed struct{}

// Polling reports whether every worker set polls.
type Polling struct{ OK bool }

// Requests reports how the server serves the requests of the program and its workers, health checks excluded: Late if
// most of them take too long, Failing if most of them fail. Err has the details.
type Requests struct {
	Late, Failing bool
	Err           error
}

// Reset closes the circuit breaker at an operator's request.
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

// Operation is what the manager is to do next.
type Operation int

// The operations. Each one but Nothing results in exactly one Checked, or one Built in the case of Build.
const (
	Nothing Operation = iota
	Probe             // the light health check, on the newest client
	Check             // the full check, on the current client
	Attempt           // the full check while not up
	Build             // replace the current client and its workers by new ones
)

// Command is an operation with its parameters. It counts as running from when it is returned until its result is passed
// in.
type Command struct {
	Op      Operation
	Fresh   bool          // of an Attempt or a Build: on a new client rather than the current one
	Number  int64         // of the attempt in this outage, from 1; of an Attempt, and of the Build that follows it
	Backoff time.Duration // of an Attempt: the back-off before it, which a sign of life may have ended early
}

// View is a snapshot of a machine.
type View struct {
	State conntype.State
	Kind  conntype.Kind
	// when State or Kind last changed; while Down, when the outage began, also if Kind has changed since
	Since       time.Time
	LastErr     error // of the last failure; kept after recovery
	LastErrAt   time.Time
	Latency     time.Duration // of the last full check that was answered
	Attempts    int64         // since New
	NextAttempt time.Time     // zero while up, closed, or while it runs
	Breaker     conntype.Breaker
	Statistics  conntype.Statistics
}
