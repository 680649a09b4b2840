package contract

import (
	"errors"
	"fmt"
	"strings"

	"github.com/signalbox-dev/signalbox/dispatch/inbox"
)

// Names of Temporal's side.
const (
	// WorkflowType is the type of every dispatcher.
	WorkflowType = "signalbox.dispatcher"
	// RouteActivity takes events to where they go, CheckActivity reads the heartbeats of the registered workers,
	// EvictActivity tells who was struck off the list.
	RouteActivity = "signalbox.dispatch.route"
	CheckActivity = "signalbox.dispatch.check"
	EvictActivity = "signalbox.dispatch.evict"
	// AdoptUpdate gives the dispatcher another owner, RegisterUpdate adds a worker.
	AdoptUpdate    = "adopt"
	RegisterUpdate = "register"
	// DoorbellSignal wakes a parked dispatcher, LateSignal tells it which of its workers seem to be gone.
	DoorbellSignal = "doorbell"
	LateSignal     = "late"
	// StateQuery returns a [State].
	StateQuery = "state"
	// FencedError is the type of the application error that answers an adoption by an owner who is late.
	FencedError = "fenced"
	// Interpreter is the version of the dispatcher's workflow.
	Interpreter = 2
)

// Prefixes of lease keys.
const (
	OwnerPrefix    = "dispatcher:"
	WorkerPrefix   = "worker:"
	HandoverPrefix = "handover:"
	AbsentPrefix   = "absent:"
)

// BrakeKey is the key under which supervisors count the terminations of all processes.
const BrakeKey = "terminations"

const (
	maxProject   = 63
	maxTaskQueue = 127
)

// OwnerKey is the key of the lease whose holder owns the dispatcher.
func OwnerKey(name inbox.Name) string { return OwnerPrefix + name.Project + ":" + name.TaskQueue }

// HandoverKey is the key under which its owner is asked to give it up.
func HandoverKey(name inbox.Name) string { return HandoverPrefix + name.Project + ":" + name.TaskQueue }

// AbsentKey is the key under which its owner is notified that the dispatcher was found closed.
func AbsentKey(name inbox.Name) string { return AbsentPrefix + name.Project + ":" + name.TaskQueue }

// WorkerKey is the key of a process's heartbeat.
func WorkerKey(serverID string) string { return WorkerPrefix + serverID }

// NameOf returns the name in the key of an owner, a handover or an absence, and whether it is one.
func NameOf(key string) (inbox.Name, bool) {
	var rest string
	var ok bool
	for _, prefix := range []string{OwnerPrefix, HandoverPrefix, AbsentPrefix} {
		if rest, ok = strings.CutPrefix(key, prefix); ok {
			break
		}
	}
	project, queue, split := strings.Cut(rest, ":")
	name := inbox.Name{Project: project, TaskQueue: queue}
	return name, ok && split && Validate(name) == nil
}

// ServerOf returns the server ID in a heartbeat's key, and whether it is one.
func ServerOf(key string) (string, bool) {
	id, ok := strings.CutPrefix(key, WorkerPrefix)
	return id, ok && id != ""
}

// Validate returns what is wrong with a name, all of it.
func Validate(name inbox.Name) error {
	return errors.Join(validate("project", name.Project, maxProject), validate("task queue", name.TaskQueue, maxTaskQueue))
}

func validate(what, s string, most int) error {
	switch {
	case s == "":
		return fmt.Errorf("%s: missing", what)
	case len(s) > most:
		return fmt.Errorf("%s %q: longer than %d bytes", what, s, most)
	case s[0] == '-' || s[len(s)-1] == '-':
		return fmt.Errorf("%s %q: begins or ends with a dash", what, s)
	}
	for _, r := range s {
		if (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' {
			return fmt.Errorf("%s %q: only lower-case letters, digits and dashes", what, s)
		}
	}
	return nil
}
