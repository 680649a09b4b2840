package picture

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Contradiction returns the first contradiction between the parts of a picture, or "".
func (p Picture) Contradiction() string {
	for _, compare := range []func() string{
		p.dependencies, p.connection, p.queued, p.polls, p.workers, p.dispatchers, p.conditions, p.backlog, p.runs} {
		if wrong := compare(); wrong != "" {
			return wrong
		}
	}
	return ""
}

// dependencies compares the status with /readyz.
func (p Picture) dependencies() string {
	for _, d := range p.Status.Dependencies {
		if p.Needs[d.Name] != d.State {
			return fmt.Sprintf("%s is %q in the status and %q in /readyz", d.Name, d.State, p.Needs[d.Name])
		}
	}
	mismatch, _ := p.Metric("signalbox_temporal_mismatch")
	switch {
	case len(p.Status.Dependencies) != len(p.Needs):
		return fmt.Sprintf("the status has %v, and /readyz %v", p.Status.Dependencies, p.Needs)
	case (mismatch > 0) != (p.Needs["placement"] == "down"):
		return fmt.Sprintf("signalbox_temporal_mismatch is %v, and the placement is %q in /readyz", mismatch,
			p.Needs["placement"])
	}
	if _, shown := p.Metric("signalbox_temporal_certificate_expiry_timestamp_seconds"); shown &&
		p.Needs["certificate"] == "" {
		return "a certificate is shown in the metrics, and not in /readyz"
	}
	used, limited := p.Metric("signalbox_memory_used_bytes")
	limit, _ := p.Metric("signalbox_memory_limit_bytes")
	const high, slack = .70, .05
	switch {
	case limited && p.Needs["memory"] == "up" && used >= high*limit:
		return fmt.Sprintf("%v of %v bytes of memory are used, and /readyz has memory up", used, limit)
	case limited && p.Needs["memory"] == "down" && used < (high-slack)*limit:
		return fmt.Sprintf("%v of %v bytes of memory are used, and /readyz has memory down", used, limit)
	}
	return ""
}

// connection compares the status with /readyz and the metrics of the connection.
func (p Picture) connection() string {
	c := p.Status.Connection
	usable := c.State == "connected" || c.State == "degraded"
	status, uptime := p.Value("temporal_connection_status"), p.Value("temporal_connection_uptime_seconds")
	degraded, breaker := p.Value("temporal_connection_degraded"), p.Value("temporal_circuit_breaker_state")
	outages := p.Value("temporal_outage_duration_seconds_count") // absent before the first has ended
	switch {
	case (p.Needs["temporal"] == "down") == usable, (p.Needs["temporal"] == "up") != (c.State == "connected"):
		return fmt.Sprintf("Temporal is %q in /readyz and %q in the status", p.Needs["temporal"], c.State)
	case (status == 0) == usable:
		return fmt.Sprintf("temporal_connection_status is %v, and the status says %q", status, c.State)
	case (uptime == 0) == usable:
		return fmt.Sprintf("temporal_connection_uptime_seconds is %v, and the status says %q", uptime, c.State)
	case (degraded > 0) != (c.State == "degraded"),
		degraded > 0 && p.Value("temporal_connection_degraded", `kind="`+c.Kind+`"`) != degraded:
		return fmt.Sprintf("temporal_connection_degraded is %v, and the status says %q %q", degraded, c.State, c.Kind)
	case breaker != map[string]float64{"closed": 0, "half_open": 1, "open": 2}[c.Breaker.State]:
		return fmt.Sprintf("temporal_circuit_breaker_state is %v, and the status says %q", breaker, c.Breaker.State)
	case usable && fmt.Sprint(outages) != c.Statistics.Outages.String():
		return fmt.Sprintf("temporal_outage_duration_seconds has %v, and the status %s outages", outages,
			c.Statistics.Outages)
	}
	return ""
}

// queued compares the status with the metric of runs that wait for Temporal.
func (p Picture) queued() string {
	waiting, known := p.Metric("signalbox_queue_mode_runs")
	switch {
	case known != (p.Status.QueueMode.Error == ""):
		return fmt.Sprintf("signalbox_queue_mode_runs is there: %v, and the status says %q", known, p.Status.QueueMode.Error)
	case known && waiting > 0 && fmt.Sprint(waiting) != p.Status.QueueMode.Runs.String():
		return fmt.Sprintf("signalbox_queue_mode_runs is %v, and the status says %q", waiting, p.Status.QueueMode.Runs)
	}
	return ""
}

