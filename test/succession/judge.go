package succession

import (
	"fmt"
	"strings"

	"go.temporal.io/api/enums/v1"

	"github.com/signalbox-dev/signalbox/test/platform"
)

// Judge fails the test if the executions violate a rule.
func Judge(t platform.T, line []Execution) {
	t.Helper()
	if wrong := Wrong(line); len(wrong) > 0 {
		t.Fatalf("%s", strings.Join(wrong, "\n"))
	}
}

// Wrong lists the violations of executions in order of their starts: of one ID at most one is open; each begins after
// the previous one has ended; none ends by itself; the owners' epochs increase, and only the same owner keeps its
// epoch.
func Wrong(line []Execution) []string {
	var wrong []string
	last := map[string]Execution{}
	for _, e := range line {
		before, ok := last[e.ID]
		last[e.ID] = e
		wrong = append(wrong, e.ended()...)
		owner := before.Owner()
		for _, next := range e.Owners {
			if next.Epoch < owner.Epoch || next.Epoch == owner.Epoch && next.Server != owner.Server {
				wrong = append(wrong, fmt.Sprintf("%s went from epoch %d of %s to epoch %d of %s", e.ID, owner.Epoch, owner.Server,
					next.Epoch, next.Server))
			}
			owner = next
		}
		if !ok {
			continue
		}
		switch {
		case before.Open():
			wrong = append(wrong, fmt.Sprintf("%s is open while %s has begun", before, e))
		case before.Close.After(e.Start) && before.Status != enums.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW:
			// An execution that is continued ends in the transaction that begins the next.
			wrong = append(wrong, fmt.Sprintf("%s ended %s after %s had begun", before, before.Close.Sub(e.Start), e))
		}
	}
	return wrong
}

// ended lists the violations in how an execution ended: dispatchers are terminated with a reason, or continued.
func (e Execution) ended() []string {
	switch e.Status {
	case enums.WORKFLOW_EXECUTION_STATUS_RUNNING, enums.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW:
		return nil
	case enums.WORKFLOW_EXECUTION_STATUS_TERMINATED:
		if e.Reason != "" {
			return nil
		}
		return []string{fmt.Sprintf("%s was terminated without a reason", e)}
	}
	return []string{fmt.Sprintf("%s ended by itself", e)}
}

// Terminated counts the terminated executions.
func Terminated(line []Execution) int {
	n := 0
	for _, e := range line {
		if e.Status == enums.WORKFLOW_EXECUTION_STATUS_TERMINATED {
			n++
		}
	}
	return n
}

// Open returns the open executions.
func Open(line []Execution) []Execution {
	var open []Execution
	for _, e := range line {
		if e.Open() {
			open = append(open, e)
		}
	}
	return open
}

// Owners returns the owners of all executions, in order.
func Owners(line []Execution) []Owner {
	var owners []Owner
	for _, e := range line {
		owners = append(owners, e.Owners...)
	}
	return owners
}
