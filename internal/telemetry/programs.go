package telemetry

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// Programs counts the programs of workflows that a runner executed.
type Programs struct {
	ended metric.Int64Counter
	busy  metric.Float64Counter
}

func newPrograms(meter metric.Meter) (*Programs, error) {
	ended, err := meter.Int64Counter("signalbox.program.ended",
		metric.WithDescription("Programs of workflows that ended on this runner, of all projects, by kind (script, shell, "+
			"container) and outcome: completed, failed (another exit code than 0), stopped (at a limit), refused (not executed), "+
			"interrupted (canceled, or the runner stopped)."))
	if err != nil {
		return nil, err
	}
	busy, err := meter.Float64Counter("signalbox.program.duration", metric.WithUnit("s"),
		metric.WithDescription("Time for which programs of workflows ran on this runner, by kind. Its rate is the number of "+
			"programs that run at once."))
	return &Programs{ended, busy}, err
}

// Begin exports the series with these kinds and outcomes, at 0: in a process with the runner role.
func (p *Programs) Begin(ctx context.Context, kinds, outcomes []string) {
	for _, kind := range kinds {
		for _, outcome := range outcomes {
			p.ended.Add(ctx, 0, metric.WithAttributes(attribute.String("kind", kind), attribute.String("outcome", outcome)))
		}
		p.busy.Add(ctx, 0, metric.WithAttributes(attribute.String("kind", kind)))
	}
}

// Ended counts a program (signalbox_program_ended_total, signalbox_program_duration_seconds_total).
func (p *Programs) Ended(ctx context.Context, kind, outcome string, took time.Duration) {
	p.ended.Add(ctx, 1, metric.WithAttributes(attribute.String("kind", kind), attribute.String("outcome", outcome)))
	p.busy.Add(ctx, took.Seconds(), metric.WithAttributes(attribute.String("kind", kind)))
}
