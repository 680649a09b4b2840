package config

import (
	"fmt"
	"slices"
	"time"

	"github.com/signalbox-dev/signalbox/internal/config/schema"
)

// Prefix begins every variable of Signalbox.
const Prefix = schema.Prefix

type (
	// Size is a number of bytes.
	Size = schema.Size
	// Secret is a value that must not be shown.
	Secret = schema.Secret
)

// Config holds all settings, one struct per concern. The tags are the single source of
// the key's name (yaml), default, explanation (doc) and example text in the generated reference; the
// flag and the variable follow from the name.
type Config struct {
	Listen      string     `yaml:"listen" default:"127.0.0.1:8080" doc:"Address the API, health and metrics are served on, as host:port."`
	ListenTLS   ListenTLS  `yaml:"listen_tls" doc:"TLS on that address. Required beyond loopback, unless something in front of it terminates TLS."`
	Roles       []string   `yaml:"roles" default:"api,worker" doc:"The roles of this process, one or more of api, worker and runner. A process with the role runner alone executes programs of workflows, and uses neither the database nor Redis."`
	Projects    []string   `yaml:"projects" default:"" doc:"Projects whose runs this worker executes, and whose programs this runner executes. Empty: every project in the store. A process with the role runner alone has no store, and must name them."`
	MemoryLimit Size       `yaml:"memory_limit" default:"0" doc:"Soft memory limit of the process. 0: nine tenths of its cgroup's limit, if it has one. The variable GOMEMLIMIT, if set, takes precedence. From 70 % of the limit diagnosis and repair of runs are suspended, from 85 % starts of runs are refused with MEMORY_EXHAUSTED."`
	Temporal    Temporal   `yaml:"temporal" doc:"The Temporal cluster that runs the workflows. Temporal's own variables and profiles (TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE, TEMPORAL_PROFILE, ...) apply to keys that are not set here."`
	Store       Store      `yaml:"store" doc:"The database that holds definitions, runs and the audit log."`
	Payloads    Payloads   `yaml:"payloads" doc:"The store of large values, to which Temporal's histories refer: from 16 KiB. Apart from the database, they outlive a restore of its older backup."`
	Redis       Redis      `yaml:"redis" doc:"The Redis that holds leases and heartbeats, for platforms of several processes. Without it they are in memory, which supports one process on SQLite."`
	Auth        Auth       `yaml:"auth" doc:"Authentication of API callers."`
	API         API        `yaml:"api" doc:"The API listener."`
	Encryption  Encryption `yaml:"encryption" doc:"The keys that hide sensitive values from readers of the database and of Temporal."`
	Runs        Runs       `yaml:"runs" doc:"Starting runs."`
	Workflows   Workflows  `yaml:"workflows" doc:"Workflow definitions."`
	Worker      Worker     `yaml:"worker" doc:"The worker role."`
	Runner      Runner     `yaml:"runner" doc:"Programs of workflows (run: script, shell and container), and the runner role, which executes them."`
	Servers     Servers    `yaml:"servers" doc:"The server processes of the platform, of all roles."`
	Events      Events     `yaml:"events" doc:"Publishing events."`
	Dispatch    Dispatch   `yaml:"dispatch" doc:"The dispatchers, which route events to runs: timeouts of owners and workers."`
	Supervisor  Supervisor `yaml:"supervisor" doc:"The supervisor, which ends dispatchers that crashed owners left behind."`
	Calls       Calls      `yaml:"calls" doc:"Calls from workflows to other systems."`
	Webhooks    Webhooks   `yaml:"webhooks" doc:"Sending events to other systems."`
	Secrets     Secrets    `yaml:"secrets" doc:"Providers of the secrets that workflows use. The first of dir, env_prefix and command that has a secret is used."`
	Retention   Retention  `yaml:"retention" doc:"How long finished data is retained. Without a limit everything is kept."`
	Migration   Migration  `yaml:"migration" doc:"The older engine's database that servers follow during a cutover."`
	Log         Log        `yaml:"log" doc:"The process's own log, written to standard error."`
	Telemetry   Telemetry  `yaml:"telemetry" doc:"Metrics, served at /metrics for Prometheus, and profiles. Traces and metrics over OTLP are configured by the OTEL_* variables."`

	// Warnings are violations that may heal without a restart, such as an expired client certificate: a server
	// starts with them and tries again, check-config reports them.
	Warnings Violations `yaml:"-"`
}

