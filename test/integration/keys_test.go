package integration_test

import (
	"crypto/rand"
	"encoding/base64"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/test/platform"
)

func newKey(t *testing.T) string {
	t.Helper()
	key := make([]byte, 32)
	_, err := rand.Read(key)
	require.NoError(t, err)
	return file(t, "key", base64.StdEncoding.EncodeToString(key))
}

// A worker without the key of a run returns its tasks. With the key, the run continues.
func TestRunWaitsForMissingKey(t *testing.T) {
	t.Parallel()
	first, second := newKey(t), newKey(t)
	options := platform.ServerOptions{Temporal: platform.StartTemporal(t).Address, Store: platform.SQLite(t)}
	with := func(args ...string) *platform.Server {
		o := options
		o.Args = args
		return platform.StartServer(t, o)
	}
	stop := func(s *platform.Server) {
		s.Terminate()
		_, ended := s.WaitFor(soon)
		require.True(t, ended)
	}
	s := with("--encryption-keys", "k1="+first)
	id := s.Start(t, s.Publish(t, platform.Document("waits", "  - pause:\n      wait: {milliseconds: 1500}\n  - greet:\n      set: {greeting: '${ .name }'}\n")), `{"name":"Ada"}`).GetId()
	s.Await(t, id, soon, "waiting")
	stop(s)

	s = with("--encryption-keys", "k2="+second)
	platform.Eventually(t, soon, func() string {
		if strings.Contains(s.Output(), `the key \"k1\"`) {
			return ""
		}
		return "no missing key is reported"
	})
	require.Equal(t, "waiting", s.Run(t, id).GetStatus(), s.Output())
	stop(s)

	s = with("--encryption-keys", "k1="+first+",k2="+second, "--encryption-active", "k2")
	r := s.Await(t, id, soon, platform.Ended()...)
	require.Equal(t, "completed", r.GetStatus(), "%v", r)
	require.Equal(t, map[string]any{"greeting": "Ada"}, platform.Decode(t, r.GetOutput()))
}
