package conformance_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"

	"connectrpc.com/connect"
	"github.com/cucumber/godog"
	"github.com/goccy/go-yaml"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/jq"
	"github.com/signalbox-dev/signalbox/test/agreement"
	"github.com/signalbox-dev/signalbox/test/platform"
)

// stack is the platform with the stand-ins.
type stack struct {
	*platform.Server

	services *agreement.Services
	// complete counts the runs whose export shows all that its test needs, incomplete the others.
	complete, incomplete atomic.Int64
}

var shared *platform.Shared[*stack]

func newStack(t platform.T) *stack {
	authority, services := startServices(t)
	return startStack(t, services, "SSL_CERT_FILE="+authority, "SIGNALBOX_SECRETS_DIR="+secrets(t))
}

// startStack starts a platform that runs all programs, with settings.
func startStack(t platform.T, services *agreement.Services, settings ...string) *stack {
	return &stack{services: services, Server: platform.StartServer(t, platform.ServerOptions{
		Temporal: platform.StartTemporal(t).Address, Store: platform.SQLite(t), Port: platform.FreePort(t),
		Roles: []string{platform.API, platform.Worker, platform.Runner},
		// The tests are in namespaces of their own already.
		Env: append(settings, "SIGNALBOX_RUNNER_KINDS=script,shell,container", "SIGNALBOX_RUNNER_ISOLATION=none"),
	})}
}

// scenario runs one scenario of the kit, or one of ours.
type scenario struct {
	t      platform.T
	stack  *stack
	suite  *suite
	source []string // definitions; the last one is executed
	input  string
	run    *signalboxv1.Run
	output any
	steps  []*signalboxv1.Step
	// unsupported is what of the definition this version does not run; empty: nothing.
	unsupported string
}

func (s *scenario) register(sc *godog.ScenarioContext) {
	sc.Step(`^a workflow with definition:$`, func(d *godog.DocString) { s.source = append(s.source, d.Content) })
	sc.Step(`^given the workflow input is:$`, func(d *godog.DocString) { s.input = d.Content })
	sc.Step(`^the workflow is executed$`, s.execute)
	sc.Step(`^the workflow should complete$`, func() error { return s.ended("completed") })
	sc.Step(`^the workflow should fault$`, func() error { return s.ended("failed") })
	sc.Step(`^the workflow should complete with output:$`, func(d *godog.DocString) error {
		if err := s.ended("completed"); err != nil {
			return err
		}
		return same(s.output, d.Content)
	})
	sc.Step(`^the workflow should fault with error:$`, s.failedWith)
	sc.Step(`^the workflow output should have a '([^']*)' property containing (\d+) items$`, s.hasItems)
	sc.Step(`^the workflow output should have a '([^']*)' property with value:$`,
		func(path string, d *godog.DocString) error {
			v, err := property(s.output, path)
			if err != nil {
				return err
			}
			return same(v, d.Content)
		})
	sc.Step(`^the workflow output should have properties (.*)$`, func(list string) error {
		for _, m := range regexp.MustCompile(`'([^']*)'`).FindAllStringSubmatch(list, -1) {
			if _, err := property(s.output, m[1]); err != nil {
				return err
			}
		}
		return nil
	})
	sc.Step(`^(\w+) should run first$`, func(task string) error { return s.ranAt(task, 0) })
	sc.Step(`^(\w+) should run last$`, func(task string) error { return s.ranAt(task, len(s.steps)-1) })
	sc.Step(`^(\w+) should run after (\w+)$`, s.ranAfter)
}

// execute publishes the definitions and runs the last one to its end.
func (s *scenario) execute(ctx context.Context) error {
	workflow := ""
	for _, source := range s.source {
		doc, violations := dsl.ParseStructure([]byte(source))
		if i := slices.IndexFunc(violations, unsupported); i >= 0 {
			s.unsupported = violations[i].Message
			return godog.ErrPending
		}
		if violations.HasErrors() {
			return violations
		}
		workflow = doc.Namespace + "/" + doc.Name
	}
	project := s.suite.project(workflow)
	for _, source := range s.source {
		_, err := s.stack.Workflows.PublishWorkflow(ctx, connect.NewRequest(&signalboxv1.PublishWorkflowRequest{
			Project: project, Source: source}))
		if err != nil {
			return fmt.Errorf("publish: %w", err)
		}
	}
	s.stack.services.Take(everything) // of the scenario before
	input, err := asJSON(s.input)
	if err != nil {
		return err
	}
	started, err := s.stack.Runs.StartRun(ctx, connect.NewRequest(&signalboxv1.StartRunRequest{
		Project: project, Workflow: workflow, Input: input}))
	if err != nil {
		return fmt.Errorf("start: %w", err)
	}
	if err := s.await(ctx, project, started.Msg.GetRun().GetId()); err != nil {
		return err
	}
	if s.run.GetOutput() != nil {
		s.output = platform.Decode(s.t, s.run.GetOutput())
	}
	res, err := s.stack.Runs.ListSteps(ctx, connect.NewRequest(&signalboxv1.ListStepsRequest{
		Project: project, Id: s.run.GetId(), PageSize: 1000}))
	if err != nil {
		return fmt.Errorf("read the steps: %w", err)
	}
	s.steps = res.Msg.GetSteps()
	given, err := jq.DecodeJSON([]byte(input.GetJson()))
	if err != nil {
		return fmt.Errorf("read the input: %w", err)
	}
	return s.stack.agrees(ctx, ended{t: s.t, project: project, source: s.source[len(s.source)-1], run: s.run, alone: true,
		input: given, exchanges: s.stack.services.Take(everything)})
}

