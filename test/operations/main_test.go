// Package operations_test tests what operators use: the alerts of deploy/prometheus with their unit tests, the
// inhibition of symptoms, and the runbooks. With faults planted in a real platform, it measures the time until each
// alert arrives.
package operations_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/test/platform"
)

func TestMain(m *testing.M) {
	os.Exit(platform.MainParallel(m, 3, func(s *platform.Suite) { shared = platform.Share(s, platform.StartTemporal) }))
}

// shared is the Temporal of all platforms whose incident does not break it. Each has a namespace of its own there.
var shared *platform.Shared[*platform.Temporal]

const (
	root       = "../.."
	prometheus = root + "/deploy/prometheus"
	runbooks   = root + "/docs/runbooks"
)

// rules are the parts of a rule file that the tests read.
type rules struct {
	Groups []struct {
		Name  string `yaml:"name"`
		Rules []rule `yaml:"rules"`
	} `yaml:"groups"`
}

type rule struct {
	Alert       string            `yaml:"alert"`
	Record      string            `yaml:"record"`
	Expr        string            `yaml:"expr"`
	For         string            `yaml:"for"`
	Labels      map[string]string `yaml:"labels"`
	Annotations map[string]string `yaml:"annotations"`
}

// parse reads a YAML file.
func parse[V any](t *testing.T, path string) V {
	t.Helper()
	text, err := os.ReadFile(filepath.Clean(path))
	require.NoError(t, err)
	var v V
	require.NoError(t, yaml.Unmarshal(text, &v))
	return v
}

// alerts returns the rules that are alerts.
func alerts(t *testing.T) []rule {
	t.Helper()
	var found []rule
	for _, group := range parse[rules](t, prometheus+"/rules.yaml").Groups {
		for _, r := range group.Rules {
			if r.Alert != "" {
				found = append(found, r)
			}
		}
	}
	require.NotEmpty(t, found)
	return found
}

// alertNames returns the names of all alerts, sorted.
func alertNames(t *testing.T) []string {
	t.Helper()
	var names []string
	for _, r := range alerts(t) {
		names = append(names, r.Alert)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
