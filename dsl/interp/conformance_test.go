package interp_test

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cucumber/godog"
	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/interp"
	"github.com/signalbox-dev/signalbox/dsl/jq"
)

// TestConformance runs the scenarios of the official kit for the tasks that this version runs, with a stub for the
// origins they call.
func TestConformance(t *testing.T) {
	t.Parallel()
	var features []string
	dir := officialData(t, "ctk")
	for _, f := range []string{
		"set", "do", "switch", "for", "flow", "branch", "raise", "try", "data-flow", "call", "emit"} {
		features = append(features, dir+"/"+f+".feature")
	}
	passed, beyond := 0, 0
	suite := godog.TestSuite{
		ScenarioInitializer: func(sc *godog.ScenarioContext) {
			s := &scenario{}
			s.steps(sc)
			sc.After(func(ctx context.Context, _ *godog.Scenario, err error) (context.Context, error) {
				switch {
				case s.unsupported != "":
					beyond++
					t.Logf("not run yet: %s", s.unsupported)
				case err == nil:
					passed++
				}
				return ctx, nil
			})
		},
		Options: &godog.Options{Format: "progress", Paths: features, TestingT: t, Strict: false, Output: io.Discard},
	}
	require.Zero(t, suite.Run())
	t.Logf("%d scenarios passed, %d are beyond this version", passed, beyond)
	require.GreaterOrEqual(t, passed, 21)
}

type scenario struct {
	source, input string
	w             *driver
	outcome       interp.Outcome
	unsupported   string
}

// report implements the interface that require needs in a scenario: failures become the error of the step.
type report struct{ errs []string }

func (r *report) Errorf(format string, args ...any) {
	r.errs = append(r.errs, fmt.Sprintf(format, args...))
}
func (r *report) Helper()  {}
func (r *report) FailNow() { panic(strings.Join(r.errs, "\n")) }

func (s *scenario) steps(sc *godog.ScenarioContext) {
	sc.Step(`^a workflow with definition:$`, func(d *godog.DocString) { s.source = d.Content })
	sc.Step(`^given the workflow input is:$`, func(d *godog.DocString) { s.input = d.Content })
	sc.Step(`^the workflow is executed$`, s.execute)
	sc.Step(`^the workflow should complete$`, func() error { return s.ended(interp.StatusCompleted) })
	sc.Step(`^the workflow should fault$`, func() error { return s.ended(interp.StatusFailed) })
	sc.Step(`^the workflow should complete with output:$`, func(d *godog.DocString) error {
		if err := s.ended(interp.StatusCompleted); err != nil {
			return err
		}
		return same(s.outcome.Output, d.Content)
	})
	sc.Step(`^the workflow should fault with error:$`, s.failedWith)
	sc.Step(`^the workflow output should have a '([^']*)' property containing (\d+) items$`,
		func(path string, n int) error {
			list, _ := property(s.outcome.Output, path)
			if items, ok := list.([]any); !ok || len(items) != n {
				return fmt.Errorf("%s is %v, not %d items", path, list, n)
			}
			return nil
		})
	sc.Step(`^the workflow output should have a '([^']*)' property with value:$`,
		func(path string, d *godog.DocString) error {
			v, ok := property(s.outcome.Output, path)
			if !ok {
				return fmt.Errorf("no %s in %v", path, s.outcome.Output)
			}
			return same(v, d.Content)
		})
	sc.Step(`^the workflow output should have properties (.*)$`, func(list string) error {
		for _, m := range regexp.MustCompile(`'([^']*)'`).FindAllStringSubmatch(list, -1) {
			if _, ok := property(s.outcome.Output, m[1]); !ok {
				return fmt.Errorf("no %s in %v", m[1], s.outcome.Output)
			}
		}
		return nil
	})
	sc.Step(`^(\w+) should run first$`, func(task string) error { return s.checkPosition(task, 0) })
	sc.Step(`^(\w+) should run last$`, func(task string) error { return s.checkPosition(task, len(s.w.steps)-1) })
	sc.Step(`^(\w+) should run after (\w+)$`, func(later, earlier string) error {
		names := s.ran()
		if slices.Index(names, earlier) < 0 || slices.Index(names, later) <= slices.Index(names, earlier) {
			return fmt.Errorf("ran in the order %v", names)
		}
		return nil
	})
}

