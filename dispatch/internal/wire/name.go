package wire

import (
	"errors"
	"fmt"
	"strings"

	"github.com/signalbox-dev/signalbox/dispatch/inbox"
)

// Names in Temporal.
const (
	// WorkflowType is the type of every dispatcher.
	WorkflowType = "signalbox.dispatcher"
	// RouteActivity delivers events, CheckActivity reads the heartbeats of the registered workers, EvictActivity reports
	// evicted workers.
	RouteActivity = "signalbox.dispatch.route"
	CheckActivity = "signalbox.dispatch.check"
	EvictActivity = "signalbox.dispatch.evict"
	// AdoptUpdate changes the dispatcher's owner, RegisterUpdate adds a worker.
	AdoptUpdate    = "adopt"
	RegisterUpdate = "register"
	// DoorbellSignal wakes a parked dispatcher, LateSignal reports workers whose heartbeats are missing.
	DoorbellSignal = "doorbell"
	LateSignal     = "late"
	// StateQuery returns a [dispatchtype.State].
	StateQuery = "state"
	// FencedError is the type of the application error that rejects an adoption with an outdated epoch.
	FencedError = "fenced"
	// Interpreter is the version of the dispatcher's workflow code.
	Interpreter = 3
)

// Prefixes of lease keys.
const (
	OwnerPrefix    = "dispatcher:"
	WorkerPrefix   = "worker:"
	HandoverPrefix = "handover:"
	AbsentPrefix   = "absent:"
)

// TerminationsKey is the key under which supervisors count the terminations of all processes.
const TerminationsKey = "terminations"

const (
	maxProject   = 63
	maxTaskQueue = 127
)

// OwnerKey returns the key of the lease whose holder owns the dispatcher.
func OwnerKey(name inbox.Name) string { return OwnerPrefix + name.Project + ":" + name.TaskQueue }

// HandoverKey returns the key of a request to hand the dispatcher over.
func HandoverKey(name inbox.Name) string { return HandoverPrefix + name.Project + ":" + name.TaskQueue }

// AbsentKey returns the key that notifies the owner that the dispatcher was found closed.
func AbsentKey(name inbox.Name) string { return AbsentPrefix + name.Project + ":" + name.TaskQueue }

// WorkerKey returns the key of a process's heartbeat.
func WorkerKey(serverID string) string { return WorkerPrefix + serverID }

// NameOf returns the dispatcher's name in the key of an owner, a handover or an absence, and whether it is such a key.
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

// ServerOf returns the server ID in a heartbeat's key, and whether it is such a key.
func ServerOf(key string) (string, bool) {
	id, ok := strings.CutPrefix(key, WorkerPrefix)
	return id, ok && id != ""
}

// Validate returns all violations of a name, joined.
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