// Default returns the configuration without any settings.
func Default() *Config {
	cfg := &Config{}
	for _, k := range schema.Of(cfg).Keys {
		if err := k.Set(k.Default); err != nil {
			panic(fmt.Sprintf("default of %s: %v", k.Path, err)) // a wrong tag; the package's tests load every default
		}
	}
	return cfg
}

// Roles a process can carry.
const (
	RoleAPI    = "api"
	RoleWorker = "worker"
	RoleRunner = "runner"
)

// Servers holds how servers that die are noticed.
type Servers struct {
	LostAfter time.Duration `yaml:"lost_after" default:"2m" doc:"How long a server that was not stopped may write no heartbeat to the database, before it is a problem: SERVER_LOST."`
}

// Temporal holds the address of the cluster, the credentials, and the intervals of the connection's checks.
type Temporal struct {
	Address    string `yaml:"address" default:"127.0.0.1:7233" doc:"Frontend of the cluster, as host:port."`
	Namespace  string `yaml:"namespace" default:"default" doc:"Temporal namespace. It must exist."`
	UIURL      string `yaml:"ui_url" default:"" doc:"Base address of Temporal's UI, for example http://localhost:8233. The API then links each run to its execution there. Empty: no links."`
	TLS        TLS    `yaml:"tls" doc:"TLS for connections to Temporal. It is enabled if any of these keys is set or an API key is given, unless disabled is true."`
	APIKeyFile string `yaml:"api_key_file" default:"" kind:"secretfile" doc:"File that holds an API key. Read again for every call, so a rotated key needs no restart."`

	CheckInterval time.Duration `yaml:"check_interval" default:"15s" doc:"Interval of the namespace check while connected."`
	CheckTimeout  time.Duration `yaml:"check_timeout" default:"3s" doc:"Timeout of one check. Only this timeout detects a hung server."`
	ProbeInterval time.Duration `yaml:"probe_interval" default:"3s" doc:"Interval of the frontend health check between two namespace checks, and of the check of credential files for a rotation."`
	RebuildAfter  time.Duration `yaml:"rebuild_after" default:"1m" doc:"Outages longer than this end with a new client and new workers in any case. After a shorter one they are replaced only if their own connection is dead, they were refused, or the settings changed; otherwise they continue without interruption."`
	DrainTimeout  time.Duration `yaml:"drain_timeout" default:"10s" doc:"How long replaced workers may take to finish their tasks."`
	Breaker       Breaker       `yaml:"breaker" doc:"The circuit breaker reduces the attempts to connect during a long outage of Temporal. Any sign of life, and an operator's signalbox system reset-breaker, triggers an attempt at once."`

	// Profile holds settings that only Temporal's own configuration has; a Layer fills it.
	Profile TemporalProfile `yaml:"-"`
}

// Breaker bounds the attempts to connect.
type Breaker struct {
	Failures int           `yaml:"failures" default:"10" doc:"Consecutive failed attempts before it opens."`
	Interval time.Duration `yaml:"interval" default:"5m" doc:"Longest pause between two attempts while it is open."`
}

// TLS names the files of a TLS connection to Temporal.
type TLS struct {
	CertFile   string `yaml:"cert_file" default:"" kind:"file" doc:"Client certificate, PEM. Needs key_file. Read again for every handshake. check-config reports an expired one; a server starts with it and retries, since it may be rotated."`
	KeyFile    string `yaml:"key_file" default:"" kind:"secretfile" doc:"Private key of the client certificate, PEM. Needs cert_file. Read again for every handshake."`
	CAFile     string `yaml:"ca_file" default:"" kind:"file" doc:"Authorities to trust, PEM. Empty: the system's. When its content changes, a new client is created."`
	ServerName string `yaml:"server_name" default:"" doc:"Name expected in the server's certificate. Empty: the host of the address."`
	Disabled   bool   `yaml:"disabled" default:"false" doc:"Use no TLS even if an API key or a Temporal profile would enable it."`
}

