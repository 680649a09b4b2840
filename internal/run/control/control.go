// Package control is what people do to a run: cancel, terminate, pause, unpause, let it go on in spite of its quota, replay,
// export.
//
// [Of] is one table that says what each control does to a run in each state: it does it, it is refused, or it changes nothing.
// The API shows a run's controls from it, [Service] refuses by it, docs/reference/controls.md is written from it, and tests hold
// the platform against every pair.
//
//	controls := control.New(runs, store, engine, changes, options)
//	r, err := controls.Terminate(ctx, project, id, reason)
//
// Rows follow Temporal here as everywhere: a control asks Temporal and never writes what it hopes for. Only a run that Temporal
// was never given, or does not know, is ended in the table alone. Where the runs are in another Temporal, not knowing them says
// nothing ([Unknown]).
package control

import (
	"fmt"
	"slices"

	"github.com/signalbox-dev/signalbox/internal/fault"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/home"
)

//go:generate go run ./internal/page ../../../docs/reference/controls.md

// Control is one thing that people do to a run.
type Control string

// The controls.
const (
	// Cancel asks for an end, which a worker brings about.
	Cancel Control = "cancel"
	// Terminate ends it at once, without one.
	Terminate Control = "terminate"
	// Pause keeps it from entering further tasks, Unpause lets it go on.
	Pause   Control = "pause"
	Unpause Control = "unpause"
	// ResumeQuota lets it go on although its project has used up its steps.
	ResumeQuota Control = "resume_quota"
	// Replay starts a new run with its input.
	Replay Control = "replay"
	// Export gives all that is known of it.
	Export Control = "export"
)

// Controls returns all, in the order in which they are shown.
func Controls() []Control {
	return []Control{Cancel, Terminate, Pause, Unpause, ResumeQuota, Replay, Export}
}

// State is what of a run decides about its controls.
type State struct {
	Status       run.Status
	QueuedReason string
	WaitingKind  string
	// CancelRequested counts for open runs only.
	CancelRequested bool
	// Imported is a run that another engine ran.
	Imported bool
	// Old is an open run of a release whose runs could not be paused.
	Old bool
}

// StateOf returns the state of a run.
func StateOf(r run.Run) State {
	return State{
		Status: r.Status, QueuedReason: r.QueuedReason, WaitingKind: r.WaitingKind,
		CancelRequested: r.CancelRequested && !r.Status.Terminal(), Imported: r.Trigger == run.TriggerImport,
		Old: r.Interpreter < run.PausableSince && !r.Status.Terminal(),
	}
}

// States returns all states that differ in any control, or in what they are called.
func States() []State {
	var states []State
	add := func(s State) {
		states = append(states, s)
		if !s.Status.Terminal() && !s.neverHandedOver() {
			s.CancelRequested = true
			states = append(states, s)
		}
	}
	for _, status := range run.Statuses() {
		switch status {
		case run.Queued:
			for _, reason := range queuedReasons() {
				add(State{Status: status, QueuedReason: reason})
			}
		case run.Waiting:
			for _, kind := range run.WaitingKinds() {
				add(State{Status: status, WaitingKind: kind})
			}
		default:
			add(State{Status: status})
		}
	}
	return append(states, State{Status: run.Running, Old: true}, State{Status: run.Completed, Imported: true})
}

func queuedReasons() []string {
	return []string{run.QueuedEngine, run.QueuedAdmission, run.QueuedStarting, run.QueuedWorker}
}

// String names a state as the reference does.
func (s State) String() string {
	name := string(s.Status)
	if s.Imported {
		return "imported, in any state"
	}
	if s.Old {
		return "of an earlier release, open"
	}
	if detail := s.QueuedReason + s.WaitingKind; detail != "" {
		name += ": " + detail
	}
	if s.CancelRequested {
		name += ", cancel requested"
	}
	return name
}

// neverHandedOver tells of a run that Temporal was not given.
func (s State) neverHandedOver() bool {
	return s.Status == run.Queued && (s.QueuedReason == run.QueuedEngine || s.QueuedReason == run.QueuedAdmission)
}

// Effect is what a control does.
type Effect int

// The effects.
const (
	// Done: it does what it says.
	Done Effect = iota + 1
	// Nothing: it succeeds, and the run is as it was.
	Nothing
	// Refused: it is an error, and the run is as it was.
	Refused
)