func everything(agreement.Exchange) bool { return true }

// await watches a run to its end.
func (s *scenario) await(ctx context.Context, project, id string) error {
	ctx, cancel := context.WithTimeout(ctx, platform.Patience)
	defer cancel()
	stream, err := s.stack.Runs.WatchRun(ctx, connect.NewRequest(&signalboxv1.WatchRunRequest{Project: project, Id: id}))
	if err != nil {
		return fmt.Errorf("watch the run: %w", err)
	}
	for stream.Receive() {
		s.run = stream.Msg().GetRun()
	}
	if err := errors.Join(stream.Err(), stream.Close()); err != nil {
		return fmt.Errorf("watch the run: %w", err)
	}
	if !slices.Contains(platform.Ended(), s.run.GetStatus()) {
		return fmt.Errorf("the run is %s", s.run.GetStatus())
	}
	return nil
}

// asJSON returns a YAML text as a JSON value; an empty object where there is none.
func asJSON(text string) (*signalboxv1.JsonValue, error) {
	if text == "" {
		text = "{}"
	}
	encoded, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		return nil, fmt.Errorf("read the input: %w", err)
	}
	return &signalboxv1.JsonValue{Json: string(encoded)}, nil
}

func (s *scenario) ended(want string) error {
	if s.run.GetStatus() != want {
		return fmt.Errorf("the run is %s: %v", s.run.GetStatus(), s.run.GetError())
	}
	return nil
}

func (s *scenario) failedWith(d *godog.DocString) error {
	if err := s.ended("failed"); err != nil {
		return err
	}
	want := map[string]any{}
	if err := yaml.Unmarshal([]byte(d.Content), &want); err != nil {
		return err
	}
	e := s.run.GetError()
	got := map[string]any{"type": e.GetType(), "status": e.GetStatus(), "title": e.GetTitle(), "detail": e.GetDetail(),
		"instance": e.GetInstance()}
	for key, value := range want {
		if fmt.Sprint(value) != fmt.Sprint(got[key]) {
			return fmt.Errorf("%s is %v, not %v", key, got[key], value)
		}
	}
	return nil
}

func (s *scenario) hasItems(path string, n int) error {
	list, err := property(s.output, path)
	if err != nil {
		return err
	}
	if items, ok := list.([]any); !ok || len(items) != n {
		return fmt.Errorf("%s is %v, not %d items", path, list, n)
	}
	return nil
}

func (s *scenario) ran() []string {
	var names []string
	for _, step := range s.steps {
		names = append(names, step.GetTask())
	}
	return names
}

func (s *scenario) ranAt(task string, at int) error {
	if names := s.ran(); at < 0 || names[at] != task {
		return fmt.Errorf("ran in the order %v", names)
	}
	return nil
}

func (s *scenario) ranAfter(later, earlier string) error {
	names := s.ran()
	if slices.Index(names, earlier) < 0 || slices.Index(names, later) <= slices.Index(names, earlier) {
		return fmt.Errorf("ran in the order %v", names)
	}
	return nil
}

func property(v any, path string) (any, error) {
	at := v
	for name := range strings.SplitSeq(path, ".") {
		object, ok := at.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("no %s in %v", path, v)
		}
		if at, ok = object[name]; !ok {
			return nil, fmt.Errorf("no %s in %v", path, v)
		}
	}
	return at, nil
}

// same compares a value with one in YAML.
func same(got any, want string) error {
	encoded, err := yaml.YAMLToJSON([]byte(want))
	if err != nil {
		return err
	}
	var wanted, given any
	if err := json.Unmarshal(encoded, &wanted); err != nil {
		return err
	}
	text, err := json.Marshal(got)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, &given); err != nil {
		return err
	}
	if !reflect.DeepEqual(wanted, given) {
		return fmt.Errorf("got %s, want %s", text, encoded)
	}
	return nil
}
