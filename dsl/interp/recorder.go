package interp

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/interp/internal/payload"
)

// recorder holds the records: the steps that changed since the last TakeRecords, and the state of the run.
type recorder struct {
	total, done int64
	dirty       []*step
	run         RunRecord
	runDirty    bool
	summary     summarizer
	payloads    payload.Shortener
}

// step is the record of an open frame, or of a closed one until its record is taken.
type step struct {
	number     int64
	path       string
	task       *dsl.Task
	status     Status
	waitKind   string
	waitUntil  time.Time
	deadline   time.Time // see StepRecord.Deadline
	deadlineBy string
	taken      []TakenEvent
	attempt    int
	startedAt  time.Time
	endedAt    time.Time
	input      any
	output     any
	hasOutput  bool
	err        *dsl.Error
	attempts   []AttemptRecord
	kept       bool // see StepRecord.Kept
	requests   bool // attempts are the requests of a call
	method     string
	host       string // see AttemptRecord
	dirty      bool
}

func (b *recorder) open(f *frame, now time.Time) *step {
	b.total++
	s := &step{
		number: b.total, path: f.path, task: f.task, status: StatusRunning, attempt: f.attempt(),
		startedAt: now, input: f.value,
	}
	b.markDirty(s)
	b.runDirty = true
	if leaving := b.summary.entered(s); leaving != nil {
		b.markDirty(leaving) // StepRecord.Kept changes
	}
	return s
}

// full reports whether so many records are pending that they must be taken before more are created.
func (b *recorder) full() bool {
	return b.summary.bounded() && len(b.dirty) >= b.summary.limits.Pending
}

func (b *recorder) markDirty(s *step) {
	if !s.dirty {
		s.dirty = true
		b.dirty = append(b.dirty, s)
	}
}

func (b *recorder) close(s *step, status Status, now time.Time) {
	s.resume()
	s.status, s.endedAt = status, now
	s.deadline, s.deadlineBy, s.taken = time.Time{}, "", nil
	if n := len(s.attempts); n > 0 && s.attempts[n-1].EndedAt == nil {
		if s.requests {
			s.setOutcome(OutcomeUnknown)
		}
		s.endAttempt(now, s.err)
	}
	b.done++
	b.runDirty = true
	if b.summary.ended(s, b.total) {
		b.markDirty(s)
	}
}

func (s *step) wait(kind string, until time.Time) {
	s.status, s.waitKind, s.waitUntil = StatusWaiting, kind, until
}

func (s *step) resume() {
	s.status, s.waitKind, s.waitUntil = StatusRunning, "", time.Time{}
}

func (s *step) beginAttempt(number int, now time.Time) {
	if len(s.attempts) >= maxAttempts {
		s.attempts = s.attempts[len(s.attempts)-maxAttempts+1:]
	}
	s.attempts = append(s.attempts, AttemptRecord{Number: number, StartedAt: now, Method: s.method, Host: s.host})
}

func (s *step) endAttempt(now time.Time, err *dsl.Error) {
	if n := len(s.attempts); n > 0 && s.attempts[n-1].EndedAt == nil {
		s.attempts[n-1].EndedAt, s.attempts[n-1].Error = &now, err
	}
}

// setOutcome sets the outcome of the open attempt.
func (s *step) setOutcome(outcome string) {
	if n := len(s.attempts); n > 0 && s.attempts[n-1].EndedAt == nil {
		s.attempts[n-1].Outcome = outcome
	}
}

// setAttempts replaces the attempts of a call by the requests that were sent. runError is the result of the last one.
// The clocks of processes differ, so no attempt begins before its step or ends before it began.
func (s *step) setAttempts(attempts []Attempt, runError *dsl.Error) {
	s.attempts = nil
	for i, a := range attempts {
		started := laterOf(normalizeTime(a.StartedAt), s.startedAt)
		ended := laterOf(normalizeTime(a.EndedAt), started)
		s.beginAttempt(i+1, started)
		r := &s.attempts[len(s.attempts)-1]
		r.EndedAt, r.HTTPStatus, r.RetryAfter = &ended, a.Status, a.RetryAfter
		last := i == len(attempts)-1
		if last {
			r.Error = runError
		}
		switch {
		case a.Status != 0:
			r.Outcome = OutcomeAnswered
		case !a.Unknown && last && runError != nil:
			r.Outcome = OutcomeFailed
		default:
			r.Outcome = OutcomeUnknown
		}
	}
}

