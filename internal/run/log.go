package run

import (
	"context"
)

// AttemptLog is what an attempt of a program has printed.
type AttemptLog struct {
	// Step is the number of the step, Task the name of its task.
	Step    int64
	Task    string
	Attempt int
	Stdout  LogStream
	Stderr  LogStream
	// Running reports that the program has not ended: more may follow.
	Running bool
}

// LogStream is the end of what a program has printed to one of its streams.
type LogStream struct {
	Text string
	// SkippedBytes and SkippedLines are what was printed before Text and is not kept.
	SkippedBytes, SkippedLines int64
}

// LogCursor is a position in the logs of a run: by step, and each step by attempt.
type LogCursor struct {
	Step    int64 `json:"step"`
	Attempt int   `json:"attempt"`
}

// Position returns the position of the log in the run.
func (l AttemptLog) Position() LogCursor { return LogCursor{Step: l.Step, Attempt: l.Attempt} }

// LogFilter selects logs of a run. Zero fields match everything.
type LogFilter struct {
	Step  int64
	After *LogCursor
	Limit int
}

// LogStore reads the logs of programs that have ended.
type LogStore interface {
	// ListLogs lists logs by step and attempt. It returns [apperror.NotFound] for an unknown run.
	ListLogs(ctx context.Context, project, id string, f LogFilter) ([]AttemptLog, error)
}
