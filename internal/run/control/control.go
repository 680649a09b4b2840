// Package control implements the operations on existing runs: cancel, terminate, pause, unpause, resume in spite of the
// quota, replay, export.
//
// [Decide] is one table with the effect of each control in each state of a run: it takes effect, it is refused, or it
// changes nothing. The API lists a run's controls from it, [Service] refuses controls by it, docs/reference/controls.md
// is generated from it, and tests check the platform against every pair.
//
//	controls := control.New(runs, store, engine, changes, options)
//	r, err := controls.Terminate(ctx, project, id, reason)
//
// Rows follow Temporal: a control sends a request to Temporal and never writes the expected result. Only a run that was
// never handed over to Temporal, or that Temporal does not have, is ended in the database alone. Where another Temporal
// holds the runs, a missing run may still be open there ([DecideMissing]).
package control

import (
	"fmt"
	"slices"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/run"
)

//go:generate go run ../../generate controls ../../../docs/reference/controls.md

// Control is an operation on a run.
type Control string

// The controls.
const (
	// Cancel requests an end, which a worker performs.
	Cancel Control = "cancel"
	// Terminate ends the run at once, without a worker.
	Terminate Control = "terminate"
	// Pause keeps the run from entering further tasks, Unpause lets it continue.
	Pause   Control = "pause"
	Unpause Control = "unpause"
	// ResumeQuota lets the run continue although its project has used up its steps.
	ResumeQuota Control = "resume_quota"
	// Replay starts a new run with its input.
	Replay Control = "replay"
	// Export returns everything that is stored of the run.
	Export Control = "export"
)

// Controls returns all controls, in the order in which they are shown.
func Controls() []Control {
	return []Control{Cancel, Terminate, Pause, Unpause, ResumeQuota, Replay, Export}
}

// State is the part of a run that decides about its controls.
type State struct {
	Status       run.Status
	QueuedReason string
	WaitingKind  string
	// CancelRequested is set for open runs only.
	CancelRequested bool
	// Imported marks a run that was executed by another engine.
	Imported bool
}

// StateOf returns the state of a run.
func StateOf(r run.Run) State {
	return State{
		Status: r.Status, QueuedReason: r.QueuedReason, WaitingKind: r.WaitingKind,
		CancelRequested: r.CancelRequested && !r.Status.Terminal(), Imported: r.Trigger == run.TriggerImport,
	}
}

// States returns all states that differ in any control, or in their names.
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
			for _, reason := range run.QueuedReasons() {
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
	return append(states, State{Status: run.Completed, Imported: true})
}

// String returns the name of a state in docs/reference/controls.md.
func (s State) String() string {
	name := string(s.Status)
	if s.Imported {
		return "imported, in any state"
	}
	if detail := s.QueuedReason + s.WaitingKind; detail != "" {
		name += ": " + detail
	}
	if s.CancelRequested {
		name += ", cancel requested"
	}
	return name
}

// neverHandedOver reports whether the run was never handed over to Temporal.
func (s State) neverHandedOver() bool {
	return s.Status == run.Queued && (s.QueuedReason == run.QueuedEngine || s.QueuedReason == run.QueuedAdmission)
}

// Effect is the effect of a control.
type Effect int

// The effects.
const (
	// Done: it takes effect.
	Done Effect = iota + 1
	// Nothing: it succeeds, and the run does not change.
	Nothing
	// Refused: it fails, and the run does not change.
	Refused
)

// Answer is the effect of a control in a state of a run.
type Answer struct {
	Effect Effect
	// Reason is the reason of the fault with which it is refused.
	Reason string
	// May is the reason of a fault with which it may be refused although Effect is Done: the decision depends on data
	// outside the state.
	May string
}

// Decide returns the effect of a control in a state.
func Decide(c Control, s State) Answer {
	switch {
	case c == Export:
		return Answer{Effect: Done}
	case s.Imported && c == Replay:
		return Answer{Effect: Done, May: apperror.RunImported}
	case s.Imported:
		return refused(apperror.RunImported)
	case c == Replay:
		return Answer{Effect: Done}
	case s.Status.Terminal():
		return refused(apperror.RunEnded)
	case c == Cancel && s.CancelRequested:
		return Answer{Effect: Nothing}
	case c == Cancel || c == Terminate:
		if s.QueuedReason == run.QueuedStarting {
			return Answer{Effect: Done, May: apperror.RunStarting}
		}
		return Answer{Effect: Done}
	case s.neverHandedOver():
		return refused(apperror.RunNotStarted)
	case s.QueuedReason == run.QueuedStarting:
		return refused(apperror.RunStarting)
	case c == Pause:
		return pausing(s)
	case c == Unpause && s.WaitingKind == run.WaitingPaused, c == ResumeQuota && s.WaitingKind == run.WaitingQuota:
		return Answer{Effect: Done}
	default:
		return Answer{Effect: Nothing}
	}
}

