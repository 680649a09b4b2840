package operations_test

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/otlptranslator"
	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/test/collector"
	"github.com/signalbox-dev/signalbox/test/counter"
	"github.com/signalbox-dev/signalbox/test/origin"
	"github.com/signalbox-dev/signalbox/test/platform"
	"github.com/signalbox-dev/signalbox/test/promise"
)

const (
	plantedSecret = "planted-secret-4711"
	plantedSealed = "planted-sealed-4712"
	plantedQuery  = "planted-query-4713"
	plantedKey    = "planted-key-4714"
)

// charges calls a service with a secret and a sensitive value, and repeats the call once.
const charges = `  - charge:
      try:
        - call:
            call: http
            with:
              method: post
              output: response
              endpoint: {uri: '%[1]s/payment'}
              headers: {X-Key: '${ $secrets.key }'}
              query: {card: '${ .card }', q: ` + plantedQuery + `}
              body: {card: '${ .card }'}
      catch:
        errors: {with: {status: 503}}
        retry: {delay: {milliseconds: 10}, limit: {attempt: {count: 1}}}
`

// traced starts a platform with further variables, and publishes the workflow that charges.
func traced(t *testing.T, site *origin.Origin, env ...string) (s *platform.Server, workflow string) {
	t.Helper()
	site.Sequence("POST /payment",
		origin.Answer{Status: http.StatusServiceUnavailable, Body: `{"card":"` + plantedSealed + `"}`},
		origin.Answer{Status: http.StatusOK, Body: `{}`})
	s = platform.StartServer(t, platform.ServerOptions{
		Temporal: platform.StartTemporal(t).Address, Store: platform.SQLite(t), Args: []string{"--log-level", "debug"},
		Env: append(env, "SIGNALBOX_SECRET_DEFAULT__KEY="+plantedSecret),
	})
	document := platform.Document("charges", fmt.Sprintf(charges, site.URL), "use: {secrets: [key]}\n")
	return s, s.Publish(t, strings.Replace(document, "use:", "  metadata: {sensitive: [/input/card]}\nuse:", 1))
}

// start starts a run over REST, as a caller with a trace of its own.
func start(t *testing.T, s *platform.Server, workflow, traceparent string) (runID string) {
	t.Helper()
	header := http.Header{"Content-Type": {"application/json"}}
	if traceparent != "" {
		header.Set("Traceparent", traceparent)
	}
	body := `{"workflow":"` + workflow + `","input":{"card":"` + plantedSealed + `"}}`
	status, answer, err := s.Do(t.Context(), http.MethodPost, "/v1/projects/default/runs", header, strings.NewReader(body))
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, status, answer)
	var started struct{ Run struct{ ID string } }
	require.NoError(t, json.Unmarshal([]byte(answer), &started))
	require.NotEmpty(t, started.Run.ID, answer)
	return started.Run.ID
}

// ofTrace returns the spans of a trace in the order of their starts.
func ofTrace(c *collector.Collector, trace string) []collector.Span {
	all := slices.DeleteFunc(c.Spans(), func(s collector.Span) bool { return s.Trace != trace })
	slices.SortStableFunc(all, func(a, b collector.Span) int { return a.Start.Compare(b.Start) })
	return all
}

// tree writes spans below their parent as lines, indented by depth.
func tree(spans []collector.Span, parent, indent string) string {
	text := ""
	for _, s := range spans {
		if s.Parent == parent {
			state := ""
			if s.Failed {
				state = " failed " + s.Attributes["error.type"]
			}
			text += indent + s.Name + state + "\n" + tree(spans, s.ID, indent+"  ")
		}
	}
	return text
}

