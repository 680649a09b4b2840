package outage_test

import (
	"encoding/json"
	"net"
	"net/http"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/test/platform"
)

// No role is ready before the first attempt to connect to Temporal has ended; then the API is, whose store answers, and
// the worker is not.
func TestNoRoleIsReadyBeforeTheFirstAttemptToConnect(t *testing.T) {
	t.Parallel()
	for name, address := range map[string]func(*testing.T) string{
		"an address that accepts connections and does not answer": silent,
		"an address that refuses connections": func(t *testing.T) string {
			return platform.Address(platform.FreePort(t))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, roles := range [][]string{{platform.API, platform.Worker}, {platform.API}, {platform.Worker}} {
				store := platform.SQLite(t)
				o := options(t, address(t), store)
				o.Roles = roles
				x := platform.LaunchServer(t, o)
				seen := map[string]bool{}
				platform.Eventually(t, soon, func() string {
					for _, query := range []string{"", "?role=" + roles[0]} {
						code, body, err := x.Get(t.Context(), "/readyz"+query)
						if err != nil {
							return err.Error()
						}
						state := temporalIn(t, body)
						seen[state] = true
						usable := state == "down" && roles[0] == platform.API
						require.Equal(t, usable, code == http.StatusOK, "%v: /readyz%s answers %d: %s", roles, query, code, body)
						if state == "connecting" {
							require.Contains(t, body, "first attempt")
						}
					}
					if !seen["down"] {
						return "the first attempt has not ended"
					}
					return ""
				})
				if name != "an address that refuses connections" {
					require.True(t, seen["connecting"], "the first attempt takes longer than the start of the API")
				}
				x.Kill()
			}
		})
	}
}

// temporalIn returns the state of the connection to Temporal in a body of /readyz.
func temporalIn(t *testing.T, body string) string {
	t.Helper()
	var report struct {
		Dependencies []struct{ Name, Condition string }
	}
	require.NoError(t, json.Unmarshal([]byte(body), &report))
	n := slices.IndexFunc(report.Dependencies, func(d struct{ Name, Condition string }) bool {
		return d.Name == "temporal"
	})
	require.GreaterOrEqual(t, n, 0, body)
	return report.Dependencies[n].Condition
}

// silent returns the address of a listener that accepts connections and does not answer.
func silent(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it does not block
	require.NoError(t, err)
	var open sync.WaitGroup
	open.Go(func() {
		var accepted []net.Conn
		for {
			c, err := l.Accept()
			if err != nil {
				break
			}
			accepted = append(accepted, c)
		}
		for _, c := range accepted {
			_ = c.Close() // nothing was sent
		}
	})
	t.Cleanup(func() {
		_ = l.Close() // ends Accept
		open.Wait()
	})
	return l.Addr().String()
}
