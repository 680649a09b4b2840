package telemetry

import (
	"strings"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.temporal.io/sdk/client"
)

// Dispatch is the metrics handler of the dispatchers (dispatcher_active, dispatcher_takeovers_total, ...). Names go out as they
// come in. Of the tags, those alone become labels that do not grow with restarts: outcome, project, reason and result; the SDK adds
// others where a workflow asks for its handler. Timers have buckets from a millisecond to two minutes.
func (t *Telemetry) Dispatch() client.MetricsHandler { return dispatch{t.handler(scope)} }

// dispatch lets some tags through.
type dispatch struct{ client.MetricsHandler }

// WithTags returns a handler with more labels.
func (d dispatch) WithTags(tags map[string]string) client.MetricsHandler {
	labels := map[string]string{}
	for _, name := range []string{"outcome", "project", "reason", "result"} {
		if value, ok := tags[name]; ok {
			labels[name] = value
		}
	}
	return dispatch{d.MetricsHandler.WithTags(labels)}
}

// dispatchers gives the dispatchers' metrics their buckets and descriptions, which the SDK's handlers cannot name.
func dispatchers() sdkmetric.View {
	described := descriptions()
	return func(i sdkmetric.Instrument) (sdkmetric.Stream, bool) {
		if !strings.HasPrefix(i.Name, "dispatcher_") {
			return sdkmetric.Stream{}, false
		}
		stream := sdkmetric.Stream{Name: i.Name, Description: described[i.Name], Unit: i.Unit}
		if i.Kind == sdkmetric.InstrumentKindHistogram {
			stream.Aggregation = sdkmetric.AggregationExplicitBucketHistogram{Boundaries: seconds()}
		}
		return stream, true
	}
}

// descriptions of the dispatchers' metrics, by name.
func descriptions() map[string]string {
	return map[string]string{
		"dispatcher_active":                                  "Open dispatchers that this process owns, by project.",
		"dispatcher_stale":                                   "Dispatchers that the supervisor found stale in its last cycle.",
		"dispatcher_terminations_total":                      "Dispatchers that were terminated, by reason.",
		"dispatcher_cleanup_errors_total":                    "Failures to remove what stale dispatchers left behind.",
		"dispatcher_takeovers_total":                         "Attempts to own a dispatcher, by outcome.",
		"dispatcher_takeover_seconds":                        "Time until a dispatcher has its next owner: from the last renewal of one that crashed, otherwise from when the lease was won.",
		"dispatcher_stale_cleanups_total":                    "Stale dispatchers and entries that were cleaned up.",
		"dispatcher_cleanup_seconds":                         "Time from the last sign of life of what became stale until it was cleaned up.",
		"dispatcher_worker_evictions_total":                  "Workers that dispatchers struck off their lists.",
		"dispatcher_duplicates":                              "Dispatchers that are open beside the one that should be, of the same project and task queue.",
		"dispatcher_terminate_errors_total":                  "Failures to terminate a dispatcher.",
		"dispatcher_supervisor_last_cycle_timestamp_seconds": "When the supervisor of this process last ended a cycle, in seconds since 1970.",
		"dispatcher_supervisor_cycles_total":                 "Cycles of the supervisor, by result.",
		"dispatcher_supervisor_cycle_seconds":                "How long a cycle of the supervisor takes.",
		"dispatcher_inbox_lag_seconds":                       "Age of the oldest event that waits to be matched or delivered.",
		"dispatcher_deliveries_total":                        "Attempts to deliver an event, by outcome.",
	}
}