// The trace of a run has the API call, the start, the execution, its activities and their requests; the called service
// and the log get the trace's ID. Metrics arrive with the values of /metrics. Nothing of that contains a secret or a
// value of the run.
func TestRunIsTracedAndMetricsAreExported(t *testing.T) {
	t.Parallel()
	for _, protocol := range []string{collector.GRPC, collector.HTTP} {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			const caller, callersSpan = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
			c, site := collector.New(t), origin.New(t)
			s, workflow := traced(t, site,
				append(c.Env(protocol), "OTEL_EXPORTER_OTLP_HEADERS=api-key="+plantedKey, "OTEL_SERVICE_NAME=shop")...)
			id := start(t, s, workflow, "00-"+caller+"-"+callersSpan+"-01")
			r := s.Await(t, id, soon, "completed")

			const want = `signalbox.v1.RunService/StartRun
  StartWorkflow signalbox.run
    RunWorkflow signalbox.run
      RunActivity signalbox.http.credentials failed https://open-workflow-specification.org/spec/1.0.0/errors/communication
        POST failed 503
      RunActivity signalbox.http.credentials
        POST
`
			platform.Eventually(t, soon, func() string {
				if got := tree(ofTrace(c, caller), callersSpan, ""); got != want {
					return "the trace is:\n" + got
				}
				return ""
			})
			requests := []string{}
			for _, span := range ofTrace(c, caller) {
				require.Equal(t, "shop", span.Service)
				require.False(t, span.End.Before(span.Start))
				if span.Name == "POST" {
					requests = append(requests, span.ID)
					require.Equal(t, "127.0.0.1", span.Attributes["server.address"])
				}
				if strings.HasPrefix(span.Name, "RunActivity") || span.Name == "POST" {
					require.Equal(t, "call", span.Attributes["signalbox.task"])
					require.True(t, strings.HasSuffix(span.Attributes["signalbox.task.reference"], "/charge/try/0/call"),
						span.Attributes)
				}
				if !strings.HasPrefix(span.Name, "signalbox.v1.") {
					require.Equal(t, []string{id, "default", workflow, "1.0.0"}, []string{span.Attributes["signalbox.run.id"],
						span.Attributes["signalbox.project"], span.Attributes["signalbox.workflow"],
						span.Attributes["signalbox.workflow.version"]}, span.Name)
				}
			}
			calls := site.Calls("POST /payment")
			require.Len(t, calls, 2)
			for i, call := range calls {
				require.Equal(t, "00-"+caller+"-"+requests[i]+"-01", call.Header.Get("Traceparent"))
				require.Equal(t, plantedSecret, call.Header.Get("X-Key"))
			}
			require.NotContains(t, r.GetOutput().GetJson(), "traceparent", "the result does not depend on traces")

			requireLogged(t, s.Output(), caller, id)
			requireSameMetrics(t, s, c)
			if protocol == collector.HTTP {
				require.Subset(t, []string{plantedKey}, c.Keys())
			}
			s.Terminate()
			_, ended := s.WaitFor(soon)
			require.True(t, ended)
			for _, planted := range []string{plantedSecret, plantedSealed, plantedQuery, plantedKey, "X-Key", "/payment"} {
				require.NotContains(t, c.Dump(t), planted)
				require.NotContains(t, s.Output(), planted)
			}
		})
	}
}

// requireLogged requires that a call of the run is in the log with the IDs of the run and the trace.
func requireLogged(t *testing.T, output, trace, runID string) {
	t.Helper()
	for line := range strings.Lines(output) {
		var l map[string]any
		if json.Unmarshal([]byte(line), &l) == nil && l["msg"] == "Service answered a call" && l["trace_id"] == trace {
			require.Equal(t, runID, l["run_id"])
			require.Equal(t, "default", l["project"])
			require.Len(t, l["span_id"], 16)
			require.IsType(t, 0.0, l["took_seconds"])
			return
		}
	}
	require.Fail(t, "the log has no line of the trace", output)
}

