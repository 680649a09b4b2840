package run

import (
	"fmt"
	"strings"

	"github.com/signalbox-dev/signalbox/internal/requestid"
)

// ChildRequestPrefix begins the request IDs of runs that other runs start. Callers cannot use it: a run with such a
// request ID would be found in place of the child.
const ChildRequestPrefix = "child:"

// requestIDViolation returns what is wrong with the request ID of a start.
func requestIDViolation(req StartRequest) string {
	if req.Parent.RunID == "" && strings.HasPrefix(req.RequestID, ChildRequestPrefix) {
		return fmt.Sprintf("begins with %q, which is reserved for runs that other runs start; use another one",
			ChildRequestPrefix)
	}
	return requestid.Violation(req.RequestID)
}
