package config

import "time"

// Retention says how long what is over is kept.
type Retention struct {
	Interval time.Duration   `yaml:"interval" default:"1h" doc:"How often one process of all looks for what may go."`
	Runs     RetentionLimits `yaml:"runs" doc:"Runs that have ended, with their steps and all else that is kept of them, by the time of their end; of counts, the newest by creation. No run goes in the first hour after its end."`
	Events   RetentionLimits `yaml:"events" doc:"Events that were matched and of which nothing is still to be delivered, with their deliveries."`
	Audit    RetentionLimits `yaml:"audit" doc:"Entries of the audit log."`
	Owners   RetentionLimits `yaml:"owners" doc:"Who owned the dispatchers. The newest owner of each is kept in any case."`
	Batches  RetentionLimits `yaml:"batches" doc:"Batches that have ended, with what became of their runs."`
}

// RetentionLimits bound what is kept of one kind. What is beyond any of them goes.
type RetentionLimits struct {
	MaxAge   time.Duration `yaml:"max_age" default:"0s" doc:"Longest time, for example 720h; 0s: for ever. At least an hour."`
	MaxCount int           `yaml:"max_count" default:"0" doc:"Most in each project, the newest; 0: any number."`
}

// leastAge is the shortest age at which anything goes. The reconciler looks for rows of executions that ended minutes ago.
const leastAge = time.Hour

// Validate reports bounds that would take away what is in use.
func (r Retention) Validate() Problems {
	var ps found
	atLeast(&ps, "interval", r.Interval, time.Second)
	all := Problems(ps)
	for _, of := range []struct {
		name   string
		limits RetentionLimits
	}{{"runs", r.Runs}, {"events", r.Events}, {"audit", r.Audit}, {"owners", r.Owners}, {"batches", r.Batches}} {
		all = append(all, of.limits.Validate().under(of.name)...)
	}
	return all
}

// Validate reports an age that is too short, and numbers that are none.
func (l RetentionLimits) Validate() Problems {
	var ps found
	if l.MaxAge != 0 {
		atLeast(&ps, "max_age", l.MaxAge, leastAge)
	}
	atLeastNumber(&ps, "max_count", l.MaxCount, 0)
	return Problems(ps)
}
