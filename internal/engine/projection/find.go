package projection

import (
	"context"
	"errors"

	"github.com/signalbox-dev/signalbox/dsl/interp"
	"github.com/signalbox-dev/signalbox/internal/engine/flow"
)

// errFound ends an interpretation once it has the record that it looks for.
var errFound = errors.New("the step was found")

// FindStep interprets the history of one execution of a run again and returns the last record of a step in it, with its
// whole payloads; nil if there is none.
func FindStep(ctx context.Context, b Rebuilding, number int64) (*interp.StepRecord, error) {
	f := &finder{interruption: interruption{ctx: ctx}, number: number}
	trim(b.History)
	if err := b.replay(f, &f.interruption); err != nil && !errors.Is(err, errFound) {
		return nil, err
	}
	return f.found, nil
}

// finder is the sink of FindStep.
type finder struct {
	interruption

	number int64
	found  *interp.StepRecord
}

var _ flow.Sink = (*finder)(nil)

// Records implements [flow.Sink].
func (f *finder) Records(_ flow.Execution, _ int64, _ *interp.RunRecord, steps []interp.StepRecord,
	_ []flow.ProgramLog, _ []string) {
	f.check()
	for i := range steps {
		if steps[i].Number != f.number {
			continue
		}
		record := steps[i]
		if f.found = &record; record.EndedAt != nil {
			f.must(errFound) // no later record changes its values
		}
	}
}
