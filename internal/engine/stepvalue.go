package engine

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/signalbox-dev/signalbox/dsl/jq"
	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/engine/flow"
	"github.com/signalbox-dev/signalbox/internal/engine/projection"
	"github.com/signalbox-dev/signalbox/internal/run"
)

// StepValue returns the whole input or output of a step whose record has a shortened one. It interprets the history of
// the execution that recorded the step again. The error is [run.ErrNotKnown] if Temporal does not have that history.
func (e *Engine) StepValue(ctx context.Context, r run.Run, step run.Step, output bool) (json.RawMessage, error) {
	id := r.ExecutionID
	for range run.Chain(r.Position) - run.Chain(step.Position) {
		before, err := e.before(ctx, r.ID, id)
		if err != nil {
			return nil, err
		}
		id = before
	}
	if id == "" {
		return nil, run.ErrNotKnown
	}
	history, err := e.history(ctx, r.ID, id)
	if err != nil {
		return nil, err
	}
	record, err := projection.FindStep(ctx, e.rebuilding(ctx, flow.Execution{WorkflowID: r.ID, RunID: id}, history),
		step.Number)
	if projection.Unusable(err) {
		return nil, apperror.New(apperror.NotFound, apperror.ValueNotRecorded,
			"the values of run %q cannot be read again: %v", r.ID, err).WithCause(err)
	}
	if err != nil {
		return nil, err
	}
	value, recorded := any(nil), json.RawMessage(nil)
	if record != nil {
		input, result := record.FullPayloads()
		value, recorded = input, record.Input
		if output {
			value, recorded = result, record.Output
		}
	}
	switch {
	case value != nil:
		data, err := jq.EncodeJSON(value)
		if err != nil {
			return nil, fmt.Errorf("encoding a value of step %d of run %q: %w", step.Number, r.ID, err)
		}
		return data, nil
	case recorded != nil:
		return recorded, nil // the record that replaces the row's has a small value
	default:
		return nil, run.ErrNotKnown
	}
}
