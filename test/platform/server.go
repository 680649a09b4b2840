package platform

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"connectrpc.com/connect"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/api/signalbox/v1/signalboxv1connect"
)

// startLimit is how long a process may take to be ready on a busy machine. Tests of their own measure the times that
// users are promised.
const startLimit = Patience

// AllowLoopback lets workflows call the tests' substitute services.
const AllowLoopback = "SIGNALBOX_CALLS_ALLOW_PRIVATE=127.0.0.0/8"

// Temporal is a Temporal server in its own process, with its data in a file.
type Temporal struct {
	*Process
	Address string
	Port    int
	File    string
}

// StartTemporal starts `signalbox dev temporal` and waits until it answers.
func StartTemporal(t T) *Temporal {
	t.Helper()
	return startTemporal(t, FreePort(t), filepath.Join(t.TempDir(), "temporal.db"))
}

// ReserveTemporal returns a Temporal that is not running yet: a port, and a file without data. Restart starts it.
func ReserveTemporal(t T) *Temporal {
	t.Helper()
	port := FreePort(t)
	return &Temporal{Address: Address(port), Port: port, File: filepath.Join(t.TempDir(), "temporal.db")}
}

// Restart starts a Temporal again that has ended, on the same port and data, and waits until it answers.
func (p *Temporal) Restart(t T) *Temporal {
	t.Helper()
	return startTemporal(t, p.Port, p.File)
}

// Relaunch is Restart without waiting. [Temporal.AwaitServing] waits until it answers.
func (p *Temporal) Relaunch(t T) *Temporal {
	t.Helper()
	return launchTemporal(t, p.Port, p.File)
}

// Wipe deletes the data of a Temporal that has ended: the next Restart begins with none.
func (p *Temporal) Wipe(t T) {
	t.Helper()
	files, err := filepath.Glob(p.File + "*")
	if err != nil {
		t.Fatalf("list the data of Temporal: %v", err)
	}
	for _, file := range files {
		if err := os.Remove(file); err != nil {
			t.Fatalf("delete the data of Temporal: %v", err)
		}
	}
}

// Replace replaces the data of a Temporal that has ended by those of a backup, a single file.
func (p *Temporal) Replace(t T, backup string) {
	t.Helper()
	data, err := os.ReadFile(backup)
	if err != nil {
		t.Fatalf("read the backup of Temporal: %v", err)
	}
	p.Wipe(t)
	if err := os.WriteFile(p.File, data, 0o600); err != nil {
		t.Fatalf("restore the data of Temporal: %v", err)
	}
}

// AwaitAccepting waits until the port accepts connections, and returns that time, to within [longTick]. The namespaces
// answer a moment later.
func (p *Temporal) AwaitAccepting(t T) time.Time {
	t.Helper()
	p.await(t, func() string {
		c, err := net.Dial("tcp", p.Address)
		if err != nil {
			return err.Error()
		}
		_ = c.Close() // nothing was sent
		return ""
	})
	return time.Now()
}

// AwaitServing waits until the namespace default answers and all parts of the server have started: a server that is
// frozen before that exits after it is thawed.
func (p *Temporal) AwaitServing(t T) {
	t.Helper()
	p.await(t, func() string {
		if !strings.Contains(p.Output(), "Temporal is ready") {
			return "not all parts of Temporal have started"
		}
		return p.probe(t.Context())
	})
}

func startTemporal(t T, port int, file string) *Temporal {
	t.Helper()
	temporal := launchTemporal(t, port, file)
	temporal.AwaitServing(t)
	return temporal
}

func launchTemporal(t T, port int, file string) *Temporal {
	t.Helper()
	p := StartProcess(t, "temporal", Binary(t), nil,
		[]string{"dev", "temporal", "--port", strconv.Itoa(port), "--data", file})
	t.Cleanup(p.Kill) // an orderly stop takes a second, and the data it would write is not needed
	return &Temporal{Process: p, Address: Address(port), Port: port, File: file}
}

