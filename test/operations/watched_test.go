package operations_test

import (
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/conn/conntest"
	"github.com/signalbox-dev/signalbox/test/database"
	"github.com/signalbox-dev/signalbox/test/platform"
	"github.com/signalbox-dev/signalbox/test/promise"
)

const (
	// quicker is the factor by which `make test` divides the durations of rules.
	quicker  = 10
	patience = platform.Patience
)

// member is a worker with its server ID. It has the API, too.
type member struct {
	*platform.Server

	id string // of the server
}

// parts are what a platform has for itself, because the incident breaks it.
type parts struct {
	temporal bool // else the one that all share, with a namespace of its own
	frontend bool // a proxy between the servers and Temporal, which can refuse and delay requests
	postgres bool // else a database of the server that all share
	disk     int  // MB of a file system of its own for Postgres
	proxy    bool // between the servers and the database
	workers  int  // beside the API server; 0: 2
	args     []string
	// prepare changes the options before the first server starts.
	prepare func(*testing.T, *watched)
}

// watched is a platform of several processes with its Prometheus, its Alertmanager, and a receiver of notifications.
type watched struct {
	*platform.Server // the API, which has no worker

	client    client.Client
	temporal  *platform.Temporal
	frontend  *conntest.Frontend
	postgres  *database.Postgres
	redis     *database.Redis
	database  *platform.Proxy
	options   platform.ServerOptions // of a worker
	workers   []*member
	scraper   *scraper
	alerts    *alertmanager
	receiver  *receiver
	namespace string
	// authority has issued the client certificates in the folder certificates; Temporal refuses those in the folder
	// untrusted.
	authority               *conntest.Authority
	certificates, untrusted string
	// undo ends the fault, where the step that began it knows how.
	undo func()
	// faulted is when the fault began.
	faulted time.Time
	// names replace the placeholders of runbooks, in whose commands folder is the current one.
	names   map[string]string
	folder  string
	crashed int // the number of a worker
}

func build(t *testing.T, p parts) *watched {
	t.Helper()
	if !platform.HasPostgres() {
		t.Skipf("%s is not set; `make test` starts a Postgres", platform.PostgresVariable)
	}
	program(t, "prometheus")
	program(t, "prometheus-alertmanager", "alertmanager")
	w := &watched{redis: database.StartRedis(t, t.Skip), namespace: client.DefaultNamespace}
	w.options = platform.ServerOptions{Redis: w.redis.URL(), Args: slices.Clone(p.args)}
	w.startTemporal(t, p)
	w.startStore(t, p)
	w.names = map[string]string{"NAME": platform.DefaultProject}
	if p.prepare != nil {
		p.prepare(t, w)
	}
	count := p.workers
	if count == 0 {
		count = 2
	}
	api := w.options
	api.Roles, api.Port = []string{platform.API}, platform.FreePort(t)
	w.Server = platform.LaunchServer(t, api)
	for range count {
		w.workers = append(w.workers, &member{Server: w.launch(t, platform.FreePort(t))})
	}
	w.AwaitReady(t)
	for _, each := range w.workers {
		each.AwaitReady(t)
		each.id = each.ID(t)
	}
	w.names["SERVER:8080"], w.names["WORKER:8080"], w.names["TEMPORAL:7233"] = w.Address, w.workers[0].Address,
		w.options.Temporal
	w.waitForOwner(t)
	w.monitor(t)
	return w
}

func (w *watched) startTemporal(t *testing.T, p parts) {
	t.Helper()
	if p.temporal {
		w.temporal = platform.StartTemporal(t)
	} else {
		w.temporal, w.namespace = shared.Get(t), fmt.Sprintf("n%08x", rand.Uint32())
		w.temporal.CreateNamespace(t, w.namespace)
	}
	w.client = platform.DialNamespace(t, w.temporal.Address, w.namespace)
	w.options.Temporal = w.temporal.Address
	if p.frontend {
		w.frontend = conntest.Run(t, conntest.Options{Upstream: w.temporal.Address})
		w.options.Temporal = w.frontend.Addr()
	}
	w.options.Args = append(w.options.Args, "--temporal-namespace", w.namespace)
}

func (w *watched) startStore(t *testing.T, p parts) {
	t.Helper()
	switch {
	case p.disk > 0:
		w.postgres = database.StartPostgresOnDisk(t, t.Skip, p.disk)
		w.options.Store = w.postgres.Store()
	case p.postgres:
		w.postgres = database.StartPostgres(t, t.Skip)
		w.options.Store = w.postgres.Store()
	default:
		w.options.Store = platform.Postgres(t)
	}
	if p.proxy {
		dsn, err := url.Parse(w.options.Store.DSN)
		require.NoError(t, err)
		w.database = platform.NewProxy(t, dsn.Host)
		dsn.Host = w.database.Address
		w.options.Store.DSN = dsn.String()
	}
}