// requireSameMetrics requires that the exported metrics have the names and labels of those at /metrics, and, where
// nothing changes, the values.
func requireSameMetrics(t *testing.T, s *platform.Server, c *collector.Collector) {
	t.Helper()
	platform.Eventually(t, soon, func() string {
		_, page, err := s.Get(t.Context(), "/metrics")
		require.NoError(t, err)
		scraped := series(page)
		exported := map[string]float64{}
		for _, p := range c.Points() {
			if p.Instance == "" {
				return "the export has no service.instance.id"
			}
			names, values := prometheusNames(t, p)
			for i, name := range names {
				exported[name] = values[i]
			}
		}
		for name, value := range scraped {
			got, ok := exported[name]
			switch {
			case strings.HasPrefix(name, "target_info"), strings.Contains(name, "_bucket{"), strings.Contains(name, "quantile="),
				strings.HasPrefix(name, "promhttp_"),
				strings.HasPrefix(name, "go_gc_duration_seconds"):
			case !ok:
				return name + " is not exported"
			case strings.HasPrefix(name, "signalbox_runs_total"), strings.HasPrefix(name, "signalbox_run_start_seconds"),
				strings.HasPrefix(name, "dispatcher_takeovers_total"):
				if got != value {
					return fmt.Sprintf("%s is %v at /metrics and exported as %v", name, value, got)
				}
			}
		}
		if len(scraped) < 100 || exported[`signalbox_runs_total{project="default",status="completed"}`] != 1 {
			return "few metrics, or no completed run"
		}
		return ""
	})
}

// series returns the samples of a page of Prometheus.
func series(page string) map[string]float64 {
	all := map[string]float64{}
	for line := range strings.Lines(page) {
		if i := strings.LastIndex(line, " "); i > 0 && line[0] != '#' {
			all[line[:i]], _ = strconv.ParseFloat(strings.TrimSpace(line[i:]), 64)
		}
	}
	return all
}

// prometheusNames returns the series of Prometheus that a data point becomes, with their values.
func prometheusNames(t *testing.T, p collector.Point) (names []string, values []float64) {
	var kind otlptranslator.MetricType = otlptranslator.MetricTypeGauge
	switch {
	case p.Histogram:
		kind = otlptranslator.MetricTypeHistogram
	case p.Monotonic:
		kind = otlptranslator.MetricTypeMonotonicCounter
	}
	namer := otlptranslator.NewMetricNamer("", otlptranslator.UnderscoreEscapingWithSuffixes)
	name, err := namer.Build(otlptranslator.Metric{Name: p.Name, Unit: p.Unit, Type: kind})
	require.NoError(t, err)
	labels := []string{}
	for key, value := range p.Attributes {
		labels = append(labels, fmt.Sprintf("%s=%q", strings.ReplaceAll(key, ".", "_"), value))
	}
	slices.Sort(labels)
	of := ""
	if len(labels) > 0 {
		of = "{" + strings.Join(labels, ",") + "}"
	}
	if p.Histogram {
		return []string{name + "_count" + of, name + "_sum" + of}, []float64{p.Count, p.Value}
	}
	return []string{name + of}, []float64{p.Value}
}

const (
	ordered = `schedule: {on: {one: {with: {type: io.example.ordered}}}}
`
	shippedAndPaid = `schedule: {on: {all: [{with: {type: io.example.shipped}}, {with: {type: io.example.paid}}]}}
`
)

