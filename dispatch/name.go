package dispatch

import (
	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/dispatch/internal/contract"
)

// Name is which dispatcher is meant. Project and task queue consist of lower-case letters, digits and dashes, and neither
// begins nor ends with a dash; a project has at most 63 bytes, a task queue 127.
type Name = inbox.Name

// ID returns the workflow ID of the dispatcher of a project and task queue, or what is wrong with the names.
func ID(project, taskQueue string) (string, error) {
	name := Name{Project: project, TaskQueue: taskQueue}
	if err := contract.Validate(name); err != nil {
		return "", err
	}
	return name.DispatcherID(), nil
}

// WorkflowType is the type under which Temporal knows dispatchers.
const WorkflowType = contract.WorkflowType
