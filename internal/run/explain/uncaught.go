package explain

import (
	"fmt"
	"strings"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/internal/redact"
	"github.com/signalbox-dev/signalbox/internal/run"
)

// Uncaught returns in one line why the catch of a failed try did not handle the error of its last attempt. It is empty
// where the step is not a failed try, where the error did not reach the catch, and where the reason is unknown. It
// compares the texts of the error in the row, which may be redacted.
func Uncaught(task *dsl.Task, t *run.Step) string {
	b, ok := bodyOf[*dsl.Try](task)
	if !ok || t.Status != stepFailed || t.Error == nil || len(t.Attempts) == 0 {
		return ""
	}
	raised := t.Attempts[len(t.Attempts)-1].Error
	if raised == nil {
		return ""
	}
	own := *t.Error == *raised
	if own && task.Timeout != nil && raised.Instance == task.Pointer &&
		dsl.SameErrorType(raised.Type, dsl.ErrorTypeTimeout) {
		if b.Catch.Retry != nil && b.Catch.Retry.Limit.Attempt.Duration != nil {
			return "" // the row does not record which of the two timeouts it was
		}
		return "the task's own timeout ended it, which its catch cannot handle"
	}
	if differences, certain := mismatches(b.Catch.Errors, raised); certain {
		return "catch did not match: " + strings.Join(differences, "; ")
	} else if len(differences) > 0 {
		return "whether catch matched is unknown: " + strings.Join(differences, "; ")
	}
	if !own {
		if strings.HasPrefix(t.Error.Instance, task.Pointer+"/catch/") {
			return "catch matched, and a task of its handler failed"
		}
		return ""
	}
	return refused(b.Catch, member(member(task.Definition, "catch"), "then") != nil, len(t.Attempts))
}

// mismatches returns how an error differs from what a filter requires. The mismatch is certain unless each difference
// is in a text that is redacted in the row.
func mismatches(f *dsl.ErrorFilter, e *run.Error) (found []string, certain bool) {
	if f == nil || f.Matches(e) {
		return nil, false
	}
	if f.Type != nil && !dsl.SameErrorType(*f.Type, e.Type) {
		found, certain = append(found, difference("type", *f.Type, e.Type)), !strings.Contains(e.Type, redact.Mark)
	}
	if f.Status != nil && *f.Status != e.Status {
		found, certain = append(found, difference("status", fmt.Sprint(*f.Status), fmt.Sprint(e.Status))), true
	}
	for _, m := range []struct {
		name string
		want *string
		got  string
	}{{"title", f.Title, e.Title}, {"detail", f.Detail, e.Detail}, {"instance", f.Instance, e.Instance}} {
		if m.want != nil && *m.want != m.got {
			found = append(found, difference(m.name, *m.want, m.got))
			certain = certain || !strings.Contains(m.got, redact.Mark)
		}
	}
	return found, certain
}

func difference(name, want, got string) string {
	if strings.Contains(got, redact.Mark) {
		return fmt.Sprintf("errors.with.%s is %q, that of the error is redacted and cannot be compared", name, short(want))
	}
	if got == "" {
		return fmt.Sprintf("errors.with.%s is %q, the error has none", name, short(want))
	}
	return fmt.Sprintf("errors.with.%s is %q, that of the error %q", name, short(want), short(got))
}

// refused returns why a catch with a matching filter did not handle an error. goesOn reports that the catch has its own
// flow directive.
func refused(c *dsl.Catch, goesOn bool, attempts int) string {
	var reasons []string
	if c.When != nil {
		reasons = append(reasons, "catch.when was not true")
	}
	if c.ExceptWhen != nil {
		reasons = append(reasons, "catch.exceptWhen was true")
	}
	if c.Retry != nil && c.Tasks == nil && !goesOn {
		made := "1 attempt was"
		if attempts > 1 {
			made = fmt.Sprintf("%d attempts were", attempts)
		}
		reasons = append(reasons, made+" made, catch.retry allowed no further one, and there is no handler (catch.do)")
	}
	switch len(reasons) {
	case 0:
		return ""
	case 1:
		return "the filter of catch matched, but " + reasons[0]
	}
	return "the filter of catch matched, but either " + strings.Join(reasons, ", or ")
}
