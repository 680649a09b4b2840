package control

import (
	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/internal/run"
)

// TerminatedBy is the problem of a run that somebody terminated, in the table or in Temporal.
func TerminatedBy(who, reason string) *run.Problem {
	return &run.Problem{Type: dsl.ErrorTypeRuntime, Status: 500, Title: "Terminated by " + who, Detail: reason, Instance: "/"}
}

// TerminateReason is why a run was terminated, as whoever did it said; empty for every other run.
func TerminateReason(r run.Run) string {
	if r.Status != run.Terminated || r.Error == nil {
		return ""
	}
	return r.Error.Detail
}