// An event belongs to the trace of the request, or of the run, that published it: so do the runs that it starts, also
// those that other events start in turn, and its delivery to a run that waits. That run has a trace of its own, and
// links the delivery. A run that needs two events belongs to the trace of the last one, and links the other. Nothing of
// the events is in the spans.
func TestEventsContinueTheirTrace(t *testing.T) {
	t.Parallel()
	const waiting, order, payment = "0af7651916cd43dd8448eb211c80319c", "0af7651916cd43dd8448eb211c80319d",
		"0af7651916cd43dd8448eb211c80319e"
	const callersSpan = "b7ad6b7169203331"
	c := collector.New(t)
	s := platform.StartServer(t,
		platform.ServerOptions{Temporal: platform.StartTemporal(t).Address, Store: platform.SQLite(t),
			Env: c.Env(collector.HTTP)})
	s.Publish(t, platform.Document("ships", "  - tell: {emit: {event: {with: {type: io.example.shipped, source: /ships, "+
		"data: {card: "+plantedSealed+"}}}}}\n", ordered))
	s.Publish(t, platform.Document("closes", "  - note: {set: {seen: true}}\n", shippedAndPaid))
	waiter := start(t, s, s.Publish(t,
		platform.Document("waits", "  - shipped: {listen: {to: {one: {with: {type: io.example.shipped}}}}}\n")),
		"00-"+waiting+"-"+callersSpan+"-01")
	s.Await(t, waiter, soon, "waiting")

	send := func(kind, trace string) {
		header := http.Header{"Content-Type": {"application/cloudevents+json"},
			"Traceparent": {"00-" + trace + "-" + callersSpan + "-01"}}
		status, answer, err := s.Do(t.Context(), http.MethodPost, "/v1/projects/default/events", header,
			strings.NewReader(`{"specversion":"1.0","type":"`+kind+`","source":"/test","id":"`+kind+`","data":{"card":"`+
				plantedSealed+`"}}`))
		require.NoError(t, err)
		require.Equal(t, http.StatusAccepted, status, answer)
	}
	requireTrace := func(trace, want string) []collector.Span {
		platform.Eventually(t, soon, func() string {
			if got := tree(ofTrace(c, trace), callersSpan, ""); got != want {
				return "the trace is:\n" + got
			}
			return ""
		})
		return ofTrace(c, trace)
	}
	named := func(spans []collector.Span, name string) collector.Span {
		n := slices.IndexFunc(spans, func(s collector.Span) bool { return s.Name == name })
		require.GreaterOrEqual(t, n, 0, name)
		return spans[n]
	}
	send("io.example.ordered", order)
	shipped := requireTrace(order, `signalbox.v1.EventService/PublishEvents
  StartWorkflow signalbox.run
    RunWorkflow signalbox.run
      RunActivity signalbox.emit
        SignalWorkflow signalbox.event
`)
	delivery := named(shipped, "SignalWorkflow signalbox.event")
	require.Equal(t, waiter, delivery.Attributes["signalbox.run.id"])
	s.Await(t, waiter, soon, "completed")
	waited := requireTrace(waiting, `signalbox.v1.RunService/StartRun
  StartWorkflow signalbox.run
    RunWorkflow signalbox.run
      RunActivity signalbox.listen
`)
	require.Equal(t, []string{order + "/" + delivery.ID}, named(waited, "RunWorkflow signalbox.run").Links)

	send("io.example.paid", payment)
	closed := requireTrace(payment, `signalbox.v1.EventService/PublishEvents
  StartWorkflow signalbox.run
    RunWorkflow signalbox.run
`)
	require.Equal(t, []string{order + "/" + named(shipped, "RunActivity signalbox.emit").ID},
		named(closed, "StartWorkflow signalbox.run").Links)
	require.NotContains(t, c.Dump(t), plantedSealed)
}

// A caller that does not sample its trace, and a sampler that samples none, have no spans; the run is the same, and so
// are the metrics.
func TestTracesAreSampledAtTheHead(t *testing.T) {
	t.Parallel()
	c, site := collector.New(t), origin.New(t)
	s, workflow := traced(t, site, c.Env(collector.HTTP)...)
	const unsampled, sampled = "0af7651916cd43dd8448eb211c80319d", "0af7651916cd43dd8448eb211c80319e"
	s.Await(t, start(t, s, workflow, "00-"+unsampled+"-b7ad6b7169203331-00"), soon, "completed")
	s.Await(t, start(t, s, workflow, "00-"+sampled+"-b7ad6b7169203331-01"), soon, "completed")
	platform.Eventually(t, soon, func() string {
		if len(ofTrace(c, sampled)) == 0 {
			return "the sampled trace has not arrived"
		}
		return ""
	})
	require.Empty(t, ofTrace(c, unsampled))
	require.Equal(t, "00-"+unsampled, site.Calls("POST /payment")[0].Header.Get("Traceparent")[:35],
		"the decision is passed on")
	require.True(t, strings.HasSuffix(site.Calls("POST /payment")[0].Header.Get("Traceparent"), "-00"))

	off, quiet := collector.New(t), origin.New(t)
	s, workflow = traced(t, quiet, append(off.Env(collector.HTTP), "OTEL_TRACES_EXPORTER=none")...)
	s.Await(t, start(t, s, workflow, "00-"+sampled+"-b7ad6b7169203331-01"), soon, "completed")
	platform.Eventually(t, soon, func() string {
		if len(off.Points()) == 0 {
			return "no metrics have arrived"
		}
		return ""
	})
	require.Empty(t, off.Spans())
	require.Empty(t, quiet.Calls("POST /payment")[0].Header.Get("Traceparent"))
	require.NotContains(t, s.Output(), "trace_id")
}

