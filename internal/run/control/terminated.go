package control

import (
	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/internal/run"
)

// TerminatedBy returns the error of a run terminated by an actor, in the database or in Temporal.
func TerminatedBy(actor, reason string) *run.Error {
	return &run.Error{Type: dsl.ErrorTypeRuntime, Title: "Terminated by " + actor, Detail: reason, Instance: "/"}
}

// TerminateReason returns the reason given for a termination; empty for every other run.
func TerminateReason(r run.Run) string {
	if r.Status != run.Terminated || r.Error == nil {
		return ""
	}
	return r.Error.Detail
}
