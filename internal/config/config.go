package config

import (
	"fmt"
	"slices"
	"time"

	"github.com/signalbox-dev/signalbox/internal/config/schema"
)

// Prefix begins every variable of ours.
const Prefix = schema.Prefix

type (
	// Size is a number of bytes.
	Size = schema.Size
	// Secret is a value that must not be shown.
	Secret = schema.Secret
)

// Config is everything an operator can set, one struct per concern. The tags are the single source of
// the key's name (yaml), default, explanation (doc) and example text in the generated reference; the
// flag and the variable follow from the name.
type Config struct {
	Listen      string     `yaml:"listen" default:"127.0.0.1:8080" doc:"Address the API, health and metrics are served on, as host:port."`
	ListenTLS   ListenTLS  `yaml:"listen_tls" doc:"TLS on that address. Needed beyond loopback, unless something in front of it does it."`
	Roles       []string   `yaml:"roles" default:"api,worker" doc:"What this process does: api, worker or both."`
	Projects    []string   `yaml:"projects" default:"" doc:"Projects whose runs this worker executes. Empty: every project in the store."`
	MemoryLimit Size       `yaml:"memory_limit" default:"0" doc:"Soft memory limit of the process. 0: nine tenths of its cgroup's limit, if it has one. The variable GOMEMLIMIT, where it is set, is used instead. From 70 % of it diagnosis and repair of runs are suspended, from 85 % starts of runs are refused with MEMORY_EXHAUSTED."`
	Temporal    Temporal   `yaml:"temporal" doc:"The Temporal cluster that runs the workflows. Temporal's own variables and profiles (TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE, TEMPORAL_PROFILE, ...) apply where nothing is set here."`
	Store       Store      `yaml:"store" doc:"The database that holds definitions, runs and the audit log."`
	Redis       Redis      `yaml:"redis" doc:"The Redis that holds leases and heartbeats, for platforms of several processes. Without it they are in memory, which is for one process on SQLite."`
	Auth        Auth       `yaml:"auth" doc:"Who may call the API."`
	API         API        `yaml:"api" doc:"The API listener."`
	Encryption  Encryption `yaml:"encryption" doc:"The keys that hide sensitive values from readers of the database and of Temporal."`
	Runs        Runs       `yaml:"runs" doc:"Starting runs."`
	Workflows   Workflows  `yaml:"workflows" doc:"Workflow definitions."`
	Worker      Worker     `yaml:"worker" doc:"The worker role."`
	Events      Events     `yaml:"events" doc:"Publishing events."`
	Dispatch    Dispatch   `yaml:"dispatch" doc:"The dispatchers, which turn events into runs: when an owner or a worker counts as gone."`
	Supervisor  Supervisor `yaml:"supervisor" doc:"The supervisor, which ends what crashed dispatchers and owners leave behind."`
	Calls       Calls      `yaml:"calls" doc:"Calls that workflows make to other systems."`
	Secrets     Secrets    `yaml:"secrets" doc:"Where workers find the secrets that workflows use. The first of dir, env_prefix and command that has one gives it."`
	Retention   Retention  `yaml:"retention" doc:"How long what is over is kept. Everything is kept where nothing is set."`
	Migration   Migration  `yaml:"migration" doc:"The older engine's database that is followed during a cutover."`
	Log         Log        `yaml:"log" doc:"The process's own log, written to standard error."`
	Telemetry   Telemetry  `yaml:"telemetry" doc:"Metrics, served at /metrics for Prometheus."`

	// Warnings are problems that may heal without a restart, such as a client certificate that has expired: a server
	// starts with them and tries again, check-config reports them.
	Warnings Problems `yaml:"-"`
}

// Default returns the configuration of a process that was told nothing.
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
)

// Temporal says where the cluster is, how to prove who we are, and how closely the connection is watched.
type Temporal struct {
	Address    string `yaml:"address" default:"127.0.0.1:7233" doc:"Frontend of the cluster, as host:port."`
	Namespace  string `yaml:"namespace" default:"default" doc:"Temporal namespace. It must exist."`
	TLS        TLS    `yaml:"tls" doc:"TLS towards Temporal. It is on when any of these keys is set or an API key is given, unless disabled is true."`
	APIKeyFile string `yaml:"api_key_file" default:"" kind:"file" doc:"File that holds an API key. Read again for every call, so a rotated key needs no restart."`

	CheckInterval time.Duration `yaml:"check_interval" default:"15s" doc:"How often the namespace is asked for while connected."`
	CheckTimeout  time.Duration `yaml:"check_timeout" default:"3s" doc:"How long one check may take before it counts as missed. A server that hangs is noticed only so."`
	ProbeInterval time.Duration `yaml:"probe_interval" default:"3s" doc:"How often the frontend's health is asked for between two checks, and files of credentials are looked at for a rotation."`
	RebuildAfter  time.Duration `yaml:"rebuild_after" default:"1m" doc:"Outages longer than this end with a new client and new workers in any case. After a shorter one they are replaced only if their own connection is dead, they were refused, or the settings changed; otherwise they go on without a gap."`
	DrainTimeout  time.Duration `yaml:"drain_timeout" default:"10s" doc:"How long workers that were replaced by new ones may finish what they have begun."`
	Breaker       Breaker       `yaml:"breaker" doc:"The circuit breaker slows down the attempts to connect to a Temporal that stays away. Any sign of life, and an operator's signalbox system reset-breaker, lets it try at once."`

	// Profile holds what only Temporal's own configuration can express; a Layer fills it.
	Profile TemporalProfile `yaml:"-"`
}

