package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/signalbox-dev/signalbox/conn/conntype"
	"github.com/signalbox-dev/signalbox/dispatch/dispatchtype"
	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/problem"
	"github.com/signalbox-dev/signalbox/internal/processor"
	"github.com/signalbox-dev/signalbox/internal/quota"
	"github.com/signalbox-dev/signalbox/internal/telemetry"
	"github.com/signalbox-dev/signalbox/internal/webhook"
)

// instrument is one metric as Prometheus gets it.
type instrument struct {
	Name, Type, Meaning string
	Labels              []string
}

// ourMetrics are the prefixes of the metrics of this platform; the others come from the Prometheus client library.
func ourMetrics() []string {
	return []string{"dispatcher_", "signalbox_", "temporal_", "rpc_", "db_client_"}
}

// instruments returns the metrics of a process in which everything is observed, by name.
func instruments(ctx context.Context) ([]instrument, error) {
	tel, err := telemetry.New(ctx,
		telemetry.Options{ServiceName: "signalbox", Version: "1.2.3", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	if err := errors.Join(observe(tel), measure(ctx, tel)); err != nil {
		return nil, err
	}
	page := httptest.NewRecorder()
	tel.Handler().ServeHTTP(page, httptest.NewRequestWithContext(ctx, http.MethodGet, "/metrics", nil))
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(page.Body)
	if err != nil {
		return nil, fmt.Errorf("parse the page: %w", err)
	}
	var all []instrument
	for _, name := range slices.Sorted(maps.Keys(families)) {
		if !hasPrefix(name, ourMetrics()...) {
			continue
		}
		labels := map[string]bool{}
		for _, m := range families[name].GetMetric() {
			for _, label := range m.GetLabel() {
				labels[label.GetName()] = true
			}
		}
		all = append(all, instrument{
			Name: name, Type: strings.ToLower(families[name].GetType().String()), Meaning: families[name].GetHelp(),
			Labels: slices.Sorted(maps.Keys(labels)),
		})
	}
	return all, nil
}

// observe registers all gauges with sources that have every value.
func observe(tel *telemetry.Telemetry) error {
	const project = "default"
	return errors.Join(
		tel.Observe(telemetry.Observed{
			Connection: func() conntype.Status {
				return conntype.Status{State: conntype.Connected,
					Workers: []conntype.WorkerStatus{{Name: project, LastPoll: time.Now()}}}
			},
			QueuedRuns: func(context.Context) (int64, error) { return 0, nil }, QueueLimit: 1,
			StuckRuns:       func() (map[string]int64, bool) { return map[string]int64{"NO_POLLER": 0}, true },
			Mismatch:        func() bool { return false },
			Maintenance:     func() (bool, bool) { return false, true },
			Memory:          func() (int64, int64, bool) { return 1, 1, true },
			CertificateEnds: func() (time.Time, bool) { return time.Now(), true },
		}),
		tel.ObserveListener(func(context.Context) (renewal, expiry time.Time) { return time.Now(), time.Now() }),
		tel.ObserveHealth(telemetry.HealthStates{Dependencies: []string{"up"}, Roles: []string{"ready"}},
			func(context.Context) telemetry.Health {
				return telemetry.Health{Dependencies: map[string]string{"store": "up"}, Roles: map[string]string{"api": "ready"}}
			}),
		tel.ObservePools(func() map[string]sql.DBStats { return map[string]sql.DBStats{"all": {}} }),
		tel.ObserveClockSkew(func(context.Context) (time.Duration, error) { return 0, nil }),
		tel.ObserveProcessor(func() processor.Totals {
			return processor.Totals{Group: &processor.Group{Limit: 1}, Waited: new(time.Duration)}
		}),
		tel.ObserveWebhooks(func(context.Context) ([]webhook.Backlog, error) {
			return []webhook.Backlog{{Project: project}}, nil
		}),
		tel.ObserveUnpublished(func(context.Context) (event.Unpublished, error) { return event.Unpublished{}, nil }),
		tel.ObserveProblems(func(context.Context) ([]problem.Gauge, error) {
			return []problem.Gauge{{Project: project, Kind: problem.Failure, State: problem.Open}}, nil
		}),
		tel.ObserveQuotas(func(context.Context) ([]quota.Held, error) { return []quota.Held{{Project: project}}, nil }),
		tel.ObserveActions(func() map[string]int64 { return map[string]int64{"start": 1} }),
		tel.ObserveDiagnosis(func() telemetry.Diagnosis {
			return telemetry.Diagnosis{}
		}, func() (int64, bool) { return 0, true }),
		tel.ObserveDispatch(telemetry.Dispatching{
			Dispatchers: func(context.Context) ([]dispatchtype.Dispatcher, error) {
				return []dispatchtype.Dispatcher{{Name: inbox.Name{Project: project}, Status: dispatchtype.Routing}}, nil
			},
			Backlogs: func(context.Context) ([]event.Backlog, error) { return []event.Backlog{{Project: project}}, nil },
			Begin:    func(project string) { dispatchers(tel, project) },
			Usable:   func() bool { return true },
		}),
	)
}

// dispatchers creates the instruments of dispatchers with their labels, as package dispatch does.
func dispatchers(tel *telemetry.Telemetry, project string) {
	all := tel.Dispatch()
	of := all.WithTags(map[string]string{"project": project})
	for name, label := range map[string]string{
		"dispatcher_takeovers_total": "outcome", "dispatcher_terminations_total": "reason",
		"dispatcher_deliveries_total": "outcome",
	} {
		of.WithTags(map[string]string{label: "x"}).Counter(name).Inc(0)
	}
	for _, name := range []string{
		"dispatcher_terminate_errors_total", "dispatcher_cleanup_errors_total", "dispatcher_stale_cleanups_total",
		"dispatcher_worker_evictions_total",
	} {
		of.Counter(name).Inc(0)
	}
	of.Timer("dispatcher_takeover_seconds")
	of.Timer("dispatcher_cleanup_seconds")
	all.WithTags(map[string]string{"result": "x"}).Counter("dispatcher_supervisor_cycles_total").Inc(0)
	all.Timer("dispatcher_supervisor_cycle_seconds")
	all.Gauge("dispatcher_supervisor_last_cycle_timestamp_seconds").Update(0)
}

// measure records one value with each instrument that has no source.
func measure(ctx context.Context, tel *telemetry.Telemetry) error {
	const project = "default"
	store, err1 := tel.Store("sqlite", "read")
	store.Called(ctx, "read", "", time.Millisecond)
	ended, err2 := tel.Connections("127.0.0.1:7233", "default")
	ended.Outage(ctx, "127.0.0.1:7233", "default", time.Second)
	tel.Runs.Count(ctx, project, "completed")
	tel.Runs.BeginSteps(ctx, "completed")
	tel.Runs.Corrected(ctx, "finished")
	tel.Runs.Rebuilt(ctx, "rebuilt", 1)
	tel.Retention.Deleted(ctx, "runs", 1)
	tel.Webhooks.Begin(ctx, "delivered")
	tel.Batches.Begin(ctx, "completed")
	tel.Programs.Begin(ctx, []string{"script"}, []string{"completed"})
	tel.Migration.Begin(ctx)
	tel.API.Refused(ctx, "UNAUTHENTICATED")
	tel.Problems.Acknowledged(ctx, "FAILED", time.Minute)
	_, err3 := tel.API.WrapUnary(func(context.Context, connect.AnyRequest) (connect.AnyResponse, error) {
		return connect.NewResponse(&emptypb.Empty{}), nil
	})(ctx, connect.NewRequest(&emptypb.Empty{}))
	return errors.Join(err1, err2, err3)
}
