package cli_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/cli/exit"
	"github.com/signalbox-dev/signalbox/internal/health"
)

// The exit code is what a health check of a container reads: 0 ready or degraded, 5 unavailable or away, 3 for a role
// that is not there.
func TestSystemHealth(t *testing.T) {
	t.Parallel()
	down := health.Condition{State: "down", Err: errors.New("connection\nrefused"), Since: time.Now()}
	process := func(state func() health.Condition) string {
		h := health.New(time.Now,
			[]health.Dependency{{Name: "temporal", Condition: state, Required: []string{"worker"}, Used: []string{"api"}}},
			"api", "worker")
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			h.Readyz(w, r.WithContext(health.WithErrors(r.Context()))) // as for a caller with a token
		}))
		t.Cleanup(server.Close)
		return server.URL
	}
	well := process(func() health.Condition {
		return health.Condition{State: "connected", Since: time.Now(), Usable: true}
	})
	ill := process(func() health.Condition { return down })
	foreign := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("hello"))
	}))
	t.Cleanup(foreign.Close)
	shell, _ := sh(t)
	tests := []struct {
		name      string
		args      []string
		code      int
		out, errs string
	}{
		{"ready", []string{"--address", well}, exit.OK, "api: ready\nworker: ready\n", ""},
		{"degraded", []string{"--address", ill}, exit.OK, "api: degraded because of temporal: connection", ""},
		{"role that cannot work", []string{"--address", ill, "--role", "worker"}, exit.Unavailable,
			"worker: unavailable because of temporal: connection", ""},
		{"role that the process does not have", []string{"--address", well, "--role", "cook"}, exit.NotFound, "",
			`the role "cook"`},
		{"nothing listens", []string{"--address", "127.0.0.1:1"}, exit.Unavailable, "", "check the health: "},
		{"another program", []string{"--address", foreign.URL}, exit.Failed, "", "is it a Signalbox server?"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			c := shell.run(t, append([]string{"system", "health"}, test.args...)...)
			require.Equal(t, test.code, c.code, c.err.String())
			require.Contains(t, c.out.String(), test.out)
			require.Contains(t, c.err.String(), test.errs)
		})
	}
	c := shell.run(t, "system", "health", "--address", ill, "-o", "json")
	require.Zero(t, c.code)
	require.Contains(t, c.out.String(), `"state": "down"`)
}
