package conn

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"

	"github.com/signalbox-dev/signalbox/conn/internal/fsm"
)

// Options configure a manager. Zero fields have the defaults given.
type Options struct {
	// Client has the options of every generation's client: address, namespace, TLS, credentials, metrics, converters. A
	// nil logger is replaced by Logger. Its dial options may contain interceptors.
	Client client.Options
	// Reload, where set, returns the options of each new client instead of Client, for example to read certificates again.
	// Address and namespace may change.
	Reload func() (client.Options, error)
	// Identity, where set, identifies what Reload would return now, for example by a hash of the files that it reads. It
	// is called every ProbeEvery and must be cheap. A changed result causes a new generation; an error changes nothing.
	Identity func() (string, error)
	// ConnectionEnded and OutageEnded, where set, receive each connection and each outage that has ended, in order. They
	// must not block. Stop ends the connection; an outage that lasts until Stop is not reported.
	ConnectionEnded, OutageEnded func(ctx context.Context, e Ended)
	// Logger receives the log of the manager and of the SDK; nil: no logs.
	Logger *slog.Logger

	// CheckEvery is the time between full checks (DescribeNamespace); 15 s.
	CheckEvery time.Duration
	// CheckTimeout is how long a check may take before it counts as unanswered; 3 s.
	CheckTimeout time.Duration
	// ProbeEvery is the time between light checks (gRPC health) in between; 3 s.
	ProbeEvery time.Duration
	// ConfirmAfter is how long after a failed check the check follows that confirms it; 1 s.
	ConfirmAfter time.Duration
	// SlowAfter is the duration from which an answer is slow; 1 s. Three consecutive slow checks make the connection
	// degraded, and so do requests of the program if most of them take longer.
	SlowAfter time.Duration
	// RebuildAfter is the duration of an outage after which client and workers are replaced in any case; 1 minute, after
	// which the SDK gives up a poll that waits for the connection. After a shorter outage they are replaced only if their
	// own connection is dead or their polls were refused: otherwise they continue at once, without a gap.
	RebuildAfter time.Duration
	// BreakerAfter is the number of consecutive failed attempts that opens the circuit breaker; 10.
	BreakerAfter int
	// BreakerEvery is the time between attempts while the breaker is open; 5 minutes. A sign of life ends it early.
	BreakerEvery time.Duration
	// DrainTimeout is how long a replaced generation may finish what it has begun; 10 s. It is also the WorkerStopTimeout
	// of workers that set none.
	DrainTimeout time.Duration
	// DrainGrace is how long a replaced generation continues unchanged, so that tasks on their way to its workers arrive,
	// and requests of callers that have just been given its client are sent; 200 ms.
	DrainGrace time.Duration
	// HookTimeout limits each OnConnect hook; 10 s.
	HookTimeout time.Duration
}

const (
	defaultCheckEvery   = 15 * time.Second
	defaultCheckTimeout = 3 * time.Second
	defaultProbeEvery   = 3 * time.Second
	defaultConfirmAfter = time.Second
	defaultSlowAfter    = time.Second
	defaultRebuildAfter = time.Minute
	defaultBreakerAfter = 10
	defaultBreakerEvery = 5 * time.Minute
	defaultDrainTimeout = 10 * time.Second
	defaultDrainGrace   = 200 * time.Millisecond
	defaultHookTimeout  = 10 * time.Second

	// freshAfter is the duration of an outage after which attempts also try a new client.
	freshAfter   = 2 * time.Second
	backoffFirst = time.Second
	backoffMax   = 30 * time.Second
)

// withDefaults returns the options with all defaults, or an error that contains every violation.
func (o Options) withDefaults() (Options, error) {
	var violations []error
	durations := []struct {
		name  string
		value *time.Duration
		def   time.Duration
	}{
		{"CheckEvery", &o.CheckEvery, defaultCheckEvery},
		{"CheckTimeout", &o.CheckTimeout, defaultCheckTimeout},
		{"ProbeEvery", &o.ProbeEvery, defaultProbeEvery},
		{"ConfirmAfter", &o.ConfirmAfter, defaultConfirmAfter},
		{"SlowAfter", &o.SlowAfter, defaultSlowAfter},
		{"RebuildAfter", &o.RebuildAfter, defaultRebuildAfter},
		{"BreakerEvery", &o.BreakerEvery, defaultBreakerEvery},
		{"DrainTimeout", &o.DrainTimeout, defaultDrainTimeout},
		{"DrainGrace", &o.DrainGrace, defaultDrainGrace},
		{"HookTimeout", &o.HookTimeout, defaultHookTimeout},
	}
	for _, d := range durations {
		switch {
		case *d.value < 0:
			violations = append(violations,
				fmt.Errorf("%s is %s; give a positive duration, or none for %s", d.name, *d.value, d.def))
		case *d.value == 0:
			*d.value = d.def
		}
	}
	if o.BreakerAfter < 0 {
		violations = append(violations,
			fmt.Errorf("BreakerAfter is %d; give a positive number, or none for %d", o.BreakerAfter, defaultBreakerAfter))
	}
	if o.BreakerAfter == 0 {
		o.BreakerAfter = defaultBreakerAfter
	}
	if o.SlowAfter >= o.CheckTimeout && len(violations) == 0 {
		violations = append(violations, fmt.Errorf("SlowAfter (%s) is not below CheckTimeout (%s), so nothing would ever "+
			"be slow", o.SlowAfter, o.CheckTimeout))
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.Client = o.completed(o.Client)
	if err := errors.Join(violations...); err != nil {
		return o, fmt.Errorf("connection options: %w", err)
	}
	return o, nil
}

// completed sets the SDK's defaults in client options, so that they can be shown, and the logger.
func (o Options) completed(c client.Options) client.Options {
	if c.HostPort == "" {
		c.HostPort = client.DefaultHostPort
	}
	if c.Namespace == "" {
		c.Namespace = client.DefaultNamespace
	}
	if c.Logger == nil {
		c.Logger = sdklog.NewStructuredLogger(o.Logger.With("component", "temporal-sdk"))
	}
	return c
}

func (o Options) settings(random func() float64) fsm.Settings {
	return fsm.Settings{
		CheckEvery: o.CheckEvery, ProbeEvery: o.ProbeEvery, ConfirmAfter: o.ConfirmAfter, SlowAfter: o.SlowAfter,
		FreshAfter: min(freshAfter, o.RebuildAfter), RebuildAfter: o.RebuildAfter, BackoffFirst: backoffFirst,
		BackoffMax:   backoffMax,
		BreakerAfter: o.BreakerAfter, BreakerEvery: o.BreakerEvery, Random: random,
	}
}
