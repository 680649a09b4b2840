package conn

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"

	"github.com/signalbox-dev/signalbox/conn/internal/machine"
)

// Options say what to connect to and at which pace. Zero fields have the defaults given.
type Options struct {
	// Client is what every generation's client is made from: address, namespace, TLS, credentials, metrics, converters.
	// A nil logger is replaced by Logger. Its dial options may hold interceptors of yours.
	Client client.Options
	// Reload, where set, is asked for the options of each new client instead of Client, for example to read certificates
	// again. Its address and namespace may change.
	Reload func() (client.Options, error)
	// Identity, where set, names what Reload would give now: a hash of the files that it reads, say. It is asked every
	// ProbeEvery; another text means that the client must be replaced. It must be cheap. An error leaves things as they are.
	Identity func() (string, error)
	// ConnectionEnded and OutageEnded, where set, receive each connection and each outage that has ended, in order. They must not block.
	// A manager that is stopped ends its connection; an outage that lasts until then has no end.
	ConnectionEnded, OutageEnded func(ctx context.Context, e Ended)
	// Logger gets the manager's lines and the SDK's; nil: nothing is logged.
	Logger *slog.Logger

	// CheckEvery is the pace of the full check, DescribeNamespace; 15 s.
	CheckEvery time.Duration
	// CheckTimeout is after how long a check counts as unanswered; 3 s.
	CheckTimeout time.Duration
	// ProbeEvery is the pace of the light check in between, gRPC health; 3 s.
	ProbeEvery time.Duration
	// ConfirmAfter is how long after an unanswered check the one comes that decides; 1 s.
	ConfirmAfter time.Duration
	// SlowAfter is what an answer may take; three slower ones running make the connection degraded, and so do requests of
	// the program of which most take longer. 1 s.
	SlowAfter time.Duration
	// RebuildAfter is how long an outage must have lasted for client and workers to be replaced after it in any case; a
	// minute, in which the SDK gives up a poll that waits for the connection. After a shorter one they are replaced only
	// if their own connection is dead or they were refused: otherwise they go on at once, without a gap.
	RebuildAfter time.Duration
	// BreakerAfter is after how many failed attempts running the circuit breaker opens; 10.
	BreakerAfter int
	// BreakerEvery is the pace of attempts while it is open; 5 minutes. A sign of life cuts it short.
	BreakerEvery time.Duration
	// DrainTimeout is how long a replaced generation may go on with what it has begun; 10 s. Workers without a
	// WorkerStopTimeout get it as theirs.
	DrainTimeout time.Duration
	// DrainGrace is how long a replaced generation goes on as before, so that tasks on their way to its workers arrive, and
	// what its client was given out for is sent; 200 ms.
	DrainGrace time.Duration
	// HookTimeout bounds each OnConnect hook; 10 s.
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

	// freshAfter is how long an outage must have lasted for attempts to try a new client too.
	freshAfter   = 2 * time.Second
	backoffFirst = time.Second
	backoffMost  = 30 * time.Second
)

// withDefaults returns the options with every default in place, or what is wrong with them, all of it.
func (o Options) withDefaults() (Options, error) {
	var problems []error
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
			problems = append(problems, fmt.Errorf("%s is %s; give a positive duration, or none for %s", d.name, *d.value, d.def))
		case *d.value == 0:
			*d.value = d.def
		}
	}
	if o.BreakerAfter < 0 {
		problems = append(problems, fmt.Errorf("BreakerAfter is %d; give a positive number, or none for %d", o.BreakerAfter, defaultBreakerAfter))
	}
	if o.BreakerAfter == 0 {
		o.BreakerAfter = defaultBreakerAfter
	}
	if o.SlowAfter >= o.CheckTimeout && len(problems) == 0 {
		problems = append(problems, fmt.Errorf("SlowAfter (%s) is not below CheckTimeout (%s), so nothing would ever be slow", o.SlowAfter, o.CheckTimeout))
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.Client = o.completed(o.Client)
	if err := errors.Join(problems...); err != nil {
		return o, fmt.Errorf("connection options: %w", err)
	}
	return o, nil
}

// completed gives client options what the SDK would default to, so that it can be shown, and our logger.
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

func (o Options) settings(random func() float64) machine.Settings {
	return machine.Settings{
		CheckEvery: o.CheckEvery, ProbeEvery: o.ProbeEvery, ConfirmAfter: o.ConfirmAfter, SlowAfter: o.SlowAfter,
		FreshAfter: min(freshAfter, o.RebuildAfter), RebuildAfter: o.RebuildAfter, BackoffFirst: backoffFirst, BackoffMost: backoffMost,
		BreakerAfter: o.BreakerAfter, BreakerEvery: o.BreakerEvery, Random: random,
	}
}
