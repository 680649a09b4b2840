package workflow

import (
	"fmt"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/internal/apperror"
)

// documentError returns the error for a document with violations: the first one in the message, all of them as fields.
func documentError(what string, violations dsl.Violations) error {
	message := what
	count := 0
	f := apperror.New(apperror.Invalid, apperror.InvalidDocument, "")
	for _, p := range violations {
		if p.Severity != dsl.SeverityError {
			continue
		}
		if count == 0 {
			message = fmt.Sprintf("%s: %s", what, p)
		}
		count++
		f = f.WithField("source", "%s", p)
	}
	if count > 1 {
		message += fmt.Sprintf(" (and %d more)", count-1)
	}
	f.Message = message
	return f
}

// NotPublished returns the error for a workflow without a published version.
func NotPublished(name string) error {
	return apperror.New(apperror.Refused, apperror.WorkflowNotPublished,
		"workflow %q has no published version; publish its draft first (`signalbox workflow publish`)", name)
}
