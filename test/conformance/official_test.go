package conformance_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/timestamppb"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/internal/sandbox/container/enginetest"
	"github.com/signalbox-dev/signalbox/test/agreement"
	"github.com/signalbox-dev/signalbox/test/platform"
)

// official serves what the official examples call.
type official struct {
	mu   sync.Mutex
	seen map[string]int
}

// fleeting reports whether a request with an address is refused for a moment: each second one is answered.
func (o *official) fleeting(address string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.seen[address]++
	return o.seen[address]%2 == 1
}

func (o *official) serve(w http.ResponseWriter, r *http.Request) {
	switch {
	case strings.HasSuffix(r.URL.Path, "/token"):
		answer(w, http.StatusOK, map[string]any{"access_token": "granted"})
	case strings.HasSuffix(r.URL.Path, "/.well-known/openid-configuration"):
		issuer := "http://" + r.Host + strings.TrimSuffix(r.URL.Path, "/.well-known/openid-configuration")
		answer(w, http.StatusOK, map[string]any{"issuer": issuer, "token_endpoint": issuer + "/token"})
	case r.Host == "raw.githubusercontent.com":
		_, _ = w.Write([]byte("set: {logged: '${ .message }'}")) // the caller may have disconnected
	case r.URL.Path == "/ordersservices.json":
		answer(w, http.StatusOK, map[string]any{
			"openapi": "3.0.3", "info": map[string]any{"title": "Orders", "version": "1.0.0"},
			"paths": map[string]any{
				"/log":    map[string]any{"post": map[string]any{"operationId": "logreading"}},
				"/report": map[string]any{"post": map[string]any{"operationId": "produceReport"}},
			},
		})
	case (r.Host == "external-service.example.com" || strings.HasSuffix(r.URL.Path, "/503")) && o.fleeting(r.URL.Path):
		answer(w, http.StatusServiceUnavailable, map[string]any{"message": "later"})
	case r.Host == "swapi.dev" && strings.HasPrefix(r.URL.Path, "/api/people/"):
		answer(w, http.StatusOK, map[string]any{"name": "Luke", "homeworld": "https://swapi.dev/api/planets/1"})
	default:
		answer(w, http.StatusOK, map[string]any{"received": r.URL.Path})
	}
}

// secrets returns a folder with the secrets of the official examples and of our scenarios.
func secrets(t platform.T) string {
	t.Helper()
	dir := t.TempDir()
	of := filepath.Join(dir, platform.DefaultProject)
	if err := os.Mkdir(of, 0o700); err != nil {
		t.Fatalf("write the secrets: %v", err)
	}
	for name, value := range map[string]string{
		"login": `{"username": "user", "password": "secret"}`,
		"mySecret": `{"authority": "http://keycloak/realms/fake-authority", "grant": "client_credentials",
			"client": {"id": "me", "secret": "a secret"}}`,
	} {
		if err := os.WriteFile(filepath.Join(of, name), []byte(value), 0o600); err != nil {
			t.Fatalf("write the secrets: %v", err)
		}
	}
	return dir
}

// commonInput is an input that most official examples can use.
const commonInput = `{"petId": 1, "searchQuery": "luke", "id": 1, "customer": {"age": 20}, "bet": {"on": "1"},
	"orderType": "physical", "pets": [{"id": 1}], "vet": "v", "user": {"name": "Ada"}, "carId": 7, "roomId": 2,
	"patient": {"fullName": "Ada"}, "room": {"number": 3}, "readings": [1, 2]}`

// officialInputs are the inputs of examples that need another one.
func officialInputs() map[string]string {
	return map[string]string{
		"authentication-bearer": `{"token": "t-1"}`, "authentication-bearer-uri-format": `{"token": "t-1"}`,
		"try-catch": `{"petId": 404}`, "try-catch-then": `{"petId": 404}`,
		"try-catch-retry-inline": `{"petId": 503}`, "try-catch-retry-reusable": `{"petId": 503}`,
	}
}

// officialEvents are the events that examples take, one after another.
func officialEvents() map[string][]*signalboxv1.CloudEvent {
	of := func(kind, data string) *signalboxv1.CloudEvent {
		return &signalboxv1.CloudEvent{Type: kind, Data: &signalboxv1.JsonValue{Json: data}}
	}
	const vitals = "com.fake-hospital.vitals.measurements."
	hot, slow := of(vitals+"temperature", `{"temperature": 39}`), of(vitals+"bpm", `{"bpm": 50}`)
	any := of("com.example.any", `{"n": 1}`)
	reading := func(kind string) *signalboxv1.CloudEvent {
		e := of("my.home.sensors."+kind, `{"reading": 20}`)
		e.Source, e.Extensions = "https://my.home.com/sensor", &signalboxv1.JsonValue{Json: `{"roomid": "r1"}`}
		return e
	}
	trigger := of("io.serverlessworkflow.samples.events.trigger.v1", `{"n": 1}`)
	return map[string][]*signalboxv1.CloudEvent{
		"accumulate-room-readings":      {reading("temperature"), reading("humidity")},
		"for":                           {of("com.fake.petclinic.pets.checkup.completed.v2", `{}`)},
		"listen-to-all":                 {hot, slow},
		"listen-to-all read-envelope":   {slow, hot},
		"listen-to-any":                 {any},
		"listen-to-any-filter":          {slow},
		"listen-to-any-forever-foreach": {any, any},
		"listen-to-any-until-condition": {any, any, any, any},
		"listen-to-any-until-consumed":  {hot, slow, of("com.fake-hospital.patient.checked-out", `{}`)},
		"listen-to-one":                 {of("com.virtual-wf-powered-race.events.race.started.v1", `{}`)},
		"schedule-event-driven": {of("com.example.hospital.events.patients.heartbeat.low",
			`{"timestamp": "noon", "patient": {"id": 1, "name": "Ada", "room": {"number": 3}, "vitals": {"bpm": 40}}}`)},
		"set":            {trigger},
		"set-expression": {trigger},
	}
}