// launch starts a worker on a port, without waiting.
func (w *watched) launch(t *testing.T, port int, args ...string) *platform.Server {
	t.Helper()
	o := w.options
	o.Port, o.Args = port, slices.Concat(o.Args, args)
	return platform.LaunchServer(t, o)
}

// restart starts a worker that has ended again on its port, with further arguments.
func (w *watched) restart(t *testing.T, n int, args ...string) {
	t.Helper()
	s := w.launch(t, portOf(t, w.workers[n].Address), args...)
	s.AwaitReady(t)
	w.workers[n] = &member{Server: s, id: s.ID(t)}
}

// stop ends a worker in order.
func (w *watched) stop(t *testing.T, n int) {
	t.Helper()
	w.workers[n].Terminate()
	_, ended := w.workers[n].WaitFor(soon)
	require.True(t, ended)
}

// portOf returns the port of a server, on which it is started again.
func portOf(t *testing.T, address string) int {
	t.Helper()
	_, text, err := net.SplitHostPort(address)
	require.NoError(t, err)
	port, err := strconv.Atoi(text)
	require.NoError(t, err)
	return port
}

// monitor starts Prometheus and Alertmanager with the configuration of deploy/prometheus.
func (w *watched) monitor(t *testing.T) {
	t.Helper()
	w.receiver = startReceiver(t)
	by, past := 1, 6*time.Hour
	if !promise.Full() {
		by, past = quicker, 0
	}
	w.alerts = startAlertmanager(t, alertmanagerOptions{receiver: w.receiver.URL, faster: by})
	targets := []string{w.Address}
	for _, each := range w.workers {
		targets = append(targets, each.Address)
	}
	w.scraper = startPrometheus(t,
		scraperOptions{targets: targets, alertmanager: w.alerts.address, past: past, faster: by})
	w.scraper.waitForScrapes(t, len(targets))
	// On a busy machine ServersMissing may fire before the first scrape.
	platform.Eventually(t, soon, func() string { return strings.Join(withoutBudgets(w.firing(t)), " ") })
	w.writeConfig(t)
}

// writeConfig writes signalbox.yaml, which the commands of runbooks name, into a folder of its own.
func (w *watched) writeConfig(t *testing.T) {
	t.Helper()
	w.folder = t.TempDir()
	_, key, _ := strings.Cut(strings.TrimPrefix(platform.WithKeys(t), "SIGNALBOX_ENCRYPTION_KEYS="), "=")
	text := fmt.Sprintf("listen: %s\ntemporal: {address: %q, namespace: %q}\nstore: {driver: postgres, dsn: %q}\nredis: "+
		"{url: %q, prefix: %q}\nencryption: {keys: {test: %q}}\n",
		platform.Address(platform.FreePort(t)), w.options.Temporal, w.namespace, w.options.Store.DSN, w.redis.URL(),
		platform.RedisPrefix(w.options.Store), key)
	require.NoError(t, os.WriteFile(filepath.Join(w.folder, "signalbox.yaml"), []byte(text), 0o600))
}

// firing returns the names of the alerts that fire in Prometheus.
func (w *watched) firing(t *testing.T) []string {
	t.Helper()
	var names []string
	platform.Eventually(t, soon, func() string {
		series, wrong := w.scraper.query(t, `ALERTS{alertstate="firing"}`)
		for _, s := range series {
			names = append(names, s.labels["alertname"])
		}
		return wrong
	})
	slices.Sort(names)
	return slices.Compact(names)
}

// dispatcher reads the dispatcher of the project default.
func (w *watched) dispatcher(t *testing.T) (*signalboxv1.Dispatcher, error) {
	t.Helper()
	res, err := w.Dispatchers.GetDispatcher(t.Context(),
		connect.NewRequest(&signalboxv1.GetDispatcherRequest{Project: platform.DefaultProject}))
	if err != nil {
		return nil, err
	}
	return res.Msg.GetDispatcher(), nil
}

// waitForOwner waits until a worker that runs owns the dispatcher, and returns its number.
func (w *watched) waitForOwner(t *testing.T) int {
	t.Helper()
	owner := -1
	platform.Eventually(t, patience, func() string {
		d, err := w.dispatcher(t)
		if err != nil {
			return err.Error()
		}
		id := d.GetLease().GetOwner().GetServerId()
		owner = slices.IndexFunc(w.workers, func(each *member) bool { return each.id == id })
		if d.GetLease().GetState() != "held" || owner < 0 || d.GetExecution().GetOwner().GetServerId() != id {
			return fmt.Sprintf("the lease is %s by %q", d.GetLease().GetState(), id)
		}
		return ""
	})
	return owner
}