// A collector that is absent at the start, or accepts connections and does not answer, delays neither a run nor the
// stop.
func TestCollectorIsAbsentOrHangs(t *testing.T) {
	t.Parallel()
	hung, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = hung.Close() })
	go func() {
		for {
			if _, err := hung.Accept(); err != nil {
				return
			}
		}
	}()
	for name, endpoint := range map[string]string{
		"absent": platform.Address(platform.FreePort(t)), "hung": hung.Addr().String()} {
		for _, protocol := range []string{collector.GRPC, collector.HTTP} {
			t.Run(name+" "+protocol, func(t *testing.T) {
				t.Parallel()
				site := origin.New(t)
				s, workflow := traced(t, site, append(collector.Frequently(), "OTEL_EXPORTER_OTLP_ENDPOINT=http://"+endpoint,
					"OTEL_EXPORTER_OTLP_PROTOCOL="+protocol, "OTEL_EXPORTER_OTLP_TIMEOUT=500")...)
				for range 3 {
					s.Await(t, start(t, s, workflow, ""), soon, "completed")
				}
				for _, signal := range []string{"Traces", "Metrics"} {
					platform.Eventually(t, soon, func() string {
						if !strings.Contains(s.Output(), signal+" cannot be exported") {
							return "the failure is not logged: " + s.Output()
						}
						return ""
					})
				}
				begun := time.Now()
				s.Terminate()
				code, ended := s.WaitFor(soon)
				took := time.Since(begun)
				require.True(t, ended)
				require.Zero(t, code, s.Output())
				promise.Within(t, "a stop that waits up to 2 s for the collector", took, 15*time.Second)
				for _, signal := range []string{"Traces", "Metrics"} {
					require.Equal(t, 1, strings.Count(s.Output(), signal+" cannot be exported"), "once a minute")
				}
			})
		}
	}
}

// A run continues in processes with and without traces in turn.
func TestRunsMoveBetweenProcessesWithAndWithoutTraces(t *testing.T) {
	t.Parallel()
	c := collector.New(t)
	temporal := platform.StartTemporal(t)
	store := platform.SQLite(t)
	serve := func(env ...string) *platform.Server {
		return platform.StartServer(t, platform.ServerOptions{Temporal: temporal.Address, Store: store, Env: env})
	}
	site := origin.New(t)
	site.Answer("GET /end", http.StatusOK, `{}`)
	s := serve(c.Env(collector.GRPC)...)
	workflow := s.Publish(t, platform.Document("waits",
		"  - pause: {wait: {seconds: 4}}\n  - end: {call: http, with: {method: get, endpoint: '"+site.URL+"/end'}}\n"))
	traced := s.Start(t, workflow, "").GetId()
	s.Terminate()
	_, _ = s.WaitFor(soon)

	s = serve()
	untraced := s.Start(t, workflow, "").GetId()
	s.Await(t, traced, soon, "completed")
	s.Kill()

	s = serve(c.Env(collector.GRPC)...)
	s.Await(t, untraced, soon, "completed")
	platform.Eventually(t, soon, func() string {
		for _, span := range c.Spans() {
			if span.Attributes["signalbox.run.id"] == untraced && span.Parent == "" && span.Name == "RunWorkflow signalbox.run" {
				if got := tree(ofTrace(c, span.Trace), "", ""); got == "RunWorkflow signalbox.run\n  RunActivity "+
					"signalbox.http\n    GET\n" {
					return ""
				}
			}
		}
		return "a run of a process without traces has no trace of its own"
	})
	require.True(t, slices.ContainsFunc(c.Spans(), func(s collector.Span) bool {
		return s.Attributes["signalbox.run.id"] == traced && s.Name == "StartWorkflow signalbox.run"
	}))
}

