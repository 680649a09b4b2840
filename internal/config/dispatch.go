package config

import (
	"strings"
	"time"
)

// Dispatch holds the intervals of leases and heartbeats of dispatchers and workers.
type Dispatch struct {
	TTL           time.Duration `yaml:"ttl" default:"9s" doc:"How long the ownership of a dispatcher is valid without a renewal. After a crash the next owner takes over when it has expired."`
	Renew         time.Duration `yaml:"renew" default:"3s" doc:"Interval at which an owner renews it. Shorter than ttl by more than a second."`
	Heartbeat     time.Duration `yaml:"heartbeat" default:"5s" doc:"Interval of a worker's heartbeats."`
	StaleAfter    time.Duration `yaml:"stale_after" default:"20s" doc:"A worker without a heartbeat for this long counts as gone, and a dispatcher with work and without progress for this long as stale."`
	Retention     time.Duration `yaml:"retention" default:"10m" doc:"How long entries of owners and workers stay readable after these are gone."`
	Idle          time.Duration `yaml:"idle" default:"1m" doc:"How long a dispatcher without events polls for new ones before it parks until its doorbell signal."`
	CheckInterval time.Duration `yaml:"check_interval" default:"30s" doc:"Interval at which a working dispatcher compares its registered workers with their heartbeats. Workers that are missing twice are evicted."`
}

// Supervisor holds the intervals of the clean-up after crashes.
type Supervisor struct {
	Interval        time.Duration `yaml:"interval" default:"1m" doc:"Interval at which each worker process compares leases, heartbeats and the dispatchers in Temporal."`
	Confirm         time.Duration `yaml:"confirm" default:"2s" doc:"Delay between the first finding of a stale dispatcher and its confirmation, before it is ended."`
	MaxTerminations int           `yaml:"max_terminations" default:"20" doc:"Maximum of dispatchers that one comparison ends. The rest waits for the next."`
	LegacyIDs       []string      `yaml:"legacy_ids" default:"" doc:"Workflow IDs of dispatchers of older programs that the supervisor ends: {project} and {task_queue} stand for the names, * for any text, for example \"dispatcher-{project}-*\". Only workflows of the dispatcher's type on the project's task queue are ended."`
}

// MaxEventBatch is the largest events.max_batch, and the number of events in a request that a server decodes at all.
const MaxEventBatch = 10_000

// Events bounds the events of one request, and the search for earlier ones.
type Events struct {
	MaxDataBytes Size `yaml:"max_data_bytes" default:"256KiB" doc:"Largest data of one event. At most 16MiB, and no more than api.max_request_bytes."`
	MaxBatch     int  `yaml:"max_batch" default:"1000" doc:"Maximum of events in one request. At most 10000."`
	MaxLookback  int  `yaml:"max_lookback" default:"10000" doc:"Maximum of earlier events of one type that a listen task looks through, the newest ones, when it begins to wait. Beyond it the run has the warning EVENTS_NOT_SEARCHED."`
}

// mostCleanup bounds the time from a crash to the end of its clean-up.
const mostCleanup = 2 * time.Minute

// ownerMargin is how long before its end an owner stops trusting its lease, as in package lease.
const ownerMargin = time.Second

// Validate reports intervals that contradict each other. Of two, it names the one that is derived from the other.
func (d Dispatch) Validate() Violations {
	var ps found
	atLeast(&ps, "ttl", d.TTL, shortest)
	atLeast(&ps, "renew", d.Renew, shortest)
	atLeast(&ps, "heartbeat", d.Heartbeat, shortest)
	atLeast(&ps, "stale_after", d.StaleAfter, shortest)
	atLeast(&ps, "retention", d.Retention, shortest)
	atLeast(&ps, "idle", d.Idle, shortest)
	atLeast(&ps, "check_interval", d.CheckInterval, shortest)
	if len(ps) > 0 {
		return Violations(ps) // the following checks compare them
	}
	if d.Renew+ownerMargin >= d.TTL {
		ps.add("renew", "%v is too long for dispatch.ttl (%v): an owner trusts its lease until %v before the end; lower it "+
			"or raise the other", d.Renew, d.TTL, ownerMargin)
	}
	if d.Heartbeat >= d.StaleAfter {
		ps.add("heartbeat", "%v is not shorter than dispatch.stale_after (%v), so every worker would count as gone; lower "+
			"it or raise the other", d.Heartbeat, d.StaleAfter)
	}
	if d.StaleAfter >= d.Retention {
		ps.add("retention", "%v is not longer than dispatch.stale_after (%v), so entries would be deleted before they "+
			"count as stale; raise it", d.Retention, d.StaleAfter)
	}
	if d.TTL >= d.Retention {
		ps.add("retention", "%v is not longer than dispatch.ttl (%v), so the entry of a crashed owner would be deleted "+
			"before its lease expires; raise it", d.Retention, d.TTL)
	}
	return Violations(ps)
}

// Validate reports a supervisor that does nothing, or would end work of others.
func (s Supervisor) Validate() Violations {
	var ps found
	atLeast(&ps, "interval", s.Interval, time.Second)
	atLeast(&ps, "confirm", s.Confirm, shortest)
	atLeastNumber(&ps, "max_terminations", s.MaxTerminations, 1)
	for _, pattern := range s.LegacyIDs {
		rest := strings.NewReplacer("{project}", "", "{task_queue}", "").Replace(pattern)
		switch {
		case !strings.Contains(pattern, "{project}"):
			ps.add("legacy_ids", "%q lacks {project}, so it would match the workflows of other projects", pattern)
		case strings.ContainsAny(rest, "{}"):
			ps.add("legacy_ids", "%q holds braces that stand for nothing; only {project} and {task_queue} do", pattern)
		}
	}
	return Violations(ps)
}

// validateCleanup reports intervals that together delay the clean-up after a crash too long.
func (c *Config) validateCleanup(ps *found) {
	if sum := c.Dispatch.StaleAfter + c.Supervisor.Confirm + c.Supervisor.Interval; sum > mostCleanup {
		ps.add("supervisor.interval", "%v, dispatch.stale_after (%v) and supervisor.confirm (%v) add up to %v, and what a "+
			"crash leaves behind must be gone within %v; lower one of them",
			c.Supervisor.Interval, c.Dispatch.StaleAfter, c.Supervisor.Confirm, sum, mostCleanup)
	}
}

// Validate bounds events and batches.
func (e Events) Validate() Violations {
	var ps found
	payload(&ps, "max_data_bytes", e.MaxDataBytes)
	atLeastNumber(&ps, "max_batch", e.MaxBatch, 1)
	if e.MaxBatch > MaxEventBatch {
		ps.add("max_batch", "%d is too many; give at most %d", e.MaxBatch, MaxEventBatch)
	}
	atLeastNumber(&ps, "max_lookback", e.MaxLookback, 1)
	return Violations(ps)
}