// Server is a Signalbox process: `signalbox server` or `signalbox dev`.
type Server struct {
	*Process
	Address string // host:port
	URL     string
	roles   []string // empty: both

	Runs        signalboxv1connect.RunServiceClient
	Search      signalboxv1connect.SearchServiceClient
	Workflows   signalboxv1connect.WorkflowServiceClient
	Events      signalboxv1connect.EventServiceClient
	Dispatchers signalboxv1connect.DispatcherServiceClient
	Workers     signalboxv1connect.WorkerServiceClient
	Projects    signalboxv1connect.ProjectServiceClient
	Audit       signalboxv1connect.AuditServiceClient
	Quotas      signalboxv1connect.QuotaServiceClient
	System      signalboxv1connect.SystemServiceClient
	Batches     signalboxv1connect.BatchServiceClient
}

// Store names the database of a server.
type Store struct{ Driver, DSN string }

// SQLite returns a new database in a temporary folder.
func SQLite(t T) Store {
	t.Helper()
	return Store{Driver: "sqlite", DSN: filepath.Join(t.TempDir(), "signalbox.db")}
}

// NoRedis starts a server without Redis although its database is Postgres.
const NoRedis = "none"

// Roles of a server.
const (
	API    = "api"
	Worker = "worker"
	Runner = "runner"
)

// ServerOptions are the settings of a server.
type ServerOptions struct {
	Binary   string // empty: the lean binary
	Temporal string // address
	Store    Store
	// Redis is a URL. Empty: the shared Redis with Postgres, none with SQLite; [NoRedis]: none.
	Redis string
	Roles []string // empty: both
	Port  int      // 0: a free one
	Args  []string
	Env   []string
}

// StartServer starts `signalbox server` from the lean binary and waits until its roles are ready.
func StartServer(t T, o ServerOptions) *Server {
	t.Helper()
	s := LaunchServer(t, o)
	s.AwaitReady(t)
	return s
}

// LaunchServer starts `signalbox server` without waiting.
func LaunchServer(t T, o ServerOptions) *Server {
	t.Helper()
	if o.Port == 0 {
		o.Port = FreePort(t)
	}
	args := append([]string{
		"server", "--listen", Address(o.Port), "--temporal-address", o.Temporal,
		"--store-driver", o.Store.Driver, "--store-dsn", o.Store.DSN,
	}, o.Args...)
	if len(o.Roles) > 0 {
		args = append(args, "--roles", strings.Join(o.Roles, ","))
	}
	env := slices.Concat([]string{AllowLoopback, WithKeys(t)}, o.redis(), o.Env)
	binary := o.Binary
	if binary == "" {
		binary = ServerBinary(t)
	}
	process := StartProcess(t, "server", throttled(t, binary), env, args)
	requireNoDeadlock(t, process)
	s := newServer(process, Address(o.Port))
	s.roles = o.Roles
	return s
}

// StartDev starts `signalbox dev` on free ports and waits until it is ready.
func StartDev(t T, args ...string) *Server {
	t.Helper()
	return StartDevIn(t, nil, args...)
}

// StartDevIn is StartDev with further variables, as NAME=value.
func StartDevIn(t T, env []string, args ...string) *Server {
	t.Helper()
	s := launchDev(t, env, args)
	s.AwaitReady(t)
	return s
}

// LaunchDev starts `signalbox dev` on free ports without waiting. The given arguments override its own.
func LaunchDev(t T, args ...string) *Server {
	t.Helper()
	return launchDev(t, nil, args)
}

func launchDev(t T, env, args []string) *Server {
	t.Helper()
	address := Address(FreePort(t))
	args = append([]string{"dev", "--listen", address, "--temporal-port", strconv.Itoa(FreePort(t))}, args...)
	return newServer(StartProcess(t, "dev", Binary(t), append([]string{AllowLoopback, WithKeys(t)}, env...), args),
		address)
}

// AttachServer returns the clients of a server that a test has started by itself.
func AttachServer(p *Process, address string) *Server { return newServer(p, address) }

