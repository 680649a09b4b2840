package interp

import (
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/signalbox-dev/signalbox/dsl"
)

// raised is an error that is being propagated outwards.
type raised struct {
	runError dsl.Error
	// unanswered reports that calls were canceled or failed while it is unknown whether their receivers acted.
	unanswered bool
	// retryAfter is the least delay before a retry, which the called service asks for.
	retryAfter time.Duration
}

func newError(kind string, status int, instance, detail string) dsl.Error {
	return dsl.Error{Type: kind, Status: status, Title: titleOf(kind), Detail: detail, Instance: instance}
}

// errorValue returns an error as expressions access it: without members that are not set.
func errorValue(runError *dsl.Error) map[string]any {
	value := runError.Value()
	maps.DeleteFunc(value, func(name string, v any) bool { return v == "" && name != "type" })
	return value
}

// titleOf returns the title of an error that the machine raises: a phrase for a standard type, otherwise the last part
// of the type.
func titleOf(kind string) string {
	for _, standard := range []struct{ kind, title string }{
		{dsl.ErrorTypeConfiguration, "Wrong configuration"},
		{dsl.ErrorTypeValidation, "Validation failed"},
		{dsl.ErrorTypeExpression, "Expression failed"},
		{dsl.ErrorTypeAuthentication, "Not authenticated"},
		{dsl.ErrorTypeAuthorization, "Not authorized"},
		{dsl.ErrorTypeTimeout, "Timed out"},
		{dsl.ErrorTypeCommunication, "Communication failed"},
		{dsl.ErrorTypeRuntime, "Cannot go on"},
	} {
		if dsl.SameErrorType(kind, standard.kind) {
			return standard.title
		}
	}
	return kind[strings.LastIndexAny(strings.TrimRight(kind, "/"), "/:#")+1:]
}

func timeoutError(instance, detail string) dsl.Error {
	return newError(dsl.ErrorTypeTimeout, 408, instance, detail)
}

// fail raises an error in a task.
func (m *Machine) fail(f *frame, runError *dsl.Error) {
	m.propagate(f, raised{runError: *runError})
}

// propagate raises an error in f and passes it outwards until a try catches it, a competing fork continues without the
// branch, or the run fails.
func (m *Machine) propagate(f *frame, failure raised) {
	m.handling = true
	failure.runError = truncate(failure.runError)
	for f != nil {
		failure.unanswered = m.cancelPending(f) || failure.unanswered
		p := f.parent
		if f.task != nil {
			if _, calls := f.task.Body.(*dsl.FunctionCall); calls {
				failure.runError.Instance = f.task.Pointer // what is in the function is not of the document
			}
			runError := failure.runError
			f.step.err = &runError
			m.recorder.close(f.step, StatusFailed, m.now)
			m.remove(f)
			if p.task != nil && m.forkContinues(p, &failure) {
				return
			}
			f = p
			continue
		}
		m.remove(f)
		if f.role == roleTry {
			if m.catch(p, &failure) {
				return
			}
		}
		f = p
	}
	m.root = nil
	runError := failure.runError
	m.end(Outcome{Status: StatusFailed, Error: &runError})
}

// forkContinues reports whether a fork continues although one of its branches has failed. If not, failure is the error
// of the fork.
func (m *Machine) forkContinues(f *frame, failure *raised) bool {
	r := f.fork
	if !f.task.Body.(*dsl.Fork).Compete {
		return false
	}
	r.open--
	if r.first == nil {
		first := *failure
		r.first = &first
	}
	if r.open > 0 {
		return true
	}
	unanswered := failure.unanswered
	*failure = *r.first
	failure.unanswered = failure.unanswered || unanswered
	return false
}

// tryBody begins an attempt of a try task.
func (m *Machine) tryBody(f *frame) {
	f.phase = phaseBlocked
	b := f.task.Body.(*dsl.Try)
	f.step.beginAttempt(f.try.number, m.now)
	m.recorder.markDirty(f.step)
	if retry := b.Catch.Retry; retry != nil && retry.Limit.Attempt.Duration != nil {
		d, runError := m.duration(retry.Limit.Attempt.Duration, f.input, m.variables(f), f.task.Pointer)
		if runError != nil {
			m.fail(f, runError)
			return
		}
		m.setAlarm(f, alarmAttempt, d)
	}
	m.newList(f, roleTry, b.Tasks, f.input)
}