// Invalid variables are refused at the start, in one message, and check-config reports the same. The lateness of a
// timer is that of its arrival in a worker, and a process that replays the run does not measure it again.
func TestLatenessOfTimersIsMeasuredOnce(t *testing.T) {
	t.Parallel()
	o := platform.ServerOptions{Temporal: platform.StartTemporal(t).Address, Store: platform.SQLite(t)}
	s := platform.StartServer(t, o)
	measured := func(suffix string) float64 {
		sum, _, err := counter.Metric(t.Context(), s, "signalbox_timer_lateness_seconds_"+suffix)
		require.NoError(t, err)
		return sum
	}
	const due, missed = time.Second, 2 * time.Second
	id := s.Start(t, s.Publish(t,
		platform.Document("twice", "  - first: {wait: {seconds: 1}}\n  - second: {wait: {seconds: 5}}\n")), "").GetId()
	began := s.Await(t, id, soon, "waiting").GetStartTime().AsTime()
	_, exists, err := counter.Metric(t.Context(), s, "signalbox_timer_lateness_seconds_count")
	require.NoError(t, err)
	require.NotZero(t, exists, "the series exists before the first timer")
	s.Kill()
	platform.Eventually(t, soon, func() string {
		if time.Since(began) < due+missed {
			return "the timer is not late yet"
		}
		return ""
	})

	s = platform.StartServer(t, o)
	platform.Eventually(t, soon, func() string {
		if steps := s.Steps(t, id); len(steps) < 2 {
			return "the first timer has not fired"
		}
		return ""
	})
	require.InDelta(t, 1, measured("count"), 0)
	require.Greater(t, measured("sum"), missed.Seconds())
	s.Kill()

	s = platform.StartServer(t, o)
	s.Await(t, id, soon, "completed")
	require.InDelta(t, 1, measured("count"), 0, "it has replayed the first timer")
}

func TestInvalidTelemetryVariablesAreRefused(t *testing.T) {
	t.Parallel()
	command := platform.Command{
		Binary: platform.ServerBinary(t),
		Args:   []string{"server", "--store-driver", "sqlite", "--store-dsn", t.TempDir() + "/s.db"},
		Env: []string{platform.WithKeys(t), "OTEL_TRACES_EXPORTER=zipkin", "OTEL_EXPORTER_OTLP_ENDPOINT=localhost:4317",
			"OTEL_EXPORTER_OTLP_PROTOCOL=http/json",
			"OTEL_TRACES_SAMPLER=sometimes", "OTEL_METRIC_EXPORT_INTERVAL=10s"},
	}
	result := platform.Run(t, command)
	require.NotZero(t, result.Code)
	for _, part := range []string{
		"OTEL_TRACES_EXPORTER", "otlp or none", "OTEL_EXPORTER_OTLP_ENDPOINT", "http or https", "OTEL_EXPORTER_OTLP_PROTOCOL",
		"grpc or http/protobuf",
		"OTEL_TRACES_SAMPLER", "parentbased_traceidratio", "OTEL_METRIC_EXPORT_INTERVAL", "milliseconds"} {
		require.Contains(t, result.Stderr, part)
	}
	require.Equal(t, 5, strings.Count(result.Stderr, "OTEL_"), result.Stderr)
	command.Args[0] = "check-config"
	checked := platform.Run(t, command)
	require.NotZero(t, checked.Code)
	require.Equal(t, strings.TrimPrefix(result.Stderr, "error: "), checked.Stdout, "the same problems in the same words")
}
