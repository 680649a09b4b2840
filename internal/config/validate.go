package config

import (
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"time"

	"github.com/signalbox-dev/signalbox/internal/config/schema"
)

// maxPayload is the largest value of a run (interp.MaxValueBytes).
const maxPayload = Size(16 << 20)

// minMemoryLimit is the memory of an idle process, with room for work.
const minMemoryLimit = Size(128 << 20)

// minCache is the memory of the runs that one worker executes at the same time.
const minCache = Size(16 << 20)

// maxSteps is the most that runs.max_steps may be.
const maxSteps = 100_000_000

// maxDepth is the most that runs.max_depth may be.
const maxDepth = 100

// maxGeneration, maxRetrying and maxRunaway are the most that runs.max_generation, runs.retrying_attempts and
// runs.runaway_per_minute may be.
const (
	maxGeneration = 1000
	maxRetrying   = 1_000_000
	maxRunaway    = 1_000_000
)

// Validate returns all violations at once as a Violations, or nil.
func (c *Config) Validate() error { return c.validate().err() }

func (c *Config) validate() Violations {
	var ps found
	c.validateProcess(&ps)
	for _, concern := range []Violations{
		c.ListenTLS.Validate().under("listen_tls"),
		c.Temporal.Validate().under("temporal"),
		c.Servers.Validate().under("servers"),
		c.Store.Validate().under("store"),
		c.Payloads.Validate().under("payloads"),
		c.Redis.Validate().under("redis"),
		c.Auth.Validate().under("auth"),
		c.API.Validate().under("api"),
		c.Encryption.Validate().under("encryption"),
		c.Runs.Validate().under("runs"),
		c.Workflows.Validate().under("workflows"),
		c.Worker.Validate().under("worker"),
		c.Runner.Validate().under("runner"),
		c.Events.Validate().under("events"),
		c.Dispatch.Validate().under("dispatch"),
		c.Supervisor.Validate().under("supervisor"),
		c.Calls.Validate().under("calls"),
		c.Secrets.Validate().under("secrets"),
		c.Retention.Validate().under("retention"),
		c.Migration.Validate().under("migration"),
		c.Log.Validate().under("log"),
		c.Telemetry.Validate().under("telemetry"),
	} {
		ps = append(ps, concern...)
	}
	if c.Payloads.Store == PayloadsPostgres && c.Payloads.DSN == c.Store.DSN {
		ps.add("payloads.dsn", "is the same database as store.dsn, which a restore would bring back together with its "+
			"payloads; name another database, or set payloads.store to database")
	}
	c.validateCleanup(&ps)
	c.validateRenewal(&ps)
	if c.API.MaxRequestBytes <= 0 {
		return Violations(ps) // reported above; everything is over it
	}
	if c.Events.MaxDataBytes > c.API.MaxRequestBytes {
		ps.add("events.max_data_bytes", "%v is over api.max_request_bytes (%v), so such an event could never arrive; lower "+
			"it or raise the other", c.Events.MaxDataBytes, c.API.MaxRequestBytes)
	}
	if c.Runs.MaxInputBytes > c.API.MaxRequestBytes {
		ps.add("runs.max_input_bytes", "%v is over api.max_request_bytes (%v), so such an input could never arrive; lower "+
			"it or raise the other", c.Runs.MaxInputBytes, c.API.MaxRequestBytes)
	}
	if c.Workflows.MaxDefinitionBytes > c.API.MaxRequestBytes {
		ps.add("workflows.max_definition_bytes", "%v is over api.max_request_bytes (%v), so such a document could never "+
			"arrive; lower it or raise the other", c.Workflows.MaxDefinitionBytes, c.API.MaxRequestBytes)
	}
	return Violations(ps)
}