// publishers is the source of the events that the tests publish.
const publishers = "https://publisher.example"

// TestOfficialExamplesAgree compares each official example. Those that this version does not run are refused by both.
func TestOfficialExamplesAgree(t *testing.T) {
	t.Parallel()
	examples := officialExamples(t)
	s := shared.Get(t)
	t.Cleanup(func() { s.count(t) })
	var hosts sync.Map // one example at a time calls each host: what that receives belongs to its run
	address := regexp.MustCompile(`https?://[a-zA-Z0-9.-]+`)
	for name, source := range examples {
		if strings.Contains(source, "container:") {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			own := address.FindAllString(source, -1)
			slices.Sort(own)
			for _, host := range slices.Compact(own) {
				lock, _ := hosts.LoadOrStore(host, new(sync.Mutex))
				lock.(*sync.Mutex).Lock()
				defer lock.(*sync.Mutex).Unlock()
			}
			belongs := func(e agreement.Exchange) bool {
				return slices.ContainsFunc(own, func(host string) bool { return strings.HasPrefix(e.URL, host+"/") })
			}
			s.services.Take(belongs) // of the example before
			require.NoError(t, s.example(t, name, source, belongs))
		})
	}
}

// TestOfficialContainersAgree is TestOfficialExamplesAgree for the examples with containers.
func TestOfficialContainersAgree(t *testing.T) {
	t.Parallel()
	examples := officialExamples(t)
	socket := enginetest.Start(t)
	for _, image := range []string{"hello-world", "alpine"} {
		status, body := enginetest.Do(t, socket, http.MethodPost, "/images/"+enginetest.Image+"/tag?repo="+image+"&tag=latest", nil)
		require.Equal(t, http.StatusCreated, status, body)
	}
	s := startStack(t, agreement.Record(http.NotFoundHandler(), func(*http.Request) bool { return false }),
		"SIGNALBOX_RUNNER_CONTAINERS_SOCKET="+socket, "SIGNALBOX_RUNNER_CONTAINERS_IMAGES=hello-world,alpine")
	for name, source := range examples {
		if strings.Contains(source, "container:") {
			t.Run(name, func(t *testing.T) {
				require.NoError(t, s.example(t, name, source, everything))
			})
		}
	}
}

// officialExamples returns the sources of the official examples by name.
func officialExamples(t *testing.T) map[string]string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(officialData(t), "examples", "*.yaml"))
	require.NoError(t, err)
	require.Len(t, paths, 68)
	examples := map[string]string{}
	for _, path := range paths {
		content, err := os.ReadFile(path)
		require.NoError(t, err)
		examples[strings.TrimSuffix(filepath.Base(path), ".yaml")] = string(content)
	}
	return examples
}

// warmUp publishes an event that no run takes, and waits until it is matched: then the dispatcher of the project is open,
// and has published that it is, which an example that takes any event would take.
func (s *stack) warmUp(t *testing.T, project string) {
	t.Helper()
	published, err := s.Events.PublishEvents(t.Context(), connect.NewRequest(&signalboxv1.PublishEventsRequest{Project: project,
		Events: []*signalboxv1.CloudEvent{{Id: "first", Source: publishers, Type: "com.example.first"}}}))
	require.NoError(t, err)
	platform.Eventually(t, platform.Patience, func() string {
		got, err := s.Events.GetEvent(t.Context(), connect.NewRequest(&signalboxv1.GetEventRequest{
			Project: project, Position: published.Msg.GetAccepted()[0].GetPosition()}))
		if err != nil {
			return err.Error()
		}
		if status := got.Msg.GetEvent().GetStatus(); status != "unmatched" {
			return "the event is " + status
		}
		return ""
	})
}

// unsupported reports whether a violation names a part of the language that this version does not run.
func unsupported(v dsl.Violation) bool { return v.Code == dsl.CodeUnsupported }

// usesEvents matches documents that take or emit events.
var usesEvents = regexp.MustCompile(`(?m)^\s+(- )?(listen|emit|on|schedule):`)