// Breaker bounds the attempts to connect.
type Breaker struct {
	Failures int           `yaml:"failures" default:"10" doc:"Attempts that fail in a row before it opens."`
	Interval time.Duration `yaml:"interval" default:"5m" doc:"Longest pause between two attempts while it is open."`
}

// TLS names the files of a TLS connection to Temporal.
type TLS struct {
	CertFile   string `yaml:"cert_file" default:"" kind:"file" doc:"Client certificate, PEM. Needs key_file. Read again for every handshake. One that has expired is reported by check-config; a server starts with it and tries again, since it may be rotated."`
	KeyFile    string `yaml:"key_file" default:"" kind:"file" doc:"Private key of the client certificate, PEM. Needs cert_file. Read again for every handshake."`
	CAFile     string `yaml:"ca_file" default:"" kind:"file" doc:"Authorities to trust, PEM. Empty: the system's. When its content changes, a new client is made."`
	ServerName string `yaml:"server_name" default:"" doc:"Name expected in the server's certificate. Empty: the host of the address."`
	Disabled   bool   `yaml:"disabled" default:"false" doc:"Use no TLS even where an API key or a Temporal profile would turn it on."`
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
	DSN         Secret `yaml:"dsn" default:"signalbox.db" doc:"sqlite: path of the database file. postgres: connection URL or key=value text. A password is given by reference, \"postgres://signalbox:${file:/run/secrets/db}@db/signalbox\", \"${env:NAME}\", or the whole DSN through its variable."`
	AutoMigrate bool   `yaml:"auto_migrate" default:"true" doc:"Bring the schema up to date at start. Several processes may start at once; false: run \"signalbox migrate up\" yourself."`
}

// Modes of authentication.
const (
	// ModeNone lets every caller in; only safe where only this machine can connect.
	ModeNone = "none"
	// ModeTokens asks every caller for a token.
	ModeTokens = "tokens"
)

// Auth says who may call.
type Auth struct {
	Mode string `yaml:"mode" default:"none" doc:"tokens: every caller needs a token; \"signalbox token create --bootstrap\" makes the first. none: every caller is the local administrator, therefore only loopback addresses may be listened on."`
}

// ListenTLS names the files of the listener's TLS.
type ListenTLS struct {
	CertFile     string `yaml:"cert_file" default:"" kind:"file" doc:"Certificate of the listener with those that it is signed by, PEM. Needs key_file. Read again when it has changed: a rotation needs no restart. One that does not fit its key keeps a server from starting."`
	KeyFile      string `yaml:"key_file" default:"" kind:"file" doc:"Private key of the certificate, PEM. Needs cert_file."`
	ClientCAFile string `yaml:"client_ca_file" default:"" kind:"file" doc:"Authorities, PEM. Callers then need a certificate from one of them, beside their token; also those that ask for health and metrics."`
	Disabled     bool   `yaml:"disabled" default:"false" doc:"States that beyond loopback something in front of this address, such as a load balancer or a service mesh, does TLS: tokens come here in plain text."`
}

// Enabled tells whether the listener speaks TLS.
func (t ListenTLS) Enabled() bool { return t.CertFile != "" }

// API bounds the listener.
type API struct {
	MaxRequestBytes Size `yaml:"max_request_bytes" default:"4MiB" doc:"Largest request accepted."`
	MaxConnections  int  `yaml:"max_connections" default:"4096" doc:"Most open connections. Over it, a new one closes the one that has been idle longest; it waits only while every connection has a request in flight."`
	RateLimit       int  `yaml:"rate_limit" default:"500" doc:"Requests per second of one token to one process; more are refused with RATE_LIMITED. 0: no limit. The local administrator of auth.mode none has none."`
	Burst           int  `yaml:"burst" default:"1000" doc:"Requests of one token at once, before the rate counts."`
}