func (c *Config) validateProcess(ps *found) {
	if violation := ListenViolation(c.Listen); violation != "" {
		ps.add("listen", "%q is not host:port: %s; write for example 127.0.0.1:8080", c.Listen, violation)
	} else if !IsLoopback(c.Listen) {
		c.validateReachable(ps)
	}
	if c.MemoryLimit < 0 || c.MemoryLimit > 0 && c.MemoryLimit < minMemoryLimit {
		ps.add("memory_limit", "%v is too little for a process; write at least %v, or 0 for the limit of the cgroup",
			c.MemoryLimit, minMemoryLimit)
	}
	if len(c.Roles) == 0 {
		ps.add("roles", "a process needs a role; write one or more of api, worker and runner")
	}
	for i, role := range c.Roles {
		if roles := []string{RoleAPI, RoleWorker, RoleRunner}; !slices.Contains(roles, role) {
			ps.add("roles", "%q is not a role%s; the roles are api, worker and runner", role, schema.DidYouMean(role, roles))
		} else if slices.Contains(c.Roles[:i], role) {
			ps.add("roles", "%q is named twice", role)
		}
	}
	if c.RunsProgramsAlone() && len(c.Projects) == 0 {
		ps.add("projects", "is empty, and a process with the role runner alone has no database to list them; name the "+
			"projects whose programs it executes")
	}
	name := regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)
	for _, project := range c.Projects {
		if !name.MatchString(project) {
			ps.add("projects", "%q is not a project's name: lower-case letters, digits and hyphens, at most 63", project)
		}
	}
}

// validateReachable reports listeners that must not be reachable from other machines.
func (c *Config) validateReachable(ps *found) {
	switch {
	case c.Auth.Mode == ModeNone:
		ps.add("listen", "%q can be reached from other machines, and with auth.mode none every caller is an administrator; "+
			"listen on 127.0.0.1 or [::1], or set auth.mode to tokens", c.Listen)
	case !c.ListenTLS.Enabled() && !c.ListenTLS.Disabled:
		ps.add("listen_tls.cert_file", "is empty while %q can be reached from other machines, so tokens would be sent in "+
			"plain text; give a certificate and its key, or state with listen_tls.disabled that something in front of it does "+
			"TLS", c.Listen)
	}
}

// Validate reports half a key pair, and authorities without one.
func (t ListenTLS) Validate() Violations {
	ps := found(TLS{CertFile: t.CertFile, KeyFile: t.KeyFile}.Validate())
	switch {
	case t.Disabled && (t.CertFile != "" || t.KeyFile != "" || t.ClientCAFile != ""):
		ps.add("disabled", "is true beside files; keep one of the two")
	case t.ClientCAFile != "" && t.CertFile == "" && t.KeyFile == "":
		ps.add("client_ca_file", "is set while cert_file is empty; callers show certificates to a listener that has one "+
			"itself")
	}
	return Violations(ps)
}

// Validate reports what is wrong with the connection's settings.
func (t Temporal) Validate() Violations {
	var ps found
	if violation := DialViolation(t.Address); violation != "" {
		ps.add("address", "%q is not host:port: %s", t.Address, violation)
	}
	if t.Namespace == "" {
		ps.add("namespace", "is empty; name a Temporal namespace, for example \"default\"")
	}
	if violation := WebViolation(t.UIURL); t.UIURL != "" && violation != "" {
		ps.add("ui_url", "%q is not the address of a web page: %s; write for example http://localhost:8233", t.UIURL,
			violation)
	}
	t.validateWatch(&ps)
	return slices.Concat(Violations(ps), t.Breaker.Validate().under("breaker"), t.TLS.Validate().under("tls"))
}

const (
	// shortest is the shortest time that it makes sense to watch a connection by.
	shortest = 100 * time.Millisecond
	// slow is the duration of a check from which a connection is degraded: SlowAfter of package conn.
	slow = time.Second
)

