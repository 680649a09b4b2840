// Command record runs the scenarios on the real platform and writes the recordings: the histories of each
// execution, the run as it ended, and its steps. Run it once per version of the interpreter, before its release:
//
//	make build && SIGNALBOX_BIN=$PWD/bin/signalbox SIGNALBOX_SERVER_BIN=$PWD/bin/signalbox-server \
//	  go run -C test ./replay/record
//
// A scenario that is added later is recorded alone, with -only NAME. The scenario commands needs bubblewrap, and with
// -engine the socket of an engine of containers that has the image of package enginetest.
package main

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"connectrpc.com/connect"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	_ "modernc.org/sqlite" // the database of the recorded platform

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/conn"
	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/interp"
	"github.com/signalbox-dev/signalbox/function"
	"github.com/signalbox-dev/signalbox/test/origin"
	"github.com/signalbox-dev/signalbox/test/platform"
	"github.com/signalbox-dev/signalbox/test/replay/scenario"
)

func main() {
	folder := flag.String("out", filepath.Join("replay", "testdata"), "folder of the recordings")
	only := flag.String("only", "", "name of the one scenario to record; empty: all")
	engine := flag.String("engine", "", "socket of an engine of containers")
	flag.Parse()
	if err := record(context.Background(), filepath.Join(*folder, strconv.Itoa(interp.Version)), *only, *engine); err != nil {
		fmt.Fprintf(os.Stderr, "record: %v\n", err)
		os.Exit(1)
	}
}

func record(ctx context.Context, folder, only, engine string) (err error) {
	scope := platform.NewScope(ctx, "record")
	defer scope.Close()
	defer func() {
		if caught := recover(); caught != nil {
			failure, ok := caught.(platform.Failure)
			if !ok {
				panic(caught)
			}
			err = failure
		}
	}()
	scenarios, err := scenario.All()
	if err != nil {
		return err
	}
	temporal := platform.StartTemporal(scope)
	store := platform.SQLite(scope)
	server := platform.StartServer(scope, platform.ServerOptions{
		Temporal: temporal.Address, Store: store, Roles: []string{"api", "worker", "runner"},
		Env: []string{"SIGNALBOX_RUNNER_KINDS=script", "SIGNALBOX_RUNNER_CONTAINERS_SOCKET=" + engine,
			"SIGNALBOX_RUNNER_CONTAINERS_IMAGES=docker.io/signalbox/*"},
	})
	c := platform.DialTemporal(scope, temporal.Address)
	if err := serveFunctions(scope, temporal.Address); err != nil {
		return err
	}
	for _, s := range scenarios {
		if only != "" && s.Name != only {
			continue
		}
		r := recorder{t: scope, server: server, temporal: c, store: store, folder: filepath.Join(folder, s.Name)}
		if err := r.run(s); err != nil {
			return fmt.Errorf("scenario %q: %w", s.Name, err)
		}
	}
	return nil
}

// serveFunctions executes the Go functions that scenarios call, until the scope ends.
func serveFunctions(t platform.T, temporal string) error {
	functions, err := function.NewSet("recorded",
		function.New("double", "1.0.0", func(_ context.Context, n int) (int, error) { return 2 * n, nil }),
		function.New("fail", "1.0.0", func(context.Context, int) (int, error) {
			return 0, &dsl.Error{Type: dsl.ErrorTypeRuntime, Status: http.StatusTeapot, Title: "Refused"}
		}))
	if err != nil {
		return err
	}
	_, key, _ := strings.Cut(platform.WithKeys(t), "=")
	id, file, _ := strings.Cut(key, "=")
	keys, err := function.OpenKeys(id, map[string]string{id: file})
	if err != nil {
		return err
	}
	m, err := conn.New(conn.Options{Client: keys.Seal(client.Options{HostPort: temporal})})
	if err != nil {
		return err
	}
	t.Cleanup(func() { _ = m.Stop(context.WithoutCancel(t.Context())) }) // the recording is written
	return errors.Join(functions.Serve(m, function.Options{Project: platform.DefaultProject}), m.Start(t.Context()))
}

type recorder struct {
	t        platform.T
	server   *platform.Server
	temporal client.Client
	store    platform.Store
	folder   string
}