// TemporalProfile is the part of Temporal's own environment configuration that has no key of ours:
// credentials given inline, extra gRPC headers, the authority.
type TemporalProfile struct {
	TLS                     bool
	APIKey                  Secret
	CertPEM                 []byte
	KeyPEM                  Secret
	CAPEM                   []byte
	DisableHostVerification bool
	Headers                 map[string]string
	Authority               string
}

// Store drivers.
const (
	DriverSQLite   = "sqlite"
	DriverPostgres = "postgres"
)

// Store names the database.
type Store struct {
	Driver      string `yaml:"driver" default:"sqlite" doc:"sqlite (one process, one file) or postgres."`
	DSN         Secret `yaml:"dsn" default:"signalbox.db" doc:"sqlite: path of the database file. postgres: connection URL or key=value text. Give a password by reference, \"postgres://signalbox:${file:/run/secrets/db}@db/signalbox\", \"${env:NAME}\", or the whole DSN through its variable."`
	AutoMigrate bool   `yaml:"auto_migrate" default:"true" doc:"Migrate the schema at start. Several processes may start at once; false: run \"signalbox migrate up\" yourself."`
}

// Modes of authentication.
const (
	// ModeNone accepts every caller; it is safe only where only this machine can connect.
	ModeNone = "none"
	// ModeTokens requires a token from every caller.
	ModeTokens = "tokens"
)

// Auth selects how callers are authenticated.
type Auth struct {
	Mode string `yaml:"mode" default:"none" doc:"tokens: every caller needs a token; \"signalbox token create --bootstrap\" creates the first. none: every caller is the local administrator, so listen must be a loopback address."`
	// Sessions of browsers.
	SessionIdle time.Duration `yaml:"session_idle" default:"30m" doc:"A session of the web UI ends when it was not used for this long, to the minute. Open streams do not count as use."`
	SessionMax  time.Duration `yaml:"session_max" default:"12h" doc:"A session of the web UI ends this long after the sign-in in any case. It also ends when its token is revoked or expires."`
}

// ListenTLS names the files of the listener's TLS.
type ListenTLS struct {
	CertFile     string `yaml:"cert_file" default:"" kind:"file" doc:"Certificate chain of the listener, PEM. Requires key_file. Read again when it has changed: a rotation needs no restart. With a certificate that does not match its key a server does not start."`
	KeyFile      string `yaml:"key_file" default:"" kind:"secretfile" doc:"Private key of the certificate, PEM. Requires cert_file."`
	ClientCAFile string `yaml:"client_ca_file" default:"" kind:"file" doc:"Authorities, PEM. All callers, also of health and metrics, then need a certificate from one of them in addition to their token."`
	Disabled     bool   `yaml:"disabled" default:"false" doc:"Declares that something in front of this address, such as a load balancer or a service mesh, terminates TLS: tokens arrive here in plain text."`
}

// Enabled reports whether the listener uses TLS.
func (t ListenTLS) Enabled() bool { return t.CertFile != "" }

// API bounds the listener.
type API struct {
	MaxRequestBytes Size `yaml:"max_request_bytes" default:"4MiB" doc:"Largest request accepted with a token; without one it is 4 KiB."`
	MaxConnections  int  `yaml:"max_connections" default:"4096" doc:"Maximum of open connections. Over it, a new connection closes one without an authenticated request so far, or else the one that has been idle longest; it waits only while every connection has an authenticated request in flight."`
	RateLimit       int  `yaml:"rate_limit" default:"500" doc:"Requests per second of one token to one process; more are refused with RATE_LIMITED. 0: no limit. The local administrator of auth.mode none has no limit."`
	Burst           int  `yaml:"burst" default:"1000" doc:"Largest burst of requests of one token above the rate."`

	PublicURL string `yaml:"public_url" default:"" doc:"Address of the web UI for its users, for example https://signalbox.example.com. Events that report failed runs link to it. Empty: no links."`
}