// validateWatch reports intervals that contradict each other. Of two, it names the one that is derived from the other.
func (t Temporal) validateWatch(ps *found) {
	atLeast(ps, "check_interval", t.CheckInterval, shortest)
	if t.CheckTimeout <= slow {
		ps.add("check_timeout", "%v is too short: an answer counts as slow from %v on; give more", t.CheckTimeout, slow)
	}
	atLeast(ps, "probe_interval", t.ProbeInterval, shortest)
	atLeast(ps, "rebuild_after", t.RebuildAfter, shortest)
	atLeast(ps, "drain_timeout", t.DrainTimeout, shortest)
	if t.CheckInterval < shortest {
		return // reported above; everything is over it
	}
	if t.CheckTimeout > t.CheckInterval {
		ps.add("check_timeout", "%v is over temporal.check_interval (%v), so a check would not end before the next is due; "+
			"lower it or raise the other", t.CheckTimeout, t.CheckInterval)
	}
	if t.ProbeInterval > t.CheckInterval {
		ps.add("probe_interval", "%v is over temporal.check_interval (%v), and probes are what happens between two checks; "+
			"lower it or raise the other", t.ProbeInterval, t.CheckInterval)
	}
}

// Validate reports a breaker that would always be open, or never delay anything.
func (b Breaker) Validate() Violations {
	var ps found
	atLeastNumber(&ps, "failures", b.Failures, 1)
	atLeast(&ps, "interval", b.Interval, time.Second)
	return Violations(ps)
}

// Validate reports half a key pair.
func (t TLS) Validate() Violations {
	var ps found
	if t.CertFile != "" && t.KeyFile == "" {
		ps.add("key_file", "is empty while cert_file is set; a client certificate needs its private key")
	}
	if t.KeyFile != "" && t.CertFile == "" {
		ps.add("cert_file", "is empty while key_file is set; a private key needs its certificate")
	}
	return Violations(ps)
}

// Validate reports an unknown driver and a missing DSN.
func (s Store) Validate() Violations {
	var ps found
	drivers := []string{DriverSQLite, DriverPostgres}
	if !slices.Contains(drivers, s.Driver) {
		ps.add("driver", "%q is not a driver%s; the drivers are sqlite and postgres", s.Driver,
			schema.DidYouMean(s.Driver, drivers))
	}
	switch {
	case s.DSN == "":
		ps.add("dsn", "is empty; give the path of the SQLite file or the URL of the Postgres database")
	case s.Driver == DriverPostgres && !IsPostgresDSN(s.DSN.Reveal()):
		ps.add("dsn", "is not a Postgres DSN; write postgres://user:${file:/path/of/password}@host/database")
	case s.Driver == DriverSQLite && IsPostgresDSN(s.DSN.Reveal()):
		ps.add("dsn", "is a Postgres DSN while store.driver is sqlite; set store.driver to postgres")
	}
	return Violations(ps)
}

// minSessionIdle is the shortest idle time of a session: uses are recorded once a minute.
const minSessionIdle = 2 * time.Minute

// Validate reports an unknown mode, and sessions that end before they can be used.
func (a Auth) Validate() Violations {
	var ps found
	modes := []string{ModeNone, ModeTokens}
	if !slices.Contains(modes, a.Mode) {
		ps.add("mode", "%q is not a mode%s; the modes are tokens and none (loopback only)", a.Mode,
			schema.DidYouMean(a.Mode, modes))
	}
	atLeast(&ps, "session_idle", a.SessionIdle, minSessionIdle)
	atLeast(&ps, "session_max", a.SessionMax, minSessionIdle)
	if a.SessionMax < a.SessionIdle {
		ps.add("session_max", "%s is shorter than session_idle (%s); set it to at least that", a.SessionMax, a.SessionIdle)
	}
	return Violations(ps)
}

// Validate bounds requests and connections.
func (a API) Validate() Violations {
	var ps found
	positive(&ps, "max_request_bytes", a.MaxRequestBytes)
	atLeastNumber(&ps, "max_connections", a.MaxConnections, 1)
	atLeastNumber(&ps, "rate_limit", a.RateLimit, 0)
	atLeastNumber(&ps, "burst", a.Burst, 1)
	if u, err := url.Parse(a.PublicURL); a.PublicURL != "" &&
		(err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" ||
			u.User != nil || u.RawQuery != "" || u.Fragment != "") {
		ps.add("public_url", "%q is not an address of pages; write scheme and host, for example "+
			"https://signalbox.example.com", a.PublicURL)
	}
	return Violations(ps)
}