func laterOf(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// TakeRecords returns the changes since the last call: the run (nil if unchanged) and the steps by number. A step that
// changed several times is returned once, in its current state. A step that a summary counts by now is left out.
func (m *Machine) TakeRecords() (*RunRecord, []StepRecord) {
	b := &m.recorder
	b.dirty = slices.DeleteFunc(b.dirty, func(s *step) bool { return !b.summary.recorded(s, b.total) })
	slices.SortFunc(b.dirty, func(x, y *step) int { return cmp.Compare(x.number, y.number) })
	var steps []StepRecord
	if len(b.dirty) > 0 {
		steps = make([]StepRecord, len(b.dirty))
	}
	for i, s := range b.dirty {
		steps[i] = b.record(s)
		s.dirty = false
	}
	b.dirty = nil
	if !b.runDirty {
		return nil, steps
	}
	b.runDirty = false
	run := b.run
	run.StepsTotal, run.StepsDone, run.Summary = b.total, b.done, b.summary.take(b.total)
	return &run, steps
}

func (b *recorder) record(s *step) StepRecord {
	r := StepRecord{
		Number: s.number, Path: s.path, Pointer: s.task.Pointer, Task: s.task.Name, Kind: string(s.task.Body.Kind()),
		Status: s.status, WaitKind: s.waitKind, Attempt: s.attempt, StartedAt: s.startedAt, Error: s.err,
		Attempts: slices.Clone(s.attempts), Kept: s.kept, DeadlineBy: s.deadlineBy, Taken: slices.Clone(s.taken),
	}
	if !s.deadline.IsZero() {
		deadline := s.deadline
		r.Deadline = &deadline
	}
	if !s.waitUntil.IsZero() {
		until := s.waitUntil
		r.WaitUntil = &until
	}
	if !s.endedAt.IsZero() {
		ended := s.endedAt
		r.EndedAt = &ended
	}
	r.Input, r.InputSize, r.wholeInput = b.encode(s.input)
	if s.hasOutput {
		r.Output, r.OutputSize, r.wholeOutput = b.encode(s.output)
	}
	return r
}

// encode returns the recorded form of a payload and, if it is shortened, its size and the payload itself.
func (b *recorder) encode(v any) (recorded json.RawMessage, size int, whole any) {
	if recorded, size = b.payloads.Encode(v, MaxRecordedPayload); size == 0 {
		return recorded, 0, nil
	}
	return recorded, size, v
}

// noteRun updates the run's record.
func (m *Machine) noteRun() {
	next := RunRecord{Status: StatusRunning, Since: m.now}
	if o := m.outcome; o != nil {
		next.Status, next.Error, next.Output = o.Status, o.Error, o.JSON
	} else if kind, until, waits := m.waiting(); waits {
		next.Status, next.WaitKind, next.WaitUntil = StatusWaiting, kind, until
	}
	run := &m.recorder.run
	if run.Status == next.Status && run.WaitKind == next.WaitKind && sameTime(run.WaitUntil, next.WaitUntil) {
		return
	}
	if run.Status == next.Status && run.WaitKind == next.WaitKind {
		next.Since = run.Since
	}
	*run = next
	m.recorder.runDirty = true
}

// waiting reports whether every open branch waits, and for what. A timer takes precedence over events. A closed gate is
// reported at once, even if calls or timers are open behind it.
func (m *Machine) waiting() (kind string, until *time.Time, waits bool) {
	switch {
	case m.gate.paused:
		return WaitPaused, nil, true
	case m.gate.refused && slices.ContainsFunc(m.gate.stopped, open):
		return WaitQuota, m.gateOpens(), true
	case m.gate.asking != 0:
		return "", nil, false
	}
	holding := slices.ContainsFunc(m.held, open) || slices.ContainsFunc(m.gate.stopped, open)
	if len(m.ready) > 0 || holding || len(m.calls) > 0 {
		return "", nil, false
	}
	for _, a := range m.alarms {
		if a.Kind != alarmWait && a.Kind != alarmRetry || waits && !a.At.Before(*until) {
			continue
		}
		at := a.At
		waits, until, kind = true, &at, WaitTimer
		if a.Kind == alarmRetry {
			kind = WaitRetry
		}
	}
	if !waits && slices.ContainsFunc(m.parents, func(f *frame) bool { return f.step.status == StatusWaiting }) {
		return WaitChild, nil, true
	}
	if !waits && slices.ContainsFunc(m.listeners, func(f *frame) bool { return f.step.status == StatusWaiting }) {
		return WaitEvent, nil, true
	}
	return kind, until, waits
}

func sameTime(a, b *time.Time) bool {
	return a == nil && b == nil || a != nil && b != nil && a.Equal(*b)
}
