package config

import (
	"strings"
	"time"
)

// Dispatch is how the owners of dispatchers and the workers show that they live.
type Dispatch struct {
	TTL           time.Duration `yaml:"ttl" default:"15s" doc:"How long the ownership of a dispatcher counts without a renewal. After a crash the next owner begins when it is out."`
	Renew         time.Duration `yaml:"renew" default:"5s" doc:"How often an owner renews it. Shorter than ttl by more than a second."`
	Heartbeat     time.Duration `yaml:"heartbeat" default:"5s" doc:"How often a worker says that it lives."`
	StaleAfter    time.Duration `yaml:"stale_after" default:"20s" doc:"A worker that has not said so for this long counts as gone, and a dispatcher with work that has not moved for this long as stale."`
	Retention     time.Duration `yaml:"retention" default:"10m" doc:"How long what was known of owners and workers stays readable after them."`
	Idle          time.Duration `yaml:"idle" default:"1m" doc:"How long a dispatcher without events looks for new ones before it sleeps until it is woken."`
	CheckInterval time.Duration `yaml:"check_interval" default:"30s" doc:"How often a dispatcher at work compares its registered workers with their heartbeats. Those that are missing twice are evicted."`
}

// Supervisor is how often, and how eagerly, what crashed is cleaned up.
type Supervisor struct {
	Interval        time.Duration `yaml:"interval" default:"1m" doc:"How often each worker process compares leases, heartbeats and the dispatchers in Temporal."`
	Confirm         time.Duration `yaml:"confirm" default:"2s" doc:"How long after the first look at something stale the second one comes, before it is ended."`
	MaxTerminations int           `yaml:"max_terminations" default:"20" doc:"Most dispatchers that one comparison ends. The rest waits for the next."`
	LegacyIDs       []string      `yaml:"legacy_ids" default:"" doc:"Workflow IDs that older programs gave their dispatchers, which are to be ended: {project} and {task_queue} stand for the names, * for any text, for example \"dispatcher-{project}-*\". Only workflows of the dispatcher's type on the project's task queue are ended."`
}

// Events bounds what is published at a time.
type Events struct {
	MaxDataBytes Size `yaml:"max_data_bytes" default:"256KiB" doc:"Largest data of one event. At most 16MiB, and no more than api.max_request_bytes."`
	MaxBatch     int  `yaml:"max_batch" default:"1000" doc:"Most events in one request."`
}

// mostCleanup bounds the time from a crash to the end of what it left behind.
const mostCleanup = 2 * time.Minute

// ownerMargin is how long before its end an owner stops to trust its lease: package lease's.
const ownerMargin = time.Second

// Validate reports paces that contradict each other. Of two that do, the one is blamed that is derived from the other.
func (d Dispatch) Validate() Problems {
	var ps found
	atLeast(&ps, "ttl", d.TTL, shortest)
	atLeast(&ps, "renew", d.Renew, shortest)
	atLeast(&ps, "heartbeat", d.Heartbeat, shortest)
	atLeast(&ps, "stale_after", d.StaleAfter, shortest)
	atLeast(&ps, "retention", d.Retention, shortest)
	atLeast(&ps, "idle", d.Idle, shortest)
	atLeast(&ps, "check_interval", d.CheckInterval, shortest)
	if len(ps) > 0 {
		return Problems(ps) // what follows compares them
	}
	if d.Renew+ownerMargin >= d.TTL {
		ps.add("renew", "%v is too long for dispatch.ttl (%v): an owner trusts its lease until %v before the end; lower it or raise the other", d.Renew, d.TTL, ownerMargin)
	}
	if d.Heartbeat >= d.StaleAfter {
		ps.add("heartbeat", "%v is not shorter than dispatch.stale_after (%v), so every worker would count as gone; lower it or raise the other", d.Heartbeat, d.StaleAfter)
	}
	if d.StaleAfter >= d.Retention {
		ps.add("retention", "%v is not longer than dispatch.stale_after (%v), so nobody would see what has become stale; raise it", d.Retention, d.StaleAfter)
	}
	if d.TTL >= d.Retention {
		ps.add("retention", "%v is not longer than dispatch.ttl (%v), so nobody would see that an owner crashed; raise it", d.Retention, d.TTL)
	}
	return Problems(ps)
}

// Validate reports a supervisor that does nothing, or would end what is not its own.
func (s Supervisor) Validate() Problems {
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
	return Problems(ps)
}

// validateCleanup reports paces that together leave what a crash left behind for too long.
func (c *Config) validateCleanup(ps *found) {
	if sum := c.Dispatch.StaleAfter + c.Supervisor.Confirm + c.Supervisor.Interval; sum > mostCleanup {
		ps.add("supervisor.interval", "%v, dispatch.stale_after (%v) and supervisor.confirm (%v) add up to %v, and what a crash leaves behind must be gone within %v; lower one of them",
			c.Supervisor.Interval, c.Dispatch.StaleAfter, c.Supervisor.Confirm, sum, mostCleanup)
	}
}

// Validate bounds events and batches.
func (e Events) Validate() Problems {
	var ps found
	payload(&ps, "max_data_bytes", e.MaxDataBytes)
	atLeastNumber(&ps, "max_batch", e.MaxBatch, 1)
	return Problems(ps)
}
