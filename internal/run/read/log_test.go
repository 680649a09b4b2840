package read_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/read"
)

// logFakes are a run with stored logs and programs that run.
type logFakes struct {
	run    run.Run
	stored map[run.LogCursor]bool
}

func (f *logFakes) Get(context.Context, string, string) (run.Run, error) { return f.run, nil }

func (f *logFakes) ListLogs(_ context.Context, _, _ string, filter run.LogFilter) (list []run.AttemptLog, _ error) {
	at := run.LogCursor{Step: filter.After.Step, Attempt: filter.After.Attempt + 1}
	if f.stored[at] {
		list = []run.AttemptLog{{Step: at.Step, Attempt: at.Attempt}}
	}
	return list, nil
}

func TestLogsOfRunningPrograms(t *testing.T) {
	t.Parallel()
	fakes := &logFakes{run: run.Run{Status: run.Running, ExecutionID: "e"},
		stored: map[run.LogCursor]bool{{Step: 4, Attempt: 1}: true}}
	var asked int
	var unread error
	reader := read.NewLogReader(read.LogOptions{Store: fakes, Runs: fakes,
		Running: func(context.Context, string) ([]run.AttemptLog, error) {
			asked++
			return []run.AttemptLog{
				{Step: 7, Attempt: 2, Stdout: run.LogStream{Text: "a secret"}}, {Step: 4, Attempt: 1}, {Step: 5, Attempt: 1},
			}, unread
		},
		Redact: func(_ context.Context, _, text string) (string, error) {
			return strings.ReplaceAll(text, "secret", "mark"), nil
		},
	})
	logs, unknown, err := reader.Running(t.Context(), "p", "r", 0)
	require.NoError(t, err)
	require.Empty(t, unknown)
	require.Equal(t, []run.AttemptLog{
		{Step: 5, Attempt: 1, Running: true},
		{Step: 7, Attempt: 2, Stdout: run.LogStream{Text: "a mark"}, Running: true},
	}, logs, "without the one that has ended meanwhile")
	logs, _, err = reader.Running(t.Context(), "p", "r", 5)
	require.NoError(t, err)
	require.Len(t, logs, 1)

	unread = apperror.New(apperror.Unavailable, apperror.EngineUnavailable, "temporal is away")
	_, unknown, err = reader.Running(t.Context(), "p", "r", 0)
	require.NoError(t, err)
	require.Equal(t, "temporal is away", unknown)
	unread = errors.New("password=hunter2")
	_, unknown, err = reader.Running(t.Context(), "p", "r", 0)
	require.NoError(t, err)
	require.NotContains(t, unknown, "hunter2")

	asked, fakes.run.Status = 0, run.Completed
	logs, _, err = reader.Running(t.Context(), "p", "r", 0)
	require.NoError(t, err)
	require.Empty(t, logs)
	require.Zero(t, asked, "a run that has ended has no running programs")
}