// Validate bounds the input and the start.
func (r Runs) Validate() Violations {
	var ps found
	payload(&ps, "max_input_bytes", r.MaxInputBytes)
	atLeast(&ps, "start_timeout", r.StartTimeout, 100*time.Millisecond)
	atLeast(&ps, "answer_within", r.AnswerWithin, 50*time.Millisecond)
	atLeast(&ps, "stuck_after", r.StuckAfter, time.Second)
	atLeast(&ps, "poison_after", r.PoisonAfter, time.Second)
	if r.StartTimeout >= 100*time.Millisecond && r.AnswerWithin > r.StartTimeout {
		ps.add("answer_within", "%v is over runs.start_timeout (%v), so the start would be given up before the caller has "+
			"an answer; lower it or raise the other", r.AnswerWithin, r.StartTimeout)
	}
	if r.MaxSteps < 1 || r.MaxSteps > maxSteps {
		ps.add("max_steps", "%d is not between 1 and %d", r.MaxSteps, maxSteps)
	}
	if r.MaxDepth < 1 || r.MaxDepth > maxDepth {
		ps.add("max_depth", "%d is not between 1 and %d", r.MaxDepth, maxDepth)
	}
	if r.MaxGeneration < 1 || r.MaxGeneration > maxGeneration {
		ps.add("max_generation", "%d is not between 1 and %d", r.MaxGeneration, maxGeneration)
	}
	if r.RetryingAttempts < 1 || r.RetryingAttempts > maxRetrying {
		ps.add("retrying_attempts", "%d is not between 1 and %d", r.RetryingAttempts, maxRetrying)
	}
	atLeast(&ps, "retrying_after", r.RetryingAfter, time.Second)
	if r.RunawayPerMinute < 1 || r.RunawayPerMinute > maxRunaway {
		ps.add("runaway_per_minute", "%d is not between 1 and %d", r.RunawayPerMinute, maxRunaway)
	}
	return append(Violations(ps), r.QueueWhenUnavailable.Validate().under("queue_when_unavailable")...)
}

// Validate reports a queue that could hold nothing, or never become empty.
func (q QueueMode) Validate() Violations {
	var ps found
	atLeastNumber(&ps, "max_runs", q.MaxRuns, 1)
	atLeast(&ps, "ttl", q.TTL, time.Second)
	atLeastNumber(&ps, "rate", q.Rate, 1)
	return Violations(ps)
}

// Validate bounds the document's size.
func (w Workflows) Validate() Violations {
	var ps found
	positive(&ps, "max_definition_bytes", w.MaxDefinitionBytes)
	return Violations(ps)
}

// Validate bounds the concurrency. The SDK refuses one workflow task at a time: it needs one slot for
// its sticky queue and one for the ordinary one.
func (w Worker) Validate() Violations {
	var ps found
	atLeastNumber(&ps, "max_concurrent_workflow_tasks", w.MaxConcurrentWorkflowTasks, 2)
	atLeastNumber(&ps, "max_concurrent_activities", w.MaxConcurrentActivities, 1)
	atLeastNumber(&ps, "max_concurrent_local_activities", w.MaxConcurrentLocalActivities, 1)
	if w.Cache < minCache {
		ps.add("cache", "%v is too little for the runs that are in progress; write at least %v", w.Cache, minCache)
	}
	if w.ParkAfter != 0 {
		atLeast(&ps, "park_after", w.ParkAfter, shortestPark)
	}
	atLeast(&ps, "stop_timeout", w.StopTimeout, 0)
	return Violations(ps)
}

// shortestPark is the shortest worker.park_after. Activity is recorded at a quarter of it, before the work itself is
// written.
const shortestPark = time.Second