func (r recorder) run(s scenario.Scenario) error {
	o := origin.New(r.t)
	for request, answers := range scenario.Services() {
		o.Sequence(request, answers...)
	}
	if err := r.prepare(s); err != nil {
		return err
	}
	id := r.server.Start(r.t, r.server.PublishWith(r.t, s.Source, s.Files), `{"base":"`+o.URL+`"}`).GetId()
	if s.Cancel {
		r.server.Await(r.t, id, time.Minute, "waiting")
		_, err := r.server.Runs.CancelRun(r.t.Context(), connect.NewRequest(&signalboxv1.CancelRunRequest{
			Project: platform.DefaultProject, Id: id, Reason: "recorded",
		}))
		if err != nil {
			return fmt.Errorf("cancel: %w", err)
		}
	}
	if s.Pause {
		if err := r.pause(id); err != nil {
			return err
		}
	}
	run := r.server.Await(r.t, id, 2*time.Minute, s.Status)
	if err := os.RemoveAll(r.folder); err != nil {
		return err
	}
	if err := os.MkdirAll(r.folder, 0o755); err != nil {
		return err
	}
	for i, history := range platform.Histories(r.t, r.temporal, id) {
		if err := r.write("history-"+strconv.Itoa(i)+".json", history); err != nil {
			return err
		}
	}
	if err := r.write("run.json",
		&signalboxv1.Run{Status: run.GetStatus(), Output: run.GetOutput(), Error: run.GetError()}); err != nil {
		return err
	}
	if s.References {
		if err := r.payloads(id); err != nil {
			return err
		}
	}
	var steps strings.Builder
	for _, s := range r.server.Steps(r.t, id) {
		data, err := json.Marshal(step{
			Number: s.GetNumber(), Path: s.GetPath(), Status: s.GetStatus(), Output: s.GetOutput().GetJson(),
		})
		if err != nil {
			return err
		}
		steps.Write(append(data, '\n'))
	}
	return os.WriteFile(filepath.Join(r.folder, "steps.jsonl"), []byte(steps.String()), 0o644)
}

// prepare gives the project what a scenario needs.
func (r recorder) prepare(s scenario.Scenario) error {
	set := r.server.CLI(r.t, "project", "set", platform.DefaultProject, "--runners", cmp.Or(s.Runners, "script"))
	if set.Code != platform.ExitOK {
		return fmt.Errorf("set the runners: %s", set.Stderr)
	}
	for name, content := range s.Functions {
		published := r.server.CLIWithInput(r.t, content, "function", "publish", name, "-")
		if published.Code != platform.ExitOK {
			return fmt.Errorf("publish the function %q: %s", name, published.Stderr)
		}
	}
	return nil
}

// payloads records the large values of a run.
func (r recorder) payloads(id string) error {
	db, err := sql.Open("sqlite", "file:"+r.store.DSN+"?_pragma=busy_timeout(10000)")
	if err != nil {
		return fmt.Errorf("open the database: %w", err)
	}
	defer func() { _ = db.Close() }()
	rows, err := db.QueryContext(r.t.Context(),
		`SELECT run_id, digest, value FROM payloads WHERE run_id = $1 ORDER BY digest`, id)
	if err != nil {
		return fmt.Errorf("read the payloads: %w", err)
	}
	defer func() { _ = rows.Close() }()
	var all []scenario.Payload
	for rows.Next() {
		var p scenario.Payload
		if err := rows.Scan(&p.Run, &p.Digest, &p.Value); err != nil {
			return fmt.Errorf("read a payload: %w", err)
		}
		all = append(all, p)
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("read the payloads: %w", err)
	}
	data, err := json.Marshal(all)
	if err != nil {
		return fmt.Errorf("encode the payloads: %w", err)
	}
	return os.WriteFile(filepath.Join(r.folder, scenario.PayloadsFile), append(data, '\n'), 0o644)
}

// pause pauses a run until its first step has ended.
func (r recorder) pause(id string) error {
	r.server.Await(r.t, id, time.Minute, "waiting")
	_, err := r.server.Runs.PauseRun(r.t.Context(), connect.NewRequest(&signalboxv1.PauseRunRequest{
		Project: platform.DefaultProject, Id: id, Reason: "recorded",
	}))
	if err != nil {
		return fmt.Errorf("pause: %w", err)
	}
	platform.Eventually(r.t, time.Minute, func() string {
		if status := r.server.Steps(r.t, id)[0].GetStatus(); status != "completed" {
			return "the step is " + status
		}
		return ""
	})
	_, err = r.server.Runs.UnpauseRun(r.t.Context(), connect.NewRequest(&signalboxv1.UnpauseRunRequest{
		Project: platform.DefaultProject, Id: id, Reason: "recorded",
	}))
	if err != nil {
		return fmt.Errorf("unpause: %w", err)
	}
	return nil
}

// step is the recorded part of a step.
type step struct {
	Number int64  `json:"number"`
	Path   string `json:"path"`
	Status string `json:"status"`
	Output string `json:"output,omitempty"`
}

func (r recorder) write(name string, message proto.Message) error {
	data, err := protojson.Marshal(message)
	if err != nil {
		return fmt.Errorf("encode %s: %w", name, err)
	}
	// protojson varies its spacing on purpose; a recording must be stable.
	var plain any
	if err := json.Unmarshal(data, &plain); err != nil {
		return fmt.Errorf("encode %s: %w", name, err)
	}
	anonymous(plain)
	if data, err = json.Marshal(plain); err != nil {
		return fmt.Errorf("encode %s: %w", name, err)
	}
	return os.WriteFile(filepath.Join(r.folder, name), append(data, '\n'), 0o644)
}

// anonymous removes the identities of workers and clients, and the names of their own queues: they contain the host
// name.
func anonymous(v any) {
	switch v := v.(type) {
	case map[string]any:
		delete(v, "identity")
		if v["kind"] == "TASK_QUEUE_KIND_STICKY" {
			v["name"] = "sticky"
		}
		for _, member := range v {
			anonymous(member)
		}
	case []any:
		for _, item := range v {
			anonymous(item)
		}
	}
}