// Runs bounds the start of a run.
type Runs struct {
	MaxInputBytes Size          `yaml:"max_input_bytes" default:"512KiB" doc:"Largest input of a run, as JSON. At most 16MiB, the largest value of a run, and no more than api.max_request_bytes."`
	StartTimeout  time.Duration `yaml:"start_timeout" default:"10s" doc:"Timeout for Temporal's response to the start of a run."`

	MaxSteps int `yaml:"max_steps" default:"1000000" doc:"Maximum of steps that one run enters; the next one fails the run. A project may have a lower limit. 1 to 100000000."`

	MaxDepth int `yaml:"max_depth" default:"8" doc:"Maximum of ancestors of a run: a workflow may run another, that one a third, and so on. 1 to 100."`

	MaxGeneration    int           `yaml:"max_generation" default:"32" doc:"Maximum of starts between a run and one by a person or by the clock: by tasks that run workflows, and by events that runs emit. The next one is refused with GENERATION_LIMIT. A project may have a limit of its own. 1 to 1000."`
	RetryingAttempts int           `yaml:"retrying_attempts" default:"10" doc:"Failed attempts of a task that is attempted again, from which it is shown as the problem RUN_RETRYING, even before retrying_after. 1 to 1000000."`
	RetryingAfter    time.Duration `yaml:"retrying_after" default:"10m" doc:"How long after its beginning a task that fails and is attempted again is shown as the problem RUN_RETRYING, even before retrying_attempts."`
	RunawayPerMinute int           `yaml:"runaway_per_minute" default:"300" doc:"Runs in a minute that descend from runs of their own workflow, or follow one by schedule.after, above which the workflow is shown as the problem RUNAWAY. 1 to 1000000."`

	AnswerWithin         time.Duration `yaml:"answer_within" default:"1500ms" doc:"How long the caller waits for it. After that the run is returned as queued: starting, and its start continues."`
	StuckAfter           time.Duration `yaml:"stuck_after" default:"60s" doc:"How long a run may make no progress where progress is due, before it is shown as stuck, with the reason."`
	PoisonAfter          time.Duration `yaml:"poison_after" default:"15m" doc:"How long the workflow task of a run may fail for a cause in the run itself, before the run is shown as POISON. signalbox project set --end-poison ends such runs of a project."`
	QueueWhenUnavailable QueueMode     `yaml:"queue_when_unavailable" doc:"Queue mode: accepts new runs while Temporal is unavailable. Without it they are refused with ENGINE_UNAVAILABLE."`
}

// QueueMode bounds the runs that are accepted while Temporal is unavailable.
type QueueMode struct {
	Enabled bool          `yaml:"enabled" default:"false" doc:"Accept runs while Temporal is unavailable, as queued: engine, and submit them in order when it is back."`
	MaxRuns int           `yaml:"max_runs" default:"1000" doc:"Maximum of runs in this queue, over all projects. Over it new ones are refused with QUEUE_FULL."`
	TTL     time.Duration `yaml:"ttl" default:"1h" doc:"Longest time in the queue. After it the run fails with queue_expired."`
	Rate    int           `yaml:"rate" default:"50" doc:"Maximum of runs submitted per second when Temporal is back."`
}

// Workflows bounds definitions.
type Workflows struct {
	MaxDefinitionBytes Size `yaml:"max_definition_bytes" default:"1MiB" doc:"Largest workflow document."`
}