// attemptTimedOut ends the current attempt of a try with a timeout error, which its catch may handle.
func (m *Machine) attemptTimedOut(f *frame) {
	failure := raised{runError: timeoutError(f.task.Pointer,
		fmt.Sprintf("attempt %d did not end within its limit", f.try.number))}
	failure.unanswered = m.cancelChildren(f)
	if !m.catch(f, &failure) {
		m.propagate(f, failure)
	}
}

// dropAttemptAlarm drops the alarm of the current attempt of a try task, if it has one.
func (m *Machine) dropAttemptAlarm(f *frame) {
	for _, a := range f.alarms {
		if a.Kind == alarmAttempt {
			m.dropAlarm(a)
			return
		}
	}
}

// catch handles an error of a try's body by a retry, the handler, or nothing. If it returns false, the error, or that
// of a condition, is passed outwards.
func (m *Machine) catch(f *frame, failure *raised) bool {
	c := f.task.Body.(*dsl.Try).Catch
	runError := failure.runError
	f.step.endAttempt(m.now, &runError)
	m.dropAttemptAlarm(f)
	if !c.Errors.Matches(&failure.runError) {
		return false
	}
	vars, value := m.variables(f), errorValue(&failure.runError)
	vars[c.As] = value
	wanted, failed := m.permits(f, c.When, c.ExceptWhen, value, vars)
	if failed != nil {
		failure.runError = *failed
		return false
	}
	if !wanted {
		return false
	}
	if c.Retry != nil {
		again, failed := m.retry(f, c.Retry, vars, failure)
		if failed != nil {
			failure.runError = *failed
			return false
		}
		if again {
			return true
		}
		if !c.Handles() {
			return false
		}
	}
	m.noteBranch(f, BranchCatch)
	if c.Tasks == nil {
		m.finish(f, f.input, catchThen(f.task))
		return true
	}
	m.newList(f, roleCatch, c.Tasks, f.input).binds = []binding{{c.As, errorValue(&failure.runError)}}
	return true
}

// permits evaluates a pair of conditions on the error value of a catch; absent ones permit.
func (m *Machine) permits(f *frame, when, except *dsl.Expr, value any, vars map[string]any) (bool, *dsl.Error) {
	if !m.atLeast(2) {
		value = f.input
	}
	if when != nil {
		if holds, failed := m.holds(when, value, vars, f.task.Pointer); failed != nil || !holds {
			return false, failed
		}
	}
	if except != nil {
		holds, failed := m.holds(except, value, vars, f.task.Pointer)
		return !holds, failed
	}
	return true, nil
}

// retry schedules the next attempt of a try if its policy allows one.
func (m *Machine) retry(f *frame, p *dsl.RetryPolicy, vars map[string]any, failure *raised) (bool, *dsl.Error) {
	if ok, failed := m.permits(f, p.When, p.ExceptWhen, errorValue(&failure.runError), vars); failed != nil || !ok {
		return false, failed
	}
	retries := f.try.number // the number of retries including this one
	if p.Limit.Attempt.Count > 0 && retries > p.Limit.Attempt.Count {
		return false, nil
	}
	delay, failed := m.retryDelay(f, p, retries, vars, failure.retryAfter)
	if failed != nil {
		return false, failed
	}
	if p.Limit.Duration != nil {
		limit, failed := m.duration(p.Limit.Duration, f.input, vars, f.task.Pointer)
		if failed != nil {
			return false, failed
		}
		if addTime(m.now, delay).Sub(f.try.firstAt) > limit {
			return false, nil
		}
	}
	f.try.number++
	if !failure.unanswered {
		f.try.scope++
	}
	f.step.attempt = f.try.number
	f.phase = phaseAttempt
	if delay <= 0 {
		m.enqueue(f)
		return true, nil
	}
	f.step.wait(WaitRetry, m.setAlarm(f, alarmRetry, delay).At)
	m.recorder.markDirty(f.step)
	return true, nil
}

// catchThen returns the directive to follow after an error was handled.
func catchThen(t *dsl.Task) dsl.Flow {
	if c := t.Body.(*dsl.Try).Catch; c.HasThen {
		return c.Then
	}
	return t.Then
}
