package read

import (
	"context"
	"slices"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/logger"
	"github.com/signalbox-dev/signalbox/internal/run"
)

// LogOptions are what logs are read with.
type LogOptions struct {
	Store run.LogStore
	Runs  interface {
		Get(ctx context.Context, project, id string) (run.Run, error)
	}
	// Running returns the logs of the programs of a run that have not ended.
	Running func(ctx context.Context, id string) ([]run.AttemptLog, error)
	// Redact replaces sensitive values in a text about a run. Stored logs have none.
	Redact func(ctx context.Context, id, text string) (string, error)
}

// LogReader reads what the programs of runs have printed. It is safe for concurrent use.
//
// The log of a program that has ended is stored with the rows of its run. That of one that runs is in its heartbeats,
// and ends with its last whole line.
type LogReader struct{ opts LogOptions }

// NewLogReader returns a reader.
func NewLogReader(opts LogOptions) *LogReader { return &LogReader{opts: opts} }

// List lists the logs of programs that have ended.
func (l *LogReader) List(ctx context.Context, project, id string, f run.LogFilter) ([]run.AttemptLog, error) {
	return l.opts.Store.ListLogs(ctx, project, id, f)
}

// Running returns the logs of programs that have not ended, of all steps or of one, by step and attempt. unknown is why
// they cannot be read, in the form for callers; empty if they can.
func (l *LogReader) Running(ctx context.Context, project, id string, step int64) (logs []run.AttemptLog, unknown string,
	err error) {
	r, err := l.opts.Runs.Get(ctx, project, id)
	if err != nil || r.Status.Terminal() || r.ExecutionID == "" {
		return nil, "", err
	}
	found, err := l.opts.Running(ctx, id)
	if err != nil {
		if f, ok := apperror.From(err); ok {
			return nil, f.Message, nil
		}
		logger.FromContext(ctx).WarnContext(ctx, "The logs of running programs could not be read", "run_id", id,
			"error", err)
		return nil, "they could not be read; see the server's log for the cause", nil
	}
	for _, log := range found {
		if step != 0 && log.Step != step {
			continue
		}
		ended, err := l.opts.Store.ListLogs(ctx, project, id,
			run.LogFilter{Step: log.Step, After: &run.LogCursor{Step: log.Step, Attempt: log.Attempt - 1}, Limit: 1})
		if err != nil {
			return nil, "", err
		}
		if len(ended) > 0 {
			continue // it ended meanwhile
		}
		for _, text := range []*string{&log.Stdout.Text, &log.Stderr.Text} {
			if *text, err = l.opts.Redact(ctx, id, *text); err != nil {
				return nil, "", err
			}
		}
		log.Running = true
		logs = append(logs, log)
	}
	slices.SortFunc(logs, func(a, b run.AttemptLog) int { return int(a.Step - b.Step) })
	return logs, "", nil
}
