package interp

import (
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/interp/internal/backoff"
)

// fault is an error on its way outwards.
type fault struct {
	problem dsl.Error
	// unanswered tells that calls were cut off or failed without it being known whether their receivers acted.
	unanswered bool
}

func newError(kind string, status int, instance, detail string) dsl.Error {
	return dsl.Error{Type: kind, Status: status, Title: titleOf(kind), Detail: detail, Instance: instance}
}

// seen is an error as expressions see it: without what it does not state. Runs before BoundedSince see all members of each error.
func (m *Machine) seen(problem *dsl.Error) map[string]any {
	value := problem.Value()
	if m.bounded() {
		maps.DeleteFunc(value, func(name string, v any) bool { return v == "" && name != "type" })
	}
	return value
}

// titleOf is the title of an error of the machine: a phrase for a standard type, otherwise the type's last part. Runs before
// BoundedSince have it also for errors that a document raises without a title.
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
func (m *Machine) fail(f *frame, problem *dsl.Error) {
	m.fault(f, fault{problem: *problem})
}

// fault raises an error in f and carries it outwards until a try catches it, a race survives it, or the run fails.
func (m *Machine) fault(f *frame, ft fault) {
	m.handling = true
	ft.problem = m.cut(ft.problem)
	for f != nil {
		ft.unanswered = m.cutOff(f) || ft.unanswered
		p := f.parent
		if f.task != nil {
			problem := ft.problem
			f.step.err = &problem
			m.book.close(f.step, StatusFailed, m.now)
			m.remove(f)
			if p.task != nil && m.survives(p, &ft) {
				return
			}
			f = p
			continue
		}
		m.remove(f)
		if f.role == roleTry {
			if m.catch(p, &ft) {
				return
			}
		}
		f = p
	}
	m.root = nil
	problem := ft.problem
	m.end(Outcome{Status: StatusFailed, Error: &problem})
}

// survives tells whether a fork goes on although one of its branches has failed. If not, ft is what fails the fork.
func (m *Machine) survives(f *frame, ft *fault) bool {
	r := f.fork
	if !f.task.Body.(*dsl.Fork).Compete {
		return false
	}
	r.open--
	if r.first == nil {
		first := *ft
		r.first = &first
	}
	if r.open > 0 {
		return true
	}
	unanswered := ft.unanswered
	*ft = *r.first
	ft.unanswered = ft.unanswered || unanswered
	return false
}

// tryBody begins an attempt of a try task.
func (m *Machine) tryBody(f *frame) {
	f.phase = phaseBlocked
	b := f.task.Body.(*dsl.Try)
	f.step.beginAttempt(f.try.number, m.now)
	m.book.mark(f.step)
	if retry := b.Catch.Retry; retry != nil && retry.Limit.Attempt.Duration != nil {
		d, problem := m.duration(retry.Limit.Attempt.Duration, f.input, m.variables(f), f.task.Pointer)
		if problem != nil {
			m.fail(f, problem)
			return
		}
		m.setAlarm(f, alarmAttempt, d)
	}
	m.newList(f, roleTry, b.Tasks, f.input)
}

// attemptTimedOut ends the current attempt of a try with a timeout error, which its catch sees.
func (m *Machine) attemptTimedOut(f *frame) {
	ft := fault{problem: timeoutError(f.task.Pointer, fmt.Sprintf("attempt %d did not end within its limit", f.try.number))}
	ft.unanswered = m.cancelKids(f)
	if !m.catch(f, &ft) {
		m.fault(f, ft)
	}
}

