package runcmd

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/cli/invocation"
	"github.com/signalbox-dev/signalbox/internal/cli/output"
)

const unknown = "unknown"

// printAttempts prints the requests of calls: those of all calls where the format is wide, else of those that need
// attention.
func printAttempts(s *invocation.Invocation, steps []*signalboxv1.Step) error {
	var rows []output.Row
	for _, step := range steps {
		attempts := step.GetAttempts()
		if !slices.ContainsFunc(attempts, func(a *signalboxv1.Attempt) bool { return a.GetOutcome() != "" }) {
			continue // it is no call, or its first request is in progress
		}
		if s.Format() != output.Wide && len(attempts) == 1 && attempts[0].GetOutcome() != unknown {
			continue
		}
		for _, a := range attempts {
			rows = append(rows, attemptRow(step, a))
		}
	}
	if len(rows) == 0 {
		return nil
	}
	if err := s.Heading("requests of calls"); err != nil {
		return err
	}
	return output.Rows(s.Out, s.Format(), s.Style(), rows)
}

// attemptRow is the row of a request. The start of one that an earlier worker sent is not known.
func attemptRow(step *signalboxv1.Step, a *signalboxv1.Attempt) output.Row {
	began, ended, took, status := unknown, "", "", ""
	if a.GetStartTime() != nil {
		began = output.Moment(a.GetStartTime())
	}
	if a.GetEndTime() != nil {
		ended, took = output.Moment(a.GetEndTime()), cmp.Or(output.Between(a.GetStartTime(), a.GetEndTime()), unknown)
	}
	if a.GetHttpStatus() != 0 {
		status = fmt.Sprint(a.GetHttpStatus())
	}
	retryAfter := ""
	if a.GetRetryAfter() != nil {
		retryAfter = output.Took(a.GetRetryAfter().AsDuration())
	}
	return output.Cells(
		"STEP", fmt.Sprint(step.GetNumber()), "TASK", step.GetTask(), "ATTEMPT", fmt.Sprint(a.GetNumber()),
		"STARTED", began, "DURATION", took, "OUTCOME", cmp.Or(a.GetOutcome(), "open"), "HTTP", status,
		"REQUEST", strings.TrimSpace(a.GetMethod()+" "+a.GetHost()), "+ENDED", ended, "+RETRY AFTER", retryAfter,
	)
}