// example runs an example on the platform, and compares it with its test.
func (s *stack) example(t *testing.T, name, source string, belongs func(agreement.Exchange) bool) error {
	t.Helper()
	ctx := t.Context()
	source = regexp.MustCompile(`(?m)^  name: .*$`).ReplaceAllString(source, // some have a name in common
		"  name: official-"+strings.ReplaceAll(name, " ", "-"))
	doc, violations := dsl.ParseStructure([]byte(source))
	if i := slices.IndexFunc(violations, unsupported); i >= 0 {
		_, err := s.Workflows.PublishWorkflow(ctx, connect.NewRequest(&signalboxv1.PublishWorkflowRequest{
			Project: platform.DefaultProject, Source: source}))
		require.ErrorContains(t, err, violations[i].Message)
		return nil // neither runs it
	}
	if doc == nil {
		return violations
	}
	// The events of others would reach a run that takes any, so that such examples have a project of their own.
	project, own := platform.DefaultProject, usesEvents.MatchString(source)
	if own {
		project = "official-" + strings.ReplaceAll(name, " ", "-")
		_, err := s.Projects.CreateProject(ctx, connect.NewRequest(&signalboxv1.CreateProjectRequest{Name: project}))
		if err != nil {
			return fmt.Errorf("create the project: %w", err)
		}
		s.warmUp(t, project)
	}
	sources := []string{source}
	if name == "run-subflow" {
		sources = []string{"document: {dsl: '1.0.3', namespace: test, name: register-customer, version: '0.1.0'}\n" +
			"do: [{register: {set: {registered: '${ .customer.name }'}}}]\n", source}
	}
	for _, source := range sources {
		_, err := s.Workflows.PublishWorkflow(ctx, connect.NewRequest(&signalboxv1.PublishWorkflowRequest{
			Project: project, Source: source}))
		if err != nil {
			return fmt.Errorf("publish: %w", err)
		}
	}
	e := ended{t: t, project: project, source: source, alone: own, published: map[string]bool{}}
	run, err := s.play(ctx, t, project, doc, name, &e)
	if err != nil {
		return err
	}
	e.run, e.exchanges = run, s.services.Take(belongs)
	return s.agrees(ctx, e)
}

// play starts a run of an example, publishes the events that it takes, and returns it when it has ended or takes no more.
func (s *stack) play(ctx context.Context, t *testing.T, project string, doc *dsl.Document, name string, e *ended) (
	run *signalboxv1.Run, err error) {
	t.Helper()
	events := officialEvents()[name]
	read := func(met func() bool) {
		platform.Eventually(t, platform.Patience, func() string {
			if run == nil {
				listed, err := s.Runs.ListRuns(ctx, connect.NewRequest(&signalboxv1.ListRunsRequest{Project: project}))
				if err != nil || len(listed.Msg.GetRuns()) == 0 {
					return fmt.Sprintf("no run was started: %v", err)
				}
				run = listed.Msg.GetRuns()[0]
			}
			got, err := s.Runs.GetRun(ctx, connect.NewRequest(&signalboxv1.GetRunRequest{Project: project, Id: run.GetId()}))
			if err != nil {
				return err.Error()
			}
			if run = got.Msg.GetRun(); met() || slices.Contains(platform.Ended(), run.GetStatus()) {
				return ""
			}
			return fmt.Sprintf("the run is %s: %s", run.GetStatus(), run.GetWaitingKind())
		})
	}
	if doc.Schedule == nil || doc.Schedule.On == nil {
		input := commonInput
		if own, ok := officialInputs()[name]; ok {
			input = own
		}
		started, err := s.Runs.StartRun(ctx, connect.NewRequest(&signalboxv1.StartRunRequest{
			Project: project, Workflow: doc.Namespace + "/" + doc.Name, Input: &signalboxv1.JsonValue{Json: input}}))
		if err != nil {
			return nil, fmt.Errorf("start: %w", err)
		}
		run = started.Msg.GetRun()
	}
	for i, event := range events {
		if run != nil {
			read(func() bool { return run.GetWaitingKind() == "event" })
		}
		event.Id, event.Time = fmt.Sprint("e", i), timestamppb.Now() // a test adds a time to an event without one
		if event.Source == "" {
			event.Source = publishers
		}
		e.published[event.GetSource()] = true
		_, err := s.Events.PublishEvents(ctx, connect.NewRequest(&signalboxv1.PublishEventsRequest{
			Project: project, Events: []*signalboxv1.CloudEvent{event}}))
		if err != nil {
			return nil, fmt.Errorf("publish an event: %w", err)
		}
		taken := func() bool {
			listed, err := s.Events.ListEvents(ctx, connect.NewRequest(&signalboxv1.ListEventsRequest{
				Project: project, RunId: run.GetId()}))
			return err == nil && len(listed.Msg.GetEvents()) > i
		}
		read(taken)
	}
	forever := strings.Contains(name, "forever")
	read(func() bool {
		return forever && run.GetWaitingKind() == "event" && run.GetStepsDone() == int64(len(events))
	})
	return run, nil
}
