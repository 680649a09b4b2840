package telemetry

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// Diagnosis is what a process spends on requests to Temporal that diagnose runs.
type Diagnosis struct {
	// Limit is the budget, in requests per second. Granted, Delayed and Refused are the requests since the process
	// started.
	Limit                     float64
	Granted, Delayed, Refused int64
}

// ObserveDiagnosis registers the metrics of diagnosis (signalbox_diagnosis_budget, signalbox_diagnosis_requests_total,
// signalbox_diagnosis_undecided_runs). undecided returns false in a process that leaves diagnosis to another one. It is
// called once.
func (t *Telemetry) ObserveDiagnosis(spent func() Diagnosis, undecided func() (int64, bool)) error {
	meter := t.Meter(scope)
	limit, err1 := meter.Float64ObservableGauge("signalbox.diagnosis.budget",
		metric.WithDescription("Requests to Temporal per second that the process may send to diagnose, compare and rebuild "+
			"runs. It shrinks while Temporal is slow or refuses requests."))
	requests, err2 := meter.Int64ObservableCounter("signalbox.diagnosis.requests",
		metric.WithDescription("These requests, by outcome: granted, delayed (sent after a wait for the budget) or refused "+
			"(not sent: the budget was used up)."))
	runs, err3 := meter.Int64ObservableGauge("signalbox.diagnosis.undecided.runs",
		metric.WithDescription("Runs without progress of which it is unknown whether they are stuck, because the budget "+
			"was used up. Only the process that diagnoses runs exports it."))
	if err := errors.Join(err1, err2, err3); err != nil {
		return err
	}
	_, err := meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		now := spent()
		o.ObserveFloat64(limit, now.Limit)
		for outcome, n := range map[string]int64{"granted": now.Granted, "delayed": now.Delayed, "refused": now.Refused} {
			o.ObserveInt64(requests, n, metric.WithAttributes(attribute.String("outcome", outcome)))
		}
		if n, elected := undecided(); elected {
			o.ObserveInt64(runs, n)
		}
		return nil
	}, limit, requests, runs)
	return err
}