// Runs bounds the start of a run.
type Runs struct {
	MaxInputBytes Size          `yaml:"max_input_bytes" default:"512KiB" doc:"Largest input of a run, as JSON. At most 16MiB, the largest value of a run, and no more than api.max_request_bytes."`
	StartTimeout  time.Duration `yaml:"start_timeout" default:"10s" doc:"How long the start of a run waits for Temporal's answer."`

	MaxSteps int `yaml:"max_steps" default:"1000000" doc:"Most steps that one run enters; the next one fails the run. A project may have a lower limit. 1 to 100000000."`

	MaxDepth int `yaml:"max_depth" default:"8" doc:"Most runs above a run: a workflow may run another, that one a third, and so on. 1 to 100."`

	AnswerWithin         time.Duration `yaml:"answer_within" default:"1500ms" doc:"How long the caller waits for it. Past that the run is answered as it is, queued: starting, and its start goes on."`
	StuckAfter           time.Duration `yaml:"stuck_after" default:"60s" doc:"How long a run may make no progress where progress is due, before it is shown as stuck with the reason."`
	PoisonAfter          time.Duration `yaml:"poison_after" default:"15m" doc:"How long the workflow task of a run may fail for a cause that lies in the run itself, before the run is shown as POISON. A project may have such runs ended: signalbox project set --end-poison."`
	QueueWhenUnavailable QueueMode     `yaml:"queue_when_unavailable" doc:"Queue mode: what to do with new runs while Temporal is away. Without it they are refused with ENGINE_UNAVAILABLE."`
}

// QueueMode bounds the runs that are accepted while Temporal is away.
type QueueMode struct {
	Enabled bool          `yaml:"enabled" default:"false" doc:"Accept runs while Temporal is away, as queued: engine, and hand them over in order when it is back."`
	MaxRuns int           `yaml:"max_runs" default:"1000" doc:"Most runs queued so, over all projects. Over it new ones are refused with QUEUE_FULL."`
	TTL     time.Duration `yaml:"ttl" default:"1h" doc:"Longest time in the queue. Past it the run fails with queue_expired."`
	Rate    int           `yaml:"rate" default:"50" doc:"Most runs handed over per second when Temporal is back."`
}

// Workflows bounds definitions.
type Workflows struct {
	MaxDefinitionBytes Size `yaml:"max_definition_bytes" default:"1MiB" doc:"Largest workflow document."`
}

// Worker bounds what one worker process does at a time.
type Worker struct {
	MaxConcurrentWorkflowTasks   int           `yaml:"max_concurrent_workflow_tasks" default:"200" doc:"Workflow tasks in progress at once, per project. At least 2. Projects share the processors of the process: when runs of several projects compute, each project gets the same part."`
	MaxConcurrentActivities      int           `yaml:"max_concurrent_activities" default:"200" doc:"Calls in progress at once that Temporal schedules, per project."`
	MaxConcurrentLocalActivities int           `yaml:"max_concurrent_local_activities" default:"200" doc:"Calls in progress at once that run inside a workflow task, per project."`
	StopTimeout                  time.Duration `yaml:"stop_timeout" default:"10s" doc:"How long a stopping worker lets running calls finish before it gives them back."`
}

// Calls guards outbound requests.
type Calls struct {
	AllowPrivate     []string      `yaml:"allow_private" default:"" doc:"Private, loopback or link-local networks that workflows may call, as CIDR (for example 10.20.0.0/16). Empty: public addresses only."`
	Timeout          time.Duration `yaml:"timeout" default:"30s" doc:"Longest single call, redirects included."`
	MaxResponseBytes Size          `yaml:"max_response_bytes" default:"1MiB" doc:"Largest response body. At most 16MiB, the largest value of a run, also as JSON."`
}

// Secrets names the providers of secrets.
type Secrets struct {
	Dir       string        `yaml:"dir" default:"" kind:"file" doc:"Folder with a folder of each project, in which each file is a secret: DIR/PROJECT/NAME. A line end at the end of a file is not part of the secret. Mounted Kubernetes secrets have this form."`
	EnvPrefix string        `yaml:"env_prefix" default:"SIGNALBOX_SECRET_" doc:"Begins the variables that are secrets: PREFIX + PROJECT + __ + NAME, in capitals and with _ for hyphens and dots, for example SIGNALBOX_SECRET_SHOP__PAYMENT_KEY. Empty: none is."`
	Command   []string      `yaml:"command" default:"" doc:"Program, with its first arguments, that is run as COMMAND PROJECT NAME and writes the secret to its standard output. Status 3 says that there is none. Its standard error is not shown."`
	Timeout   time.Duration `yaml:"timeout" default:"5s" doc:"How long command may take."`
	Cache     time.Duration `yaml:"cache" default:"5s" doc:"How long a secret that was found is used before it is asked for again. 0s: not at all."`
}

// Log says what is logged and how.
type Log struct {
	Level  string `yaml:"level" default:"info" doc:"debug, info, warn or error."`
	Format string `yaml:"format" default:"json" doc:"json or text."`
}

// Telemetry names the process in metrics.
type Telemetry struct {
	ServiceName string `yaml:"service_name" default:"signalbox" doc:"Value of service_name in the metric target_info."`
}

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
