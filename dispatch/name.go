package dispatch

import (
	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/dispatch/internal/wire"
)

// Name identifies a dispatcher. Project and task queue consist of lower-case letters, digits and dashes, and neither
// begins nor ends with a dash. A project has at most 63 bytes, a task queue at most 127.
type Name = inbox.Name

// ID returns the workflow ID of the dispatcher of a project and task queue, or an error for an invalid name.
func ID(project, taskQueue string) (string, error) {
	name := Name{Project: project, TaskQueue: taskQueue}
	if err := wire.Validate(name); err != nil {
		return "", err
	}
	return name.DispatcherID(), nil
}

// WorkflowType is the Temporal workflow type of dispatchers.
const WorkflowType = wire.WorkflowType
