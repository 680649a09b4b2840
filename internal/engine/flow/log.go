package flow

import (
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

const (
	// KeptLog is how many bytes are kept of each stream of a program that has ended, from its end.
	KeptLog = 128 << 10
	// LiveLog is how many bytes the heartbeats of a program carry of each stream, from its end.
	LiveLog = 16 << 10
)

// LogStream is the end of what a program has printed to one of its streams.
type LogStream struct {
	Text string `json:"text,omitempty"`
	// SkippedBytes and SkippedLines are what was printed before Text.
	SkippedBytes int64 `json:"skippedBytes,omitempty"`
	SkippedLines int64 `json:"skippedLines,omitempty"`
}

// EndOf returns the end of what was printed to a stream, of at most limit bytes. It begins with a whole line where it
// has one, so that what is redacted later is not cut in most cases.
func EndOf(printed string, limit int) LogStream {
	if len(printed) <= limit {
		return LogStream{Text: printed}
	}
	from := len(printed) - limit
	if line := strings.IndexByte(printed[from-1:], '\n'); line >= 0 && from+line < len(printed) {
		from += line
	}
	for from < len(printed) && !utf8.RuneStart(printed[from]) {
		from++
	}
	return LogStream{
		Text: printed[from:], SkippedBytes: int64(from), SkippedLines: int64(strings.Count(printed[:from], "\n")),
	}
}

// ProgramLog is what one attempt of a program has printed.
type ProgramLog struct {
	Step    int64     `json:"step"` // number of the step
	Task    string    `json:"task"` // its name
	Attempt int       `json:"attempt"`
	Stdout  LogStream `json:"stdout,omitzero"`
	Stderr  LogStream `json:"stderr,omitzero"`
}

// Log returns the log of a program, with up to limit bytes of each stream.
func (r ProgramRequest) Log(stdout, stderr string, limit int) ProgramLog {
	return ProgramLog{
		Step: r.Step, Task: r.Task, Attempt: r.Attempt, Stdout: EndOf(stdout, limit), Stderr: EndOf(stderr, limit),
	}
}

// WithLog returns the error of a program's activity with what the program has printed.
func WithLog(err error, log ProgramLog) error {
	app, is := errors.AsType[*temporal.ApplicationError](err)
	if !is {
		return err
	}
	failure, _ := failureOf(err)
	failure.Log = &log
	return temporal.NewApplicationErrorWithOptions(app.Message(), app.Type(), temporal.ApplicationErrorOptions{
		NonRetryable: app.NonRetryable(), Category: app.Category(), Cause: app.Unwrap(), Details: []any{failure},
	})
}

// logOf returns the log that the error of a program's activity carries; nil if there is none. A lost runner leaves that
// of its last heartbeat.
func logOf(err error) *ProgramLog {
	var log ProgramLog
	if app, is := errors.AsType[*temporal.ApplicationError](err); is {
		var failure CallFailure
		if app.HasDetails() && app.Details(&failure) == nil {
			return failure.Log
		}
		return nil
	}
	if timeout, is := errors.AsType[*temporal.TimeoutError](err); is && timeout.HasLastHeartbeatDetails() &&
		timeout.LastHeartbeatDetails(&log) == nil {
		return &log
	}
	if canceled, is := errors.AsType[*temporal.CanceledError](err); is && canceled.HasDetails() &&
		canceled.Details(&log) == nil {
		return &log
	}
	return nil
}

// keepLog records what an attempt of a program has printed. Its activity has ended.
func (d *driver) keepLog(e *effect) {
	var result ProgramResult
	log := logOf(e.future.Get(d.detached, &result))
	if result != (ProgramResult{}) {
		log = new(e.program.Log(result.Stdout, result.Stderr, KeptLog))
	}
	if log == nil || log.Stdout == (LogStream{}) && log.Stderr == (LogStream{}) {
		return
	}
	d.recordBytes += len(log.Stdout.Text) + len(log.Stderr.Text)
	d.logs = append(d.logs, *log)
}

// awaitLogs waits until the programs have ended that the run has canceled. A runner confirms that with a heartbeat, and
// a lost one is noticed by the lack of one.
func (d *driver) awaitLogs() {
	_ = workflow.Await(d.detached, func() bool { // the context cannot be canceled, so there is no error
		return !slices.ContainsFunc(d.stopping, func(e *effect) bool { return !e.future.IsReady() })
	})
	d.keepStopped()
}

// keepStopped records the logs of the programs that the run has canceled and that have ended.
func (d *driver) keepStopped() {
	d.stopping = slices.DeleteFunc(d.stopping, func(e *effect) bool {
		if !e.future.IsReady() {
			return false
		}
		d.newTask()
		d.keepLog(e)
		return true
	})
}
