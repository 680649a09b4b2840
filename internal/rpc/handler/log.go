package handler

import (
	"context"

	"connectrpc.com/connect"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/rpc/message"
	"github.com/signalbox-dev/signalbox/internal/run"
)

// Logs reads what the programs of runs have printed.
type Logs interface {
	List(ctx context.Context, project, id string, f run.LogFilter) ([]run.AttemptLog, error)
	Running(ctx context.Context, project, id string, step int64) (logs []run.AttemptLog, unknown string, err error)
}

// Page sizes of logs, each of up to 256 KiB.
const (
	logsDefault = 10
	logsMost    = 20
)

// ListLogs lists what the programs of a run have printed.
func (h *Runs) ListLogs(
	ctx context.Context, req *connect.Request[signalboxv1.ListLogsRequest],
) (*connect.Response[signalboxv1.ListLogsResponse], error) {
	m, project := req.Msg, message.ProjectOf(req.Msg.GetProject())
	if err := requireID(m.GetId()); err != nil {
		return nil, err
	}
	if m.GetNumber() < 0 {
		return nil, apperror.New(apperror.Invalid, apperror.InvalidArgument,
			"step %d: give the number of a step, from 1, or 0 for all steps", m.GetNumber()).
			WithField("number", "must not be negative")
	}
	done, err := h.reads.acquire(ctx, project)
	if err != nil {
		return nil, err
	}
	defer done()
	res := &signalboxv1.ListLogsResponse{}
	add := func(logs []run.AttemptLog) {
		for _, l := range logs {
			res.Logs = append(res.Logs, logMessage(l))
		}
	}
	if !m.GetRunning() {
		ended, next, err := listPage(m, logsDefault, logsMost,
			func(after *run.LogCursor, limit int) ([]run.AttemptLog, error) {
				return h.opts.Logs.List(ctx, project, m.GetId(),
					run.LogFilter{Step: m.GetNumber(), After: after, Limit: limit})
			}, run.AttemptLog.Position)
		if err != nil {
			return nil, err
		}
		if add(ended); next != "" {
			res.NextPageToken = next
			return connect.NewResponse(res), nil
		}
	}
	running, unknown, err := h.opts.Logs.Running(ctx, project, m.GetId(), m.GetNumber())
	if err != nil {
		return nil, err
	}
	add(running)
	res.RunningError = unknown
	return connect.NewResponse(res), nil
}

func logMessage(l run.AttemptLog) *signalboxv1.AttemptLog {
	return &signalboxv1.AttemptLog{
		Number: l.Step, Task: l.Task, Attempt: int32(l.Attempt), //nolint:gosec // a few
		Running: l.Running, Stdout: streamMessage(l.Stdout), Stderr: streamMessage(l.Stderr),
	}
}

func streamMessage(s run.LogStream) *signalboxv1.LogStream {
	return &signalboxv1.LogStream{Text: s.Text, SkippedBytes: s.SkippedBytes, SkippedLines: s.SkippedLines}
}