func (s *scenario) execute() (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
		}
	}()
	resources := dsl.NewResources()
	resources.Add("https://petstore.swagger.io/v2/swagger.json", []byte(petstoreDescription))
	doc, violations := dsl.Parse([]byte(s.source), dsl.WithResources(resources))
	for _, p := range violations {
		if p.Code == "unsupported" {
			s.unsupported = fmt.Sprintf("%s at %s", p.Message, p.Path)
			return godog.ErrPending
		}
	}
	if violations.HasErrors() {
		return violations
	}
	var input any
	if err := yaml.Unmarshal([]byte(s.input), &input); err != nil {
		return err
	}
	if s.input == "" {
		input = map[string]any{}
	}
	s.w = &driver{t: &report{}, doc: doc, now: epoch, limits: interp.DefaultLimits(), steps: map[int64]interp.StepRecord{},
		origin: petstore}
	s.w.m = interp.New(doc, interp.Start{RunID: "r", Input: jq.Normalize(input), At: epoch}, s.w.limits)
	s.outcome = s.w.run()
	return nil
}

func (s *scenario) ended(want interp.Status) error {
	if s.outcome.Status != want {
		return fmt.Errorf("the run is %s: %w", s.outcome.Status, s.outcome.Error)
	}
	return nil
}

func (s *scenario) failedWith(d *godog.DocString) error {
	if err := s.ended(interp.StatusFailed); err != nil {
		return err
	}
	var want map[string]any
	if err := yaml.Unmarshal([]byte(d.Content), &want); err != nil {
		return err
	}
	got := s.outcome.Error.Value()
	for key, value := range want {
		if !reflect.DeepEqual(jq.Normalize(value), got[key]) {
			return fmt.Errorf("%s is %v, not %v", key, got[key], value)
		}
	}
	return nil
}

func (s *scenario) ran() []string {
	var names []string
	for n := int64(1); n <= int64(len(s.w.steps)); n++ {
		names = append(names, s.w.steps[n].Task)
	}
	return names
}

func (s *scenario) checkPosition(task string, at int) error {
	if names := s.ran(); names[at] != task {
		return fmt.Errorf("ran in the order %v", names)
	}
	return nil
}

func property(v any, path string) (any, bool) {
	for name := range strings.SplitSeq(path, ".") {
		object, ok := v.(map[string]any)
		if !ok {
			return nil, false
		}
		if v, ok = object[name]; !ok {
			return nil, false
		}
	}
	return v, true
}

func same(got any, wantYAML string) error {
	var want any
	if err := yaml.Unmarshal([]byte(wantYAML), &want); err != nil {
		return err
	}
	if !reflect.DeepEqual(jq.Normalize(want), jq.Normalize(got)) {
		return fmt.Errorf("got %v, want %v", got, want)
	}
	return nil
}

// petstoreDescription describes the operations that the kit calls.
const petstoreDescription = `{
"swagger": "2.0", "host": "petstore.swagger.io", "basePath": "/v2", "schemes": ["https"], "paths": {
"/pet/findByStatus": {"get": {"operationId": "findPetsByStatus", "parameters": [{"in": "query", "name": "status",
	"required": true, "type": "array", "items": {"type": "string", "enum": ["available", "sold"]}, "collectionFormat": "multi"}]}},
"/pet/{petId}": {"get": {"operationId": "getPetById", "parameters": [{"in": "path", "name": "petId", "required": true,
	"type": "integer", "format": "int64"}]}}}}`

// petstore is a stub of the origin that the kit calls.
func petstore(c interp.Call) answer {
	pet := func(id any) map[string]any { return map[string]any{"id": id, "name": "Milou", "status": "available"} }
	u, err := url.Parse(c.HTTP.URL)
	if err == nil && u.Host == "httpbin.org" {
		return signIn(c, u)
	}
	if err != nil || u.Host != "petstore.swagger.io" {
		return answer{Result: answered(502)}
	}
	var content any
	switch path := strings.TrimPrefix(u.Path, "/v2/pet/"); path {
	case "1":
		content = pet(1)
	case "2":
		content = pet(2)
	case "findByStatus":
		if u.Query().Get("status") != "available" {
			return answer{Result: answered(400)}
		}
		content = []any{pet(1), pet(2)}
	default:
		return answer{Result: answered(404)}
	}
	if c.HTTP.Output != dsl.OutputResponse {
		return ok(content)
	}
	return ok(map[string]any{
		"request":    map[string]any{"method": c.HTTP.Method, "uri": c.HTTP.URL, "headers": map[string]any{}},
		"statusCode": 200, "headers": map[string]any{}, "content": content,
	})
}

// signIn is a stub of the origin that the kit authenticates to, with the credentials in the path.
func signIn(c interp.Call, u *url.URL) answer {
	a := c.HTTP.Authentication
	if a == nil || a.Scheme != dsl.AuthBasic {
		return answer{Result: answered(401)}
	}
	given, _ := a.Properties.(map[string]any)
	if u.Path != fmt.Sprintf("/basic-auth/%s/%s", given["username"], given["password"]) {
		return answer{Result: answered(401)}
	}
	return ok(map[string]any{"authenticated": true})
}
