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

// rotation is a platform whose servers have different keys, one after the other.
type rotation struct {
	options platform.ServerOptions
	server  *platform.Server
}

// with stops the server, if one runs, and starts one with other keys.
func (r *rotation) with(t *testing.T, keys ...string) {
	t.Helper()
	r.stop(t)
	o := r.options
	o.Args = keys
	r.server = platform.StartServer(t, o)
}

func (r *rotation) stop(t *testing.T) {
	t.Helper()
	if r.server == nil {
		return
	}
	r.server.Terminate()
	_, ended := r.server.WaitFor(soon)
	require.True(t, ended)
	r.server = nil
}

// refused requires that no server starts with the keys, and that check-config has the same reason.
func (r *rotation) refused(t *testing.T, reason string, keys ...string) {
	t.Helper()
	r.stop(t)
	o := r.options
	o.Args = keys
	s := platform.LaunchServer(t, o)
	code, ended := s.WaitFor(soon)
	require.True(t, ended, s.Output())
	require.Equal(t, platform.ExitFailed, code)
	require.Contains(t, s.Output(), reason)
	args := append([]string{"check-config", "--store-driver", o.Store.Driver, "--store-dsn", o.Store.DSN,
		"--temporal-address", o.Temporal}, keys...)
	check := platform.Run(t, platform.Command{
		// it is not connected to
		Binary: platform.Binary(t), Args: args, Env: []string{"SIGNALBOX_REDIS_URL=redis://127.0.0.1:1"},
	})
	require.Equal(t, platform.ExitFailed, check.Code, check)
	require.Contains(t, check.Stdout, "encryption.keys")
	require.Contains(t, check.Stdout, reason)
}

// states returns the states of the keys by ID, as the command line shows them.
func (r *rotation) states(t *testing.T) map[string]string {
	t.Helper()
	out := r.server.CLI(t, "system", "keys")
	require.Equal(t, platform.ExitOK, out.Code, out)
	states := map[string]string{}
	for _, line := range strings.Split(strings.TrimSpace(out.Stdout), "\n")[1:] {
		id, rest, _ := strings.Cut(line, " ")
		for _, state := range []string{"not needed", "needed", "active", "missing"} {
			if strings.HasPrefix(strings.TrimSpace(rest), state) {
				states[id] = state
				break
			}
		}
	}
	return states
}

// A key is replaced while a run, a schedule, a webhook and a dispatcher are in use: it is refused to remove it while
// something needs it, and nothing misses it afterwards.
func TestSealingKeyIsRotated(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, store platform.Store) {
		t.Parallel()
		first, second, other := newKey(t), newKey(t), newKey(t)
		r := &rotation{options: platform.ServerOptions{Temporal: platform.StartTemporal(t).Address, Store: store}}
		hooks := newReceiver(t)

		r.with(t, "--encryption-keys", "k1="+first)
		waits := r.server.Publish(t, platform.Document("waits", "  - pause:\n      listen: {to: {one: {with: {type: "+
			"go}}}}\n  - greet:\n      set: {greeting: '${ $workflow.input.name }'}\n"))
		ticks := r.server.Publish(t, platform.Document("ticks", short, "schedule: {every: {seconds: 1}}\n"))
		started := r.server.Publish(t, platform.Document("started", short, "schedule: {on: {one: {with: {type: start}}}}\n"))
		secret := createWebhook(t, r.server, "hook", "--url", hooks.URL+"/hook", "--type", "start")
		hooks.set(func() { hooks.secrets = append(hooks.secrets, secret) })
		id := r.server.Start(t, waits, `{"name":"Ada"}`).GetId()
		r.server.Await(t, id, soon, "waiting")

		r.refused(t, "open run", "--encryption-keys", "k2="+second)
		r.refused(t, "1 webhook", "--encryption-keys", "k2="+second)
		r.refused(t, `the key "k1" is not the one that sealed values here`, "--encryption-keys", "k1="+other)

		r.with(t, "--encryption-keys", "k1="+first+",k2="+second, "--encryption-active", "k2")
		require.Equal(t, map[string]string{"k1": "needed", "k2": "active"}, r.states(t))
		check := r.server.CLI(t, "restore", "check")
		require.Regexp(t, `sealing keys +k2: \d+ open runs?; k1: \d+ open runs?`, check.Stdout)
		require.NotContains(t, r.server.CLI(t, "system", "keys", "--jq",
			`.sealingKeys[] | select(.webhooks == "1") | .id`).Stdout, "k1")
		sendTogether(t, r.server, "go", 1)
		done := r.server.Await(t, id, soon, platform.Ended()...)
		require.Equal(t, "completed", done.GetStatus(), "%v", done)
		// A run of the schedule that is open when the server stops may need the key.
		require.Equal(t, platform.ExitOK, r.server.CLI(t, "workflow", "pause", ticks, "--reason", "rotation").Code)
		platform.Eventually(t, agreed, func() string {
			if states := r.states(t); states["k1"] != "not needed" {
				return "k1 is " + states["k1"] + ": " + r.server.CLI(t, "system", "keys").Stdout
			}
			return ""
		})

		r.with(t, "--encryption-keys", "k2="+second)
		require.Equal(t, platform.ExitOK, r.server.CLI(t, "workflow", "unpause", ticks).Code)
		count := func(name string) int64 {
			n := r.server.CLI(t, "run", "list", "--workflow", name, "--status", "completed", "-o", "json")
			return int64(strings.Count(n.Stdout, `"status": "completed"`))
		}
		before := count(ticks)
		sendTogether(t, r.server, "start", 1)
		platform.Eventually(t, 2*agreed, func() string {
			switch {
			case count(ticks) == before:
				return "the schedule starts no run: " + r.server.CLI(t, "problem", "list").Stdout
			case count(started) == 0:
				return "the event starts no run: " + r.server.CLI(t, "dispatcher", "list").Stdout
			}
			return hooks.lacks(t, map[string]int{"start": 1})
		})
		require.Equal(t, "completed", r.server.Run(t, id).GetStatus())
		require.Equal(t, "active", r.states(t)["k2"])
		platform.Eventually(t, agreed, func() string { // the dispatcher of the former server may still be stale
			return r.server.CLI(t, "problem", "list", "-o", "name").Stdout
		})
	})
}