// Validate checks the networks and bounds.
func (c Calls) Validate() Violations {
	var ps found
	for _, text := range c.AllowPrivate {
		if _, err := netip.ParsePrefix(text); err != nil {
			ps.add("allow_private", "%q is not a network; write an address and a prefix length, for example 10.20.0.0/16 or "+
				"127.0.0.1/32", text)
		}
	}
	atLeast(&ps, "timeout", c.Timeout, time.Millisecond)
	atLeast(&ps, "max_retry_after", c.MaxRetryAfter, 0)
	payload(&ps, "max_response_bytes", c.MaxResponseBytes)
	return Violations(ps)
}

// Networks returns the allowed private networks, without their host bits; it leaves out invalid
// networks, which Validate reports.
func (c Calls) Networks() []netip.Prefix {
	networks := make([]netip.Prefix, 0, len(c.AllowPrivate))
	for _, text := range c.AllowPrivate {
		if prefix, err := netip.ParsePrefix(text); err == nil {
			networks = append(networks, prefix.Masked())
		}
	}
	return networks
}

// Validate reports a prefix that no variable can have, and invalid durations.
func (s Secrets) Validate() Violations {
	var ps found
	if s.EnvPrefix != "" && !regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`).MatchString(s.EnvPrefix) {
		ps.add("env_prefix", "%q cannot begin a variable; use letters, digits and underscores, for example SIGNALBOX_SECRET_",
			s.EnvPrefix)
	}
	atLeast(&ps, "timeout", s.Timeout, shortest)
	atLeast(&ps, "cache", s.Cache, 0)
	if s.Cache > mostKept {
		ps.add("cache", "%v is over %v, so a secret that is rotated would be used for too long; lower it", s.Cache, mostKept)
	}
	return Violations(ps)
}

// mostKept bounds how long the old value of a rotated secret is used.
const mostKept = 5 * time.Minute

// Validate reports an unknown level or format.
func (l Log) Validate() Violations {
	var ps found
	levels := []string{"debug", "info", "warn", "error"}
	if !slices.Contains(levels, l.Level) {
		ps.add("level", "%q is not a level%s; the levels are debug, info, warn and error", l.Level,
			schema.DidYouMean(l.Level, levels))
	}
	if l.Format != "json" && l.Format != "text" {
		ps.add("format", "%q is not a format%s; the formats are json and text", l.Format,
			schema.DidYouMean(l.Format, []string{"json", "text"}))
	}
	return Violations(ps)
}

// Validate reports a missing name, and an address of profiles that other machines can connect to.
func (t Telemetry) Validate() Violations {
	var ps found
	if t.ServiceName == "" {
		ps.add("service_name", "is empty; give the name under which metrics are found, for example \"signalbox\"")
	}
	if violation := ListenViolation(t.ProfileListen); t.ProfileListen != "" && violation != "" {
		ps.add("profile_listen", "%q is not host:port: %s; write for example 127.0.0.1:6060", t.ProfileListen, violation)
	} else if t.ProfileListen != "" && !IsLoopback(t.ProfileListen) {
		ps.add("profile_listen", "%q can be reached from other machines, and profiles need no token; listen on 127.0.0.1 "+
			"or [::1]", t.ProfileListen)
	}
	return Violations(ps)
}

func positive(ps *found, path string, size Size) {
	if size <= 0 {
		ps.add(path, "%v lets nothing through; give a size, for example \"1MiB\"", size)
	}
}

func payload(ps *found, path string, size Size) {
	positive(ps, path, size)
	if size > maxPayload {
		ps.add(path, "%v is over %v, the largest value that a run takes; lower it", size, maxPayload)
	}
}

// Validate returns what is wrong with the settings. A server writes a heartbeat every 5 seconds.
func (s Servers) Validate() Violations {
	var ps found
	atLeast(&ps, "lost_after", s.LostAfter, 15*time.Second)
	return Violations(ps)
}

func atLeast(ps *found, path string, d, least time.Duration) {
	if d < least {
		ps.add(path, "%v is too short; give at least %v", d, least)
	}
}

func atLeastNumber(ps *found, path string, n, least int) {
	if n < least {
		ps.add(path, "%d is too few; give at least %d", n, least)
	}
}
