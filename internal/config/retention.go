package config

import "time"

// Retention sets how long finished data is retained.
type Retention struct {
	Interval time.Duration   `yaml:"interval" default:"1h" doc:"Interval at which one elected process deletes data past its limit."`
	Runs     RetentionLimits `yaml:"runs" doc:"Runs that have ended, with their steps and all related data. Age counts from their end; max_count keeps the newest by creation. No run is deleted in the first hour after its end."`
	Events   RetentionLimits `yaml:"events" doc:"Events that were matched and have no pending delivery, with their deliveries."`
	Audit    RetentionLimits `yaml:"audit" doc:"Entries of the audit log."`
	Owners   RetentionLimits `yaml:"owners" doc:"The history of dispatcher owners. The newest owner of each is always kept."`
	Batches  RetentionLimits `yaml:"batches" doc:"Batches that have ended, with the results of their runs."`
}

// RetentionLimits bound the retained data of one kind. Data beyond any limit is deleted.
type RetentionLimits struct {
	MaxAge   time.Duration `yaml:"max_age" default:"0s" doc:"Longest time, for example 720h; 0s: forever. At least an hour."`
	MaxCount int           `yaml:"max_count" default:"0" doc:"Most in each project, the newest; 0: any number."`
}

// leastAge is the shortest age of deleted data. The reconciler searches for rows of executions that ended minutes ago.
const leastAge = time.Hour

// Validate reports limits that would delete data in use.
func (r Retention) Validate() Violations {
	var ps found
	atLeast(&ps, "interval", r.Interval, time.Second)
	all := Violations(ps)
	for _, of := range []struct {
		name   string
		limits RetentionLimits
	}{{"runs", r.Runs}, {"events", r.Events}, {"audit", r.Audit}, {"owners", r.Owners}, {"batches", r.Batches}} {
		all = append(all, of.limits.Validate().under(of.name)...)
	}
	return all
}

// Validate reports an age that is too short, and negative numbers.
func (l RetentionLimits) Validate() Violations {
	var ps found
	if l.MaxAge != 0 {
		atLeast(&ps, "max_age", l.MaxAge, leastAge)
	}
	atLeastNumber(&ps, "max_count", l.MaxCount, 0)
	return Violations(ps)
}
