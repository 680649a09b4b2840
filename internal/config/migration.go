package config

import (
	"regexp"
	"time"
)

// Migration names the database of an older engine, whose changes are imported while old processes still write to it.
type Migration struct {
	From      Secret        `yaml:"from" default:"" doc:"The database: a Postgres URL or the path of a SQLite file, which is only read. New and changed runs are imported as by \"signalbox migrate import\", by one process at a time, until this key is removed. Give a password by reference, as in store.dsn. Empty: none."`
	Project   string        `yaml:"project" default:"" doc:"Project for all its runs. Empty: each run keeps its project, which is created if it is missing."`
	Namespace string        `yaml:"namespace" default:"legacy" doc:"Workflow namespace of workflows whose names have none."`
	Interval  time.Duration `yaml:"interval" default:"30s" doc:"Interval of the scans; longer if a scan takes long."`
}

// Validate reports invalid names and an invalid interval.
func (m Migration) Validate() Violations {
	var ps found
	if m.Project != "" && !regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`).MatchString(m.Project) {
		ps.add("project", "%q is not a project's name: lower-case letters, digits and hyphens, at most 63", m.Project)
	}
	if !regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9.-]{0,61}[A-Za-z0-9])?$`).MatchString(m.Namespace) {
		ps.add("namespace", "%q cannot stand before a workflow's name: letters, digits, hyphens and dots, at most 63",
			m.Namespace)
	}
	atLeast(&ps, "interval", m.Interval, time.Second)
	return Violations(ps)
}