// DecideMissing returns the effect of a control on an open run that was handed over and that this Temporal does not
// have, by how that Temporal relates to the runs. A run in another Temporal has not ended: it can be ended in the
// database alone, and only by an explicit terminate.
func DecideMissing(c Control, s run.Placement) Answer {
	switch {
	case c == Terminate, c == Cancel && s == run.PlacementHere:
		return Answer{Effect: Done}
	case s == run.PlacementHere:
		return refused(apperror.ExecutionMissing)
	default:
		return refused(apperror.RunElsewhere)
	}
}

func pausing(s State) Answer {
	switch {
	case s.CancelRequested:
		return refused(apperror.RunCanceling)
	case s.WaitingKind == run.WaitingPaused:
		return Answer{Effect: Nothing}
	default:
		return Answer{Effect: Done}
	}
}

func refused(reason string) Answer { return Answer{Effect: Refused, Reason: reason} }

// Available returns the controls that take effect on a run in its current state.
func Available(r run.Run) []Control {
	s := StateOf(r)
	return slices.DeleteFunc(Controls(), func(c Control) bool { return Decide(c, s).Effect != Done })
}

// Outcome is the effect of a control on a run, with an explanation.
type Outcome struct {
	Control Control
	Answer
	// Detail explains the effect in one sentence; empty for a control that takes effect in any case.
	Detail string
}

// Outcomes returns the effect of each control on a run in its current state.
func Outcomes(r run.Run) []Outcome {
	s, list := StateOf(r), Controls()
	outcomes := make([]Outcome, len(list))
	for i, c := range list {
		a := Decide(c, s)
		outcomes[i] = Outcome{Control: c, Answer: a, Detail: detail(c, r, a)}
	}
	return outcomes
}

func detail(c Control, r run.Run, a Answer) string {
	switch {
	case a.Effect == Refused:
		return "The run " + explain(c, r, a.Reason)
	case a.May == apperror.RunStarting:
		return "Temporal has not confirmed the start: until it has, this may be refused for a moment"
	case a.May == apperror.RunImported:
		return "The run was imported: name the version to execute, and give the input if it is not stored in full"
	case a.Effect == Done:
		return ""
	}
	switch c {
	case Cancel:
		return "Cancellation was requested already"
	case Pause:
		return "The run is paused already"
	case Unpause:
		return "The run is not paused"
	case ResumeQuota:
		return "The run does not wait for the quota of steps"
	case Terminate, Replay, Export: // always take effect, or are refused
	}
	return ""
}

// check returns the fault of a control that is refused.
func check(c Control, r run.Run) error {
	if a := Decide(c, StateOf(r)); a.Effect == Refused {
		return refusal(c, r, a.Reason)
	}
	return nil
}

// refusal returns the fault with a reason of the table.
func refusal(c Control, r run.Run, reason string) *apperror.Error {
	return apperror.New(apperror.Refused, reason, "run %s %s", r.ID, explain(c, r, reason))
}

// explain completes a sentence that begins with the run.
func explain(c Control, r run.Run, reason string) string {
	switch reason {
	case apperror.RunEnded:
		if !r.Status.Terminal() {
			return "has ended in Temporal already; its row shows that in a moment"
		}
		return fmt.Sprintf("has ended already: it is %s", r.Status)
	case apperror.RunStarting:
		return fmt.Sprintf("is being handed over to Temporal; %s it again in a moment", verb(c))
	case apperror.RunNotStarted:
		return fmt.Sprintf("is queued (%s) and has not begun; %s it when it has, or cancel it", r.QueuedReason, verb(c))
	case apperror.RunCanceling:
		return "is being canceled; terminate it to end it at once"
	case apperror.RunImported:
		return "was imported: it can be read, exported and replayed, and nothing else"
	case apperror.ExecutionMissing:
		return "is not known to Temporal; cancel it to end it"
	default:
		return "refuses: " + reason
	}
}

// verb returns a control as a verb for messages.
func verb(c Control) string {
	if c == ResumeQuota {
		return "resume"
	}
	return string(c)
}