func newServer(p *Process, address string) *Server {
	s := &Server{Process: p, Address: address, URL: "http://" + address}
	// Cleartext HTTP/2, as gRPC clients use it: all streams of a test share one connection.
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	client := &http.Client{Transport: &http.Transport{Protocols: protocols}}
	s.Runs = signalboxv1connect.NewRunServiceClient(client, s.URL, connect.WithGRPC())
	s.Search = signalboxv1connect.NewSearchServiceClient(client, s.URL, connect.WithGRPC())
	s.Workflows = signalboxv1connect.NewWorkflowServiceClient(client, s.URL, connect.WithGRPC())
	s.Events = signalboxv1connect.NewEventServiceClient(client, s.URL, connect.WithGRPC())
	s.Dispatchers = signalboxv1connect.NewDispatcherServiceClient(client, s.URL, connect.WithGRPC())
	s.Workers = signalboxv1connect.NewWorkerServiceClient(client, s.URL, connect.WithGRPC())
	s.Projects = signalboxv1connect.NewProjectServiceClient(client, s.URL, connect.WithGRPC())
	s.Audit = signalboxv1connect.NewAuditServiceClient(client, s.URL, connect.WithGRPC())
	s.Quotas = signalboxv1connect.NewQuotaServiceClient(client, s.URL, connect.WithGRPC())
	s.System = signalboxv1connect.NewSystemServiceClient(client, s.URL, connect.WithGRPC())
	s.Batches = signalboxv1connect.NewBatchServiceClient(client, s.URL, connect.WithGRPC())
	return s
}

// AwaitReady waits until all roles of the server are ready.
func (s *Server) AwaitReady(t T) {
	t.Helper()
	s.await(t, func() string { return s.notReady(t.Context(), "") })
	if len(s.roles) == 0 || slices.Contains(s.roles, Worker) {
		s.await(t, func() string { return s.notReady(t.Context(), "?role=worker") })
	}
}

// AwaitAPI waits until the API is ready. The worker need not be.
func (s *Server) AwaitAPI(t T) {
	t.Helper()
	s.await(t, func() string { return s.notReady(t.Context(), "?role=api") })
}

// ID returns the server ID, which is new with each start of the process.
func (s *Server) ID(t T) string {
	t.Helper()
	res, err := s.System.GetVersion(t.Context(), connect.NewRequest(&signalboxv1.GetVersionRequest{}))
	if err != nil {
		t.Fatalf("ask the server for its ID: %v", err)
	}
	return res.Msg.GetServerId()
}

// await is Eventually, and fails at once if the process ends.
func (p *Process) await(t T, cond func() string) {
	t.Helper()
	Eventually(t, startLimit, func() string {
		select {
		case <-p.done:
			t.Fatalf("%s ended with code %d instead of becoming ready:\n%s", p.Name, p.cmd.ProcessState.ExitCode(),
				tail(p.Output(), 4<<10))
		default:
		}
		return cond()
	})
}

func (s *Server) notReady(ctx context.Context, query string) string {
	status, body, err := s.Get(ctx, "/readyz"+query)
	switch {
	case err != nil:
		return err.Error()
	case status != http.StatusOK:
		return fmt.Sprintf("/readyz%s answers %d: %s", query, status, body)
	}
	return ""
}

// Get reads a path of the server over plain HTTP.
func (s *Server) Get(ctx context.Context, path string) (int, string, error) {
	return s.Do(ctx, http.MethodGet, path, nil, nil)
}

// Post sends JSON to a path of the server over plain HTTP.
func (s *Server) Post(ctx context.Context, path, body string) (int, string, error) {
	return s.Do(ctx, http.MethodPost, path, http.Header{"Content-Type": {"application/json"}}, strings.NewReader(body))
}

// Do makes a plain HTTP request, as curl would.
func (s *Server) Do(ctx context.Context, method, path string, header http.Header, body io.Reader) (int, string, error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, s.URL+path, body)
	if err != nil {
		return 0, "", err
	}
	maps.Copy(req.Header, header)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = res.Body.Close() }() // read to the end below
	text, err := io.ReadAll(res.Body)
	return res.StatusCode, string(text), err
}