// Worker bounds what one worker process does at a time.
type Worker struct {
	MaxConcurrentWorkflowTasks   int           `yaml:"max_concurrent_workflow_tasks" default:"200" doc:"Workflow tasks in progress at once, per project. At least 2. Projects share the processors of the process: when runs of several projects compute, each project gets an equal share."`
	MaxConcurrentActivities      int           `yaml:"max_concurrent_activities" default:"200" doc:"Calls in progress at once that Temporal schedules, per project."`
	MaxConcurrentLocalActivities int           `yaml:"max_concurrent_local_activities" default:"200" doc:"Calls in progress at once that run inside a workflow task, per project."`
	Cache                        Size          `yaml:"cache" default:"48MiB" doc:"Memory for the state of open runs. The run that was used longest ago leaves it for another one, and continues from its history when something happens. A run is counted with 72KiB, what one needs on average; where values are large, memory_limit bounds them."`
	ParkAfter                    time.Duration `yaml:"park_after" default:"10m" doc:"A project in which nothing happens for this long is parked: no worker serves it, and its dispatcher ends, until the first start or event wakes it within a second. A project with an open run, or with an event that is not delivered, is never parked. The same on all servers. 0s: none is parked."`
	StopTimeout                  time.Duration `yaml:"stop_timeout" default:"10s" doc:"How long a stopping worker lets running calls finish before it abandons them."`
}

// Calls restricts outbound requests.
type Calls struct {
	AllowPrivate     []string      `yaml:"allow_private" default:"" doc:"Private, loopback or link-local networks that workflows may call, as CIDR (for example 10.20.0.0/16). Empty: public addresses only."`
	Timeout          time.Duration `yaml:"timeout" default:"30s" doc:"Longest single call, redirects included."`
	MaxResponseBytes Size          `yaml:"max_response_bytes" default:"1MiB" doc:"Largest response body. At most 16MiB, the largest value of a run, also as JSON."`
	MaxRetryAfter    time.Duration `yaml:"max_retry_after" default:"10m" doc:"Longest delay of a retry that a called service may ask for, with status 429 or 503 and the header Retry-After. 0s: the header is ignored."`
}

// Secrets names the providers of secrets.
type Secrets struct {
	Dir       string        `yaml:"dir" default:"" kind:"file" doc:"Folder with a folder of each project, in which each file is a secret: DIR/PROJECT/NAME. A line end at the end of a file is not part of the secret. Mounted Kubernetes secrets have this form."`
	EnvPrefix string        `yaml:"env_prefix" default:"SIGNALBOX_SECRET_" doc:"Prefix of the variables that are secrets: PREFIX + PROJECT + __ + NAME, in capitals and with _ for hyphens and dots, for example SIGNALBOX_SECRET_SHOP__PAYMENT_KEY. Empty: variables are not used."`
	Command   []string      `yaml:"command" default:"" doc:"Program, with its first arguments, that is run as COMMAND PROJECT NAME and writes the secret to its standard output. Status 3 means that there is none. Its standard error is not shown."`
	Timeout   time.Duration `yaml:"timeout" default:"5s" doc:"Timeout of command."`
	Cache     time.Duration `yaml:"cache" default:"5s" doc:"How long a secret is cached before it is read again. 0s: no cache."`
}

// Log selects the level and the format of the log.
type Log struct {
	Level  string `yaml:"level" default:"info" doc:"debug, info, warn or error."`
	Format string `yaml:"format" default:"json" doc:"json or text."`
}

// Telemetry names the process in metrics and traces, and has the address of its profiles.
type Telemetry struct {
	ServiceName   string `yaml:"service_name" default:"signalbox" doc:"Name of the service in the metric target_info and over OTLP. OTEL_SERVICE_NAME takes precedence."`
	ProfileListen string `yaml:"profile_listen" default:"" doc:"Address for profiles of the process (pprof), as host:port, for example 127.0.0.1:6060. Only a loopback address is accepted, because its callers need no token. Empty: no profiles."`
}

// RunsProgramsAlone reports whether the process has the role of runners alone, so that it has no database.
func (c *Config) RunsProgramsAlone() bool { return slices.Equal(c.Roles, []string{RoleRunner}) }

// HasRole reports whether the process carries the role.
func (c *Config) HasRole(role string) bool {
	return slices.Contains(c.Roles, role)
}

// TLSEnabled reports whether the connection to Temporal uses TLS.
func (t Temporal) TLSEnabled() bool {
	if t.TLS.Disabled {
		return false
	}
	own := t.TLS.CertFile != "" || t.TLS.KeyFile != "" || t.TLS.CAFile != "" || t.TLS.ServerName != ""
	return own || t.APIKeyFile != "" || t.Profile.TLS || t.Profile.APIKey != ""
}
