package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/jellydator/ttlcache/v3"

	"github.com/signalbox-dev/signalbox/internal/engine/codec"
	"github.com/signalbox-dev/signalbox/internal/engine/flow"
	"github.com/signalbox-dev/signalbox/internal/run"
)

// logsFor is how long the logs of the running programs of a run are kept, and maxLogs of how many runs: many callers
// may follow one run.
const logsFor, maxLogs = time.Second, 500

func newLogs() *ttlcache.Cache[string, []run.AttemptLog] {
	return ttlcache.New(ttlcache.WithCapacity[string, []run.AttemptLog](maxLogs),
		ttlcache.WithTTL[string, []run.AttemptLog](logsFor), ttlcache.WithDisableTouchOnHit[string, []run.AttemptLog]())
}

// RunningLogs returns what the running programs of a run have printed, as their last heartbeats report it: up to
// [flow.LiveLog] bytes of each stream, with sensitive values. It has none of a program that has sent no heartbeat.
func (e *Engine) RunningLogs(ctx context.Context, runID string) ([]run.AttemptLog, error) {
	if cached := e.logs.Get(runID); cached != nil {
		return cached.Value(), nil
	}
	ctx, cancel := context.WithTimeout(ctx, inspectorTimeout)
	defer cancel()
	_, answer, err := e.describeRun(ctx, runID)
	if err != nil || answer == nil {
		return nil, err
	}
	var logs []run.AttemptLog
	for _, a := range answer.GetPendingActivities() {
		if a.GetActivityType().GetName() != flow.ProgramActivity || a.GetHeartbeatDetails() == nil {
			continue
		}
		var log flow.ProgramLog
		if err := codec.Converter(e.keys).FromPayloads(a.GetHeartbeatDetails(), &log); err != nil {
			return nil, fmt.Errorf("reading a heartbeat of run %q: %w", runID, err)
		}
		logs = append(logs, run.AttemptLog{
			Step: log.Step, Task: log.Task, Attempt: log.Attempt, Stdout: run.LogStream(log.Stdout),
			Stderr: run.LogStream(log.Stderr),
		})
	}
	e.logs.Set(runID, logs, ttlcache.DefaultTTL)
	return logs, nil
}