// Answer is what a control does to a run in a state.
type Answer struct {
	Effect Effect
	// Reason is the reason of the fault with which it is refused.
	Reason string
	// May is the reason of a fault with which it may be refused although it is Done: what is not known yet decides.
	May string
}

// Of is the table.
func Of(c Control, s State) Answer {
	switch {
	case c == Export:
		return Answer{Effect: Done}
	case s.Imported && c == Replay:
		return Answer{Effect: Done, May: fault.RunImported}
	case s.Imported:
		return refused(fault.RunImported)
	case c == Replay:
		return Answer{Effect: Done}
	case s.Status.Terminal():
		return refused(fault.RunEnded)
	case c == Cancel && s.CancelRequested:
		return Answer{Effect: Nothing}
	case c == Cancel || c == Terminate:
		if s.QueuedReason == run.QueuedStarting {
			return Answer{Effect: Done, May: fault.RunStarting}
		}
		return Answer{Effect: Done}
	case s.neverHandedOver():
		return refused(fault.RunNotStarted)
	case s.QueuedReason == run.QueuedStarting:
		return refused(fault.RunStarting)
	case s.Old:
		return refused(fault.RunTooOld)
	case c == Pause:
		return pausing(s)
	case c == Unpause && s.WaitingKind == run.WaitingPaused, c == ResumeQuota && s.WaitingKind == run.WaitingQuota:
		return Answer{Effect: Done}
	default:
		return Answer{Effect: Nothing}
	}
}

// Unknown is what a control does to an open run that Temporal was given and does not know, by what that Temporal is to the runs.
// What is in another one is not over: it can be ended in the table alone, and whoever does that has to mean it.
func Unknown(c Control, s home.Standing) Answer {
	switch {
	case c == Terminate, c == Cancel && s == home.AtHome:
		return Answer{Effect: Done}
	case s == home.AtHome:
		return refused(fault.ExecutionMissing)
	default:
		return refused(fault.RunElsewhere)
	}
}

func pausing(s State) Answer {
	switch {
	case s.CancelRequested:
		return refused(fault.RunCanceling)
	case s.WaitingKind == run.WaitingPaused:
		return Answer{Effect: Nothing}
	default:
		return Answer{Effect: Done}
	}
}

func refused(reason string) Answer { return Answer{Effect: Refused, Reason: reason} }

// Available lists the controls that do something to a run as it is.
func Available(r run.Run) []Control {
	s := StateOf(r)
	return slices.DeleteFunc(Controls(), func(c Control) bool { return Of(c, s).Effect != Done })
}

// check returns the fault of a control that is refused.
func check(c Control, r run.Run) error {
	if a := Of(c, StateOf(r)); a.Effect == Refused {
		return refusal(c, r, a.Reason)
	}
	return nil
}

// refusal is the fault of a reason of the table.
func refusal(c Control, r run.Run, reason string) *fault.Fault {
	return fault.New(fault.Refused, reason, "run %s %s", r.ID, because(c, r, reason))
}

// because completes a line that begins with the run.
func because(c Control, r run.Run, reason string) string {
	switch reason {
	case fault.RunEnded:
		if !r.Status.Terminal() {
			return "has ended in Temporal already; its row shows that in a moment"
		}
		return fmt.Sprintf("has ended already: it is %s", r.Status)
	case fault.RunStarting:
		return fmt.Sprintf("is being handed over to Temporal; %s it again in a moment", verb(c))
	case fault.RunNotStarted:
		return fmt.Sprintf("is queued (%s) and has not begun; %s it when it has, or cancel it", r.QueuedReason, verb(c))
	case fault.RunCanceling:
		return "is about to end, as its cancellation was asked for; terminate it to end it at once"
	case fault.RunImported:
		return "was imported: it can be read, exported and replayed, and nothing else"
	case fault.RunTooOld:
		return "was started by an earlier release, whose runs could not be paused; it can be cancelled and terminated"
	case fault.ExecutionMissing:
		return "is not known to Temporal; cancel it to end it"
	default:
		return "refuses: " + reason
	}
}

// verb is a control as people say it.
func verb(c Control) string {
	if c == ResumeQuota {
		return "resume"
	}
	return string(c)
}
