package telemetry

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/signalbox-dev/signalbox/internal/problem"
)

// Problems measures how long problems are open.
type Problems struct{ acknowledge metric.Float64Histogram }

func newProblems(meter metric.Meter) (*Problems, error) {
	acknowledge, err := meter.Float64Histogram("signalbox.problem.acknowledge", metric.WithUnit("s"),
		metric.WithDescription("Time from the detection of a problem to its acknowledgement, of all projects. A series "+
			"appears with the first acknowledgement of a problem with its code."),
		metric.WithExplicitBucketBoundaries(10, 30, 60, 120, 300, 600, 1800, 3600, 4*3600, 24*3600))
	return &Problems{acknowledge}, err
}

// Acknowledged records the time from the detection of a problem to its acknowledgement
// (signalbox_problem_acknowledge_seconds).
func (p *Problems) Acknowledged(ctx context.Context, code string, took time.Duration) {
	p.acknowledge.Record(ctx, took.Seconds(), metric.WithAttributes(attribute.String("code", code)))
}

// ObserveProblems registers the gauges of problems (signalbox_problems, signalbox_problem_oldest_open_seconds). Every
// scrape calls gauges, with a context that ends soon; after an error they stay as they were. It is called once.
func (t *Telemetry) ObserveProblems(gauges func(ctx context.Context) ([]problem.Gauge, error)) error {
	meter := t.Meter(scope)
	problems, err1 := meter.Int64ObservableGauge("signalbox.problems",
		metric.WithDescription("Problems by kind and state, of all projects and processes. Only processes with the API "+
			"role export it."))
	oldest, err2 := meter.Float64ObservableGauge("signalbox.problem.oldest_open", metric.WithUnit("s"),
		metric.WithDescription("Time since the detection of the oldest open problem, by project and kind, of all "+
			"processes; 0 where none is open. Problems of the platform as a whole have no project. Only processes with the "+
			"API role export it."))
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	found := readStored(t, readTimeout, "problems", gauges)
	_, err := meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		list, known := found.last()
		if !known {
			return nil
		}
		type group struct {
			kind  problem.Kind
			state problem.State
		}
		counts := map[group]int64{}
		for _, g := range list {
			counts[group{g.Kind, g.State}] += g.Count
			if g.State == problem.Open {
				o.ObserveFloat64(oldest, g.Oldest.Seconds(),
					metric.WithAttributes(attribute.String("project", g.Project), attribute.String("kind", string(g.Kind))))
			}
		}
		for of, count := range counts {
			o.ObserveInt64(problems, count,
				metric.WithAttributes(attribute.String("kind", string(of.kind)), attribute.String("state", string(of.state))))
		}
		return nil
	}, problems, oldest)
	return err
}