// catch handles an error of a try's body: a retry, the handler, or nothing more to do. false: the error, or the error
// of judging it, goes on outwards.
func (m *Machine) catch(f *frame, ft *fault) bool {
	c := f.task.Body.(*dsl.Try).Catch
	problem := ft.problem
	f.step.endAttempt(m.now, &problem)
	for _, a := range f.alarms {
		if a.Kind == alarmAttempt {
			m.dropAlarm(a)
			break
		}
	}
	if !c.Errors.Matches(&ft.problem) {
		return false
	}
	vars := m.variables(f)
	vars[c.As] = m.seen(&ft.problem)
	wanted, failed := m.permits(f, c.When, c.ExceptWhen, vars)
	if failed != nil {
		ft.problem = *failed
		return false
	}
	if !wanted {
		return false
	}
	if c.Retry != nil {
		again, failed := m.retry(f, c.Retry, vars, ft.unanswered)
		if failed != nil {
			ft.problem = *failed
			return false
		}
		if again {
			return true
		}
		if c.Tasks == nil && !catchHasThen(f.task) {
			return false
		}
	}
	if c.Tasks == nil {
		m.finish(f, f.input, catchThen(f.task))
		return true
	}
	m.newList(f, roleCatch, c.Tasks, f.input).binds = []binding{{c.As, m.seen(&ft.problem)}}
	return true
}

// permits evaluates a pair of conditions; absent ones permit.
func (m *Machine) permits(f *frame, when, except *dsl.Expr, vars map[string]any) (bool, *dsl.Error) {
	if when != nil {
		if holds, failed := m.holds(when, f.input, vars, f.task.Pointer); failed != nil || !holds {
			return false, failed
		}
	}
	if except != nil {
		holds, failed := m.holds(except, f.input, vars, f.task.Pointer)
		return !holds, failed
	}
	return true, nil
}

// retry plans the next attempt of a try if its policy allows one.
func (m *Machine) retry(f *frame, p *dsl.RetryPolicy, vars map[string]any, unanswered bool) (bool, *dsl.Error) {
	if ok, failed := m.permits(f, p.When, p.ExceptWhen, vars); failed != nil || !ok {
		return false, failed
	}
	retries := f.try.number // how many there will have been with this one
	if p.Limit.Attempt.Count > 0 && retries > p.Limit.Attempt.Count {
		return false, nil
	}
	delay, failed := m.retryDelay(f, p, retries, vars)
	if failed != nil {
		return false, failed
	}
	if p.Limit.Duration != nil {
		limit, failed := m.duration(p.Limit.Duration, f.input, vars, f.task.Pointer)
		if failed != nil {
			return false, failed
		}
		if later(m.now, delay).Sub(f.try.firstAt) > limit {
			return false, nil
		}
	}
	f.try.number++
	if !unanswered {
		f.try.scope++
	}
	f.step.attempt = f.try.number
	f.phase = phaseAttempt
	if delay <= 0 {
		m.enqueue(f)
		return true, nil
	}
	f.step.wait(WaitRetry, m.setAlarm(f, alarmRetry, delay).At)
	m.book.mark(f.step)
	return true, nil
}

// retryDelay is the time before the n-th retry: the policy's delay, grown by its back-off, plus jitter.
func (m *Machine) retryDelay(f *frame, p *dsl.RetryPolicy, n int, vars map[string]any) (time.Duration, *dsl.Error) {
	at := f.task.Pointer
	var delay time.Duration
	var failed *dsl.Error
	if p.Delay != nil {
		if delay, failed = m.duration(p.Delay, f.input, vars, at); failed != nil {
			return 0, failed
		}
	}
	delay = backoff.Grown(delay, p.Backoff.Kind, n)
	if p.Jitter == nil {
		return delay, nil
	}
	from, failed := m.duration(p.Jitter.From, f.input, vars, at)
	if failed != nil {
		return 0, failed
	}
	to, failed := m.duration(p.Jitter.To, f.input, vars, at)
	if failed != nil {
		return 0, failed
	}
	return delay + from + backoff.Jitter(m.start.RunID, f.path, n, to-from), nil
}

// catchHasThen tells whether a try's catch states a directive. An explicit "continue" differs from none: it takes
// precedence over the try's own, which the model's zero value cannot tell.
func catchHasThen(t *dsl.Task) bool {
	definition, _ := t.Definition.(map[string]any)
	catch, _ := definition["catch"].(map[string]any)
	_, given := catch["then"]
	return given
}

// catchThen is the directive to follow after an error was handled.
func catchThen(t *dsl.Task) dsl.Flow {
	if catchHasThen(t) {
		return t.Body.(*dsl.Try).Catch.Then
	}
	return t.Then
}
