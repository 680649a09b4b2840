package dev

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"connectrpc.com/connect"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/api/signalbox/v1/signalboxv1connect"
	"github.com/signalbox-dev/signalbox/internal/app"
	"github.com/signalbox-dev/signalbox/internal/cli/invocation"
	"github.com/signalbox-dev/signalbox/internal/cli/workflowcmd"
	"github.com/signalbox-dev/signalbox/internal/health"
	"github.com/signalbox-dev/signalbox/internal/project"
	"github.com/signalbox-dev/signalbox/internal/terminal"
)

const (
	// readyWithin bounds the start, readyCheckEvery is the interval of readiness checks.
	readyWithin     = 20 * time.Second
	readyCheckEvery = 10 * time.Millisecond
	// runWithin bounds the first run.
	runWithin = 30 * time.Second
)

// awaitReady waits until the worker polls.
func awaitReady(ctx context.Context, a *app.App) error {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	ticker := time.NewTicker(readyCheckEvery)
	defer ticker.Stop()
	for {
		report := a.Health(ctx)
		if report.Status == health.Ready {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for the worker: %w; what is missing: %+v", ctx.Err(), report.Dependencies)
		case <-ticker.C:
		}
	}
}

// firstRun publishes and runs the workflows of the command line, through the API like any client.
type firstRun struct {
	api     string
	http    *http.Client
	program string // the name by which this program was called
	flag    string // the address flag of suggested commands, with a leading space
	out     io.Writer
}

// addressFlag is empty if the command line finds the API by default.
func addressFlag(address string) string {
	if address == invocation.DefaultAddress {
		return ""
	}
	return " --address " + address
}

func (f firstRun) publish(ctx context.Context, documents []document) error {
	client := signalboxv1connect.NewWorkflowServiceClient(f.http, f.api)
	for _, d := range documents {
		response, err := client.PublishWorkflow(ctx, connect.NewRequest(&signalboxv1.PublishWorkflowRequest{
			Project: project.Default, Source: d.source, Files: workflowcmd.FilesOf(d.file, []byte(d.source)),
		}))
		if err != nil {
			return fmt.Errorf("publishing %q: %w", d.file, err)
		}
		state := "Published"
		if !response.Msg.GetCreated() {
			state = "Unchanged"
		}
		f.printf("%s  %s@%s  (%s)\n", state, response.Msg.GetWorkflow().GetName(), response.Msg.GetVersion().GetVersion(),
			d.file)
	}
	if len(documents) > 0 {
		f.printf("\n")
	}
	return nil
}

// document is one workflow file to publish.
type document struct{ file, source string }

// documents reads the files, and the workflow files in the folders, named by paths.
func documents(paths []string) ([]document, error) {
	var found []document
	for _, path := range paths {
		files, err := workflowFiles(path)
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			source, err := os.ReadFile(file)
			if err != nil {
				return nil, fmt.Errorf("reading what to publish: %w", err)
			}
			found = append(found, document{file: file, source: string(source)})
		}
	}
	return found, nil
}

// workflowFiles returns the file itself, or the workflow files in the folder.
func workflowFiles(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("finding what to publish: %w; --publish takes a workflow file or a folder of them", err)
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, fmt.Errorf("finding what to publish: %w; --publish takes a workflow file or a folder of them", err)
	}
	var files []string
	for _, entry := range entries {
		if !entry.IsDir() && workflowcmd.IsWorkflowFile(entry.Name()) {
			files = append(files, filepath.Join(path, entry.Name()))
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("finding what to publish: the folder %q has no .yaml, .yml or .json file", path)
	}
	return files, nil
}

func (f firstRun) run(ctx context.Context, name string) error {
	if name == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, runWithin)
	defer cancel()
	client := signalboxv1connect.NewRunServiceClient(f.http, f.api)
	started, err := client.StartRun(ctx, connect.NewRequest(&signalboxv1.StartRunRequest{
		Project: project.Default, Workflow: name, Input: &signalboxv1.JsonValue{Json: "{}"},
	}))
	if err != nil {
		return fmt.Errorf("running %q: %w", name, err)
	}
	id := started.Msg.GetRun().GetId()
	f.printf("Running %s, run %s:\n", name, id)
	stream, err := client.WatchRun(ctx, connect.NewRequest(&signalboxv1.WatchRunRequest{Project: project.Default, Id: id}))
	if err != nil {
		return fmt.Errorf("watching run %s: %w", id, err)
	}
	defer stream.Close()
	run := started.Msg.GetRun()
	for stream.Receive() {
		run = stream.Msg().GetRun()
	}
	if err := stream.Err(); err != nil {
		return fmt.Errorf("watching run %s: %w", id, err)
	}
	result := run.GetOutput().GetJson()
	if run.GetError() != nil {
		result = fmt.Sprintf("%s (%d) %s", run.GetError().GetTitle(), run.GetError().GetStatus(), run.GetError().GetDetail())
	}
	f.printf("  %s in %s: %s\n\n", run.GetStatus(),
		run.GetEndTime().AsTime().Sub(run.GetCreateTime().AsTime()).Round(time.Millisecond), compact(result))
	f.printf("Look at it, and start others, from another terminal:\n")
	for _, command := range []string{"show " + id, "steps " + id, "start " + name + " --wait", "list"} {
		f.printf("  %s run %s%s\n", f.program, command, f.flag)
	}
	f.printf("\n")
	return nil
}

func (f firstRun) printf(format string, args ...any) {
	_ = terminal.Draw(f.out, fmt.Sprintf(format, args...)) // a closed terminal must not stop the platform
}

// compact puts JSON on one line, and returns other text unchanged.
func compact(text string) string {
	var out bytes.Buffer
	if json.Compact(&out, []byte(text)) != nil {
		return text
	}
	return out.String()
}