// polls compares the worker sets of the status with the metrics and /readyz.
func (p Picture) polls() string {
	var running, polled float64
	for _, set := range p.Status.Connection.WorkerSets {
		if set.Running {
			running++
		}
		if set.Polling {
			polled += float64(len(set.TaskQueues))
		}
	}
	switch {
	case p.Value("temporal_workers_running") != running:
		return fmt.Sprintf("temporal_workers_running is %v, and the status has %v", p.Value("temporal_workers_running"),
			p.Status.Connection.WorkerSets)
	case p.Value("signalbox_queue_pollers") != polled:
		return fmt.Sprintf("signalbox_queue_pollers is %v, and the status has %v", p.Value("signalbox_queue_pollers"),
			p.Status.Connection.WorkerSets)
	case p.IsWorker() && polled == 0 && p.Needs["pollers"] == "up":
		return "pollers are up, and nothing is polled"
	}
	return ""
}

// workers compares the live workers of the status with the list. The list has another source, which may be less
// complete.
func (p Picture) workers() string {
	if p.Status.WorkersError != "" || p.Workers == nil || p.WorkersIn("unknown") > 0 {
		return ""
	}
	var live, alive []string
	for _, w := range p.Status.Workers {
		live = append(live, w.ServerID)
	}
	for _, id := range slices.Sorted(maps.Keys(p.Workers)) {
		if p.Workers[id] == "alive" {
			alive = append(alive, id)
		}
	}
	slices.Sort(live)
	if !slices.Equal(live, alive) {
		return fmt.Sprintf("the status has the live workers %v, and the list %v", live, p.Workers)
	}
	return ""
}

// dispatchers compares the list with the single view of the dispatcher.
func (p Picture) dispatchers() string {
	active, _ := p.dispatcher("dispatcher_active")
	switch {
	case p.Listed == nil:
		return "no dispatcher is listed"
	case p.Shown != nil && p.Shown.State != p.Listed.State:
		return fmt.Sprintf("the dispatcher is %q in the list, and %q when it is shown", p.Listed.State, p.Shown.State)
	case p.Shown != nil && p.Shown.Lease.State != p.Listed.Lease.State:
		return fmt.Sprintf("its lease is %q in the list, and %q when it is shown", p.Listed.Lease.State, p.Shown.Lease.State)
	case active > 0 && p.Listed.State == "no_workers":
		return fmt.Sprintf("dispatcher_active is %v, and the dispatcher is %q", active, p.Listed.State)
	}
	return ""
}

// conditions compares the list with the metrics of dispatcher problems.
func (p Picture) conditions() string {
	stale, staleKnown := p.dispatcher("dispatcher_stale")
	duplicates, duplicatesKnown := p.dispatcher("dispatcher_duplicates")
	foreign, foreignKnown := p.dispatcher("dispatcher_foreign")
	switch {
	case duplicatesKnown != foreignKnown, foreignKnown && !staleKnown:
		return fmt.Sprintf("of dispatcher_stale, dispatcher_duplicates and dispatcher_foreign some are there: %v, %v, %v",
			staleKnown, duplicatesKnown, foreignKnown)
	case foreignKnown && len(p.Listed.Errors) > 0:
		return fmt.Sprintf("dispatcher_foreign is %v, and not known is %v", foreign, p.Listed.Errors)
	case !foreignKnown && len(p.Listed.Errors) == 0 && p.Listed.State != "unknown":
		return fmt.Sprintf("dispatcher_foreign is not there, and the dispatcher is %q", p.Listed.State)
	case foreignKnown && (foreign > 0) != (p.Listed.State == "foreign"):
		return fmt.Sprintf("the dispatcher is %q, and dispatcher_foreign %v", p.Listed.State, foreign)
	case foreignKnown && p.Listed.State == "stale" && stale == 0:
		return "the dispatcher is stale, and dispatcher_stale 0"
	case foreignKnown && (duplicates > 0) != strings.Contains(p.Listed.Detail, "also open under an older ID"):
		return fmt.Sprintf("dispatcher_duplicates is %v, and the detail %q", duplicates, p.Listed.Detail)
	case stale > 0 && duplicates == 0 && (p.Listed.State == "routing" || p.Listed.State == "parked"):
		return fmt.Sprintf("the dispatcher is %q, and dispatcher_stale %v", p.Listed.State, stale)
	}
	return ""
}

// backlog compares the list with the metrics of the inbox.
func (p Picture) backlog() string {
	for _, name := range []string{"dispatcher_inbox_lag_seconds", "dispatcher_inbox_pending"} {
		if _, known := p.dispatcher(name); known != (p.Listed.Progress != nil) {
			return fmt.Sprintf("%s is there: %v, and the list has the progress %v", name, known, p.Listed.Progress)
		}
	}
	if p.Needs["store"] == "up" && p.Listed.Progress == nil {
		return "the backlog is unknown although the store is up"
	}
	return ""
}

// runs compares the list with the metric, which one of several processes serves.
func (p Picture) runs() string {
	stuck, known := p.Metric("signalbox_runs_stuck")
	switch {
	case p.Stuck == nil && p.Needs["store"] == "up":
		return "the runs are unknown although the store is up"
	case known && p.Stuck != nil && int(stuck) != len(p.Stuck):
		return fmt.Sprintf("signalbox_runs_stuck is %v, and the list has %v", stuck, p.Stuck)
	}
	return ""
}
