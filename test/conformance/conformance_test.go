package conformance_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"github.com/cucumber/godog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/test/platform"
)

// result is the result of one scenario.
type result struct {
	feature, name string
	passed        bool
	unsupported   string // what of it this version does not run
}

// suite runs the scenarios of a folder.
type suite struct {
	t        *testing.T
	stack    *stack
	used     map[string]int // how many scenarios have a workflow of a name
	projects map[string]bool
	results  []result
}

// project returns the project in which definitions are published: scenarios have workflows of the same name and
// version, which one project refuses.
func (s *suite) project(workflow string) string {
	s.used[workflow]++
	if s.used[workflow] == 1 {
		return platform.DefaultProject
	}
	id := fmt.Sprint("again-", s.used[workflow])
	if !s.projects[id] {
		_, err := s.stack.Projects.CreateProject(s.t.Context(), connect.NewRequest(&signalboxv1.CreateProjectRequest{Name: id}))
		require.NoError(s.t, err)
		s.projects[id] = true
	}
	return id
}

// runFeatures runs the scenarios of the features in a folder, and returns their results in order.
func runFeatures(t *testing.T, dir string) []result {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.feature"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	s := &suite{t: t, stack: shared.Get(t), used: map[string]int{}, projects: map[string]bool{}}
	for _, file := range files {
		feature := strings.TrimSuffix(filepath.Base(file), ".feature")
		features := godog.TestSuite{
			ScenarioInitializer: func(sc *godog.ScenarioContext) {
				one := &scenario{t: t, stack: s.stack, suite: s}
				one.register(sc)
				sc.After(func(ctx context.Context, of *godog.Scenario, err error) (context.Context, error) {
					s.results = append(s.results, result{feature, of.Name, err == nil && one.unsupported == "", one.unsupported})
					return ctx, nil
				})
			},
			Options: &godog.Options{Format: "progress", Paths: []string{file}, TestingT: t, Output: io.Discard},
		}
		assert.Zero(t, features.Run(), file)
	}
	s.stack.count(t)
	return s.results
}

// TestKit runs the specification's conformance kit.
func TestKit(t *testing.T) {
	dir := officialData(t)
	results := runFeatures(t, filepath.Join(dir, "ctk"))
	passed := 0
	for _, r := range results {
		if r.passed {
			passed++
		} else {
			t.Logf("%s: %s: %s", r.feature, r.name, r.unsupported)
		}
	}
	t.Logf("%d of %d scenarios pass", passed, len(results))
	require.Len(t, results, 21)
	require.Equal(t, 21, passed)
	keepPage(t, "kit", table(results))
}

// TestScenarios runs our own scenarios, which have what the kit leaves out.
func TestScenarios(t *testing.T) {
	results := runFeatures(t, "testdata")
	for _, r := range results {
		require.True(t, r.passed, "%s: %s: %s", r.feature, r.name, r.unsupported)
	}
	keepPage(t, "scenarios", table(results))
	keepPage(t, "properties", unused(t, officialData(t)))
}

// officialData returns the folder with the specification's schema and conformance kit.
func officialData(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("OWS_DIR")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared", "open-workflow")
	}
	if _, err := os.Stat(filepath.Join(dir, "workflow.yaml")); err != nil {
		t.Skipf("the specification's data is not in %q; set OWS_DIR to its folder", dir)
	}
	return dir
}
