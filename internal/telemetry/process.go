package telemetry

import (
	"context"
	"errors"
	"runtime"
	"runtime/debug"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// buildInfo exports the version of the program (signalbox_build_info).
func buildInfo(meter metric.Meter, version string) error {
	info, err := meter.Int64ObservableGauge("signalbox.build.info",
		metric.WithDescription("Version of the program, the revision of its source (empty if the build did not record it), "+
			"and the version of Go; always 1."))
	if err != nil {
		return err
	}
	labels := metric.WithAttributes(attribute.String("version", version), attribute.String("revision", revision()),
		attribute.String("go_version", runtime.Version()))
	_, err = meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		o.ObserveInt64(info, 1, labels)
		return nil
	}, info)
	return err
}

// revision returns the revision of the source that the program was built from; empty if the build did not record it.
func revision() string {
	if built, ok := debug.ReadBuildInfo(); ok {
		if i := slices.IndexFunc(built.Settings, func(s debug.BuildSetting) bool { return s.Key == "vcs.revision" }); i >= 0 {
			return built.Settings[i].Value
		}
	}
	return ""
}

// ObserveListener registers from when on the listener's certificate is to be renewed, and its expiry
// (signalbox_listener_certificate_renewal_timestamp_seconds, signalbox_listener_certificate_expiry_timestamp_seconds).
// It is called once, by a process whose listener uses TLS.
func (t *Telemetry) ObserveListener(read func(ctx context.Context) (renewal, expiry time.Time)) error {
	meter := t.Meter(scope)
	due, err1 := meter.Float64ObservableGauge("signalbox.listener.certificate.renewal.timestamp", metric.WithUnit("s"),
		metric.WithDescription("From when on the certificate of this process's listener is to be renewed, in seconds since "+
			"1970: the beginning of "+
			"its last 14 days, or of the last quarter of its lifetime if that is later. Absent if it uses no TLS."))
	ends, err2 := meter.Float64ObservableGauge("signalbox.listener.certificate.expiry.timestamp", metric.WithUnit("s"),
		metric.WithDescription("Expiry of the certificate of this process's listener, in seconds since 1970. Absent if it "+
			"uses no TLS."))
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	_, err := meter.RegisterCallback(func(ctx context.Context, o metric.Observer) error {
		renewal, expiry := read(ctx)
		o.ObserveFloat64(due, float64(renewal.Unix()))
		o.ObserveFloat64(ends, float64(expiry.Unix()))
		return nil
	}, due, ends)
	return err
}

// Health is the state of a process: of what it depends on and of its roles, by name.
type Health struct{ Dependencies, Roles map[string]string }

// HealthStates lists the states of dependencies and of roles.
type HealthStates struct{ Dependencies, Roles []string }

// healthTimeout bounds the checks of the dependencies, which have a shorter timeout of their own.
const healthTimeout = 3 * time.Second

// ObserveHealth registers the state of the process (signalbox_dependency_state, signalbox_role_status): one series for
// each possible state, 1 for the current one and 0 for the others. Every scrape calls read, with a context that ends
// soon. It is called once.
func (t *Telemetry) ObserveHealth(states HealthStates, read func(ctx context.Context) Health) error {
	meter := t.Meter(scope)
	dependency, err1 := meter.Int64ObservableGauge("signalbox.dependency.state",
		metric.WithDescription("State of each dependency of this process, as /readyz reports it: 1 for the current state, "+
			"0 for the others."))
	role, err2 := meter.Int64ObservableGauge("signalbox.role.status",
		metric.WithDescription("Status of each role of this process, as /readyz reports it: 1 for the current status, 0 "+
			"for the others."))
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	found := readBefore(t, healthTimeout, func(ctx context.Context) (Health, error) { return read(ctx), nil })
	_, err := meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		health, _ := found.last()
		observeStates(o, dependency, "dependency", "state", states.Dependencies, health.Dependencies)
		observeStates(o, role, "role", "status", states.Roles, health.Roles)
		return nil
	}, dependency, role)
	return err
}

func observeStates(o metric.Observer, gauge metric.Int64Observable, named, stated string, states []string,
	current map[string]string) {
	for name, now := range current {
		for _, state := range states {
			var is int64
			if state == now {
				is = 1
			}
			o.ObserveInt64(gauge, is, metric.WithAttributes(attribute.String(named, name), attribute.String(stated, state)))
		}
	}
}
