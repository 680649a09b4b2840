package integration_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/test/platform"
)

// receiver is a receiver of webhooks. It verifies signatures by the reference implementation of Standard Webhooks.
type receiver struct {
	URL string

	mu sync.Mutex
	// secrets are the secrets of which each signature must be valid.
	secrets []string
	// status is the answer to each request; hold keeps requests open until it is closed.
	status int
	hold   chan struct{}
	// types are the types of the accepted events by the IDs of their deliveries, counts the requests, bad the invalid
	// ones.
	types  map[string]string
	counts map[string]int
	bad    []string
	// bodies are the accepted ones by the subject of their event.
	bodies map[string]string
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{status: http.StatusNoContent, types: map[string]string{}, counts: map[string]int{},
		bodies: map[string]string{}}
	s := httptest.NewServer(r)
	t.Cleanup(func() {
		r.set(func() { r.release() })
		s.Close()
	})
	r.URL = s.URL
	return r
}

func (r *receiver) release() {
	if r.hold != nil {
		close(r.hold)
		r.hold = nil
	}
}

func (r *receiver) set(change func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change()
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, _ := io.ReadAll(req.Body)
	r.mu.Lock()
	id, hold, status := req.Header.Get("Webhook-Id"), r.hold, r.status
	r.counts[id]++
	for _, secret := range r.secrets {
		verifier, err := standardwebhooks.NewWebhook(secret)
		if err == nil {
			err = verifier.Verify(body, req.Header)
		}
		if err != nil {
			r.bad = append(r.bad, err.Error())
		}
	}
	var e struct {
		Type    string `json:"type"`
		Subject string `json:"subject"`
	}
	if err := json.Unmarshal(body, &e); err != nil {
		r.bad = append(r.bad, err.Error())
	}
	r.mu.Unlock()
	if hold != nil {
		<-hold
	}
	if status >= 300 {
		w.Header().Set("Location", r.URL+"/elsewhere")
		http.Error(w, "not now", status)
		return
	}
	if req.Context().Err() != nil {
		return // the sender is gone
	}
	r.set(func() {
		r.types[id] = e.Type
		r.bodies[e.Subject] = string(body)
	})
	w.WriteHeader(status)
}

// lacks reports what of the given numbers of accepted events by type is missing; it fails for unexpected ones.
func (r *receiver) lacks(t *testing.T, want map[string]int) string {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	require.Empty(t, r.bad)
	got := map[string]int{}
	for _, typ := range r.types {
		got[typ]++
	}
	for typ, n := range want {
		if got[typ] < n {
			return fmt.Sprintf("%d of %d %s: %v", got[typ], n, typ, got)
		}
	}
	require.Equal(t, want, got)
	return ""
}

// createWebhook creates a webhook and returns its secret.
func createWebhook(t *testing.T, s *platform.Server, name string, args ...string) string {
	t.Helper()
	r := s.CLI(t, append([]string{"webhook", "create", name}, args...)...)
	require.Equal(t, platform.ExitOK, r.Code, r.String())
	return strings.TrimSpace(r.Stdout)
}

func sendEvents(t *testing.T, s *platform.Server, typ string, from, to int) {
	t.Helper()
	for i := from; i < to; i++ {
		r := s.CLI(t, "event", "send", "--type", typ, "--source", "/test/"+typ, "--id", fmt.Sprint(i), "--data",
			fmt.Sprintf(`{"n":%d}`, i))
		require.Equal(t, platform.ExitOK, r.Code, r.String())
	}
}

// deliveriesOf returns the deliveries of a webhook.
func deliveriesOf(t *testing.T, s *platform.Server,
	name string) (list []struct{ ID, Status, Reason, EventType string }) {
	t.Helper()
	s.CLI(t, "webhook", "deliveries", name, "--limit", "0", "-o", "json").JSON(t, &list)
	return list
}

// Webhooks need no Temporal: none runs in these tests.
const noTemporal = "127.0.0.1:1"

func TestWebhooksDeliverAcrossCrashesOfServers(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, store platform.Store) {
		t.Parallel()
		options := platform.ServerOptions{
			Temporal: noTemporal, Store: store, Roles: []string{platform.API}, Env: []string{"SIGNALBOX_WEBHOOKS_TIMEOUT=500ms"},
		}
		victim := platform.StartServer(t, options)
		other := victim
		if store.Driver == "postgres" {
			other = platform.StartServer(t, options)
		}
		r := newReceiver(t)
		secret := createWebhook(t, victim, "all", "--url", r.URL+"/hook?token=hidden", "--type", "order.*", "--with",
			`{"data": "${ .n < 100 }"}`)
		r.set(func() { r.secrets = []string{secret} })
		sendEvents(t, other, "order.paid", 0, 3)
		sendEvents(t, other, "order.paid", 100, 101)
		sendEvents(t, other, "other", 0, 1)
		platform.Eventually(t, soon, func() string { return r.lacks(t, map[string]int{"order.paid": 3}) })

		// Both secrets sign while the previous one is valid.
		rotated := victim.CLI(t, "webhook", "rotate-secret", "all")
		require.Equal(t, platform.ExitOK, rotated.Code, rotated.String())
		r.set(func() { r.secrets = append(r.secrets, strings.TrimSpace(rotated.Stdout)) })

		// The server is killed while the receiver has its requests.
		r.set(func() { r.hold = make(chan struct{}) })
		sendEvents(t, victim, "order.failed", 10, 16)
		platform.Eventually(t, soon, func() string {
			r.mu.Lock()
			defer r.mu.Unlock()
			if len(r.counts) < 4 {
				return "no requests"
			}
			return ""
		})
		victim.Kill()
		r.set(func() { r.release() })
		if other == victim {
			other = platform.StartServer(t, options)
		}
		// On a busy machine an event fails several times until then, and is attempted again after up to 80 seconds.
		platform.Eventually(t, 3*soon, func() string {
			lacks := r.lacks(t, map[string]int{"order.paid": 3, "order.failed": 6})
			if lacks == "" {
				return ""
			}
			return lacks + "\n" + other.CLI(t, "webhook", "deliveries", "all", "-o", "wide").Stdout
		})

		platform.Eventually(t, soon, func() string {
			for _, d := range deliveriesOf(t, other, "all") {
				if d.Status != "delivered" {
					return d.Status + " " + d.Reason
				}
			}
			return ""
		})
		all := deliveriesOf(t, other, "all")
		require.Len(t, all, 9, "one delivery per event")
		r.set(func() {
			for _, d := range all {
				require.Contains(t, r.types, d.ID)
			}
			r.counts = map[string]int{}
		})
		again := other.CLI(t, "webhook", "redeliver", all[0].ID, "--reason", "lost")
		require.Equal(t, platform.ExitOK, again.Code, again.String())
		platform.Eventually(t, soon, func() string {
			r.mu.Lock()
			defer r.mu.Unlock()
			if r.counts[all[0].ID] != 1 {
				return fmt.Sprint(r.counts)
			}
			return ""
		})
		shown := other.CLI(t, "webhook", "show", "all", "-o", "yaml")
		require.NotContains(t, shown.Stdout, "hidden")
		require.NotContains(t, shown.Stdout, "whsec_")
	})
}

func TestWebhookReceiversThatFail(t *testing.T) {
	t.Parallel()
	s := platform.StartServer(t,
		platform.ServerOptions{Temporal: noTemporal, Store: platform.SQLite(t), Roles: []string{platform.API}})
	r := newReceiver(t)
	requireOneLine(t, s.CLI(t, "webhook", "create", "Bad", "--url", r.URL, "--type", "*"), platform.ExitFailed,
		"webhook name")
	for url, want := range map[string]string{
		"ftp://example.com": "https or http", "http://10.0.0.1/": "not public",
		"http://[::ffff:169.254.169.254]/": "not public", "http:///x": "no host",
		"https://example.com/#x": "fragment", "": "not a URL",
	} {
		requireOneLine(t, s.CLI(t, "webhook", "create", "bad", "--url", url, "--type", "*"), platform.ExitFailed, want)
	}
	requireOneLine(t, s.CLI(t, "webhook", "create", "bad", "--url", r.URL, "--type", "*", "--with",
		`{"data": "${ .n < }"}`), platform.ExitFailed, "filter.with")
	requireOneLine(t, s.CLI(t, "webhook", "create", "bad", "--url", r.URL, "--type", "*", "--format", "pagerduty"),
		platform.ExitFailed, "integration key")

	createWebhook(t, s, "w", "--url", r.URL, "--type", "order.*")
	test := s.CLI(t, "webhook", "test", "w")
	require.Equal(t, platform.ExitOK, test.Code, test.String())
	r.set(func() { r.status = http.StatusFound })
	requireLast := func(result platform.Result, want string) {
		require.Equal(t, platform.ExitFailed, result.Code, result.String())
		require.Contains(t, result.Stderr, want)
	}
	requireLast(s.CLI(t, "webhook", "test", "w"), "redirects are not followed")

	// A receiver that answers 410 gets no more requests until the webhook is unpaused.
	r.set(func() { r.status = http.StatusGone })
	sendEvents(t, s, "order.paid", 0, 1)
	platform.Eventually(t, soon, func() string {
		if out := s.CLI(t, "webhook", "show", "w").Stdout; !strings.Contains(out, "410 Gone") ||
			!strings.Contains(out, "paused") {
			return out
		}
		return ""
	})
	requireOneLine(t, s.CLI(t, "webhook", "test", "w"), platform.ExitRefused, "paused")
	r.set(func() {
		r.status = http.StatusOK
		r.types = map[string]string{}
	})
	unpaused := s.CLI(t, "webhook", "unpause", "w")
	require.Equal(t, platform.ExitOK, unpaused.Code, unpaused.String())
	platform.Eventually(t, soon, func() string { return r.lacks(t, map[string]int{"order.paid": 1}) })
	audit := s.CLI(t, "audit", "list", "-o", "json").Stdout
	for _, action := range []string{"webhook.create", "webhook.disable", "webhook.unpause", "webhook.test"} {
		require.Contains(t, audit, action)
	}
	require.NotContains(t, audit, "whsec_")
	require.Equal(t, platform.ExitOK, s.CLI(t, "webhook", "delete", "w").Code)
	requireOneLine(t, s.CLI(t, "webhook", "show", "w"), platform.ExitNotFound, "webhook list")
}

func TestConnectionEventsArriveWhileTemporalIsDown(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, store platform.Store) {
		t.Parallel()
		temporal := platform.StartTemporal(t)
		options := platform.ServerOptions{Temporal: temporal.Address, Store: store}
		s := platform.StartServer(t, options)
		if store.Driver == "postgres" {
			platform.StartServer(t, options)
		}
		r := newReceiver(t)
		createWebhook(t, s, "connection", "--url", r.URL, "--type", "io.signalbox.connection.*")
		temporal.Kill()
		down := map[string]int{"io.signalbox.connection.down": 1}
		platform.Eventually(t, soon, func() string { return r.lacks(t, down) })
		temporal.Restart(t)
		down["io.signalbox.connection.up"] = 1
		platform.Eventually(t, soon, func() string { return r.lacks(t, down) })
		require.Len(t, deliveriesOf(t, s, "connection"), 2, "one pair of events for all servers")
	})
}

// Runs fail while servers are killed: each failure is one event, also for the receiver, and a workflow that failures
// start, and that fails itself, does not start again.
func TestFailedRunsAreReportedOnce(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, store platform.Store) {
		t.Parallel()
		const runs, failed = 20, "io.signalbox.run.failed"
		temporal := platform.StartTemporal(t)
		options := platform.ServerOptions{
			Temporal: temporal.Address, Store: store, Port: platform.FreePort(t),
			Env: []string{"SIGNALBOX_WEBHOOKS_TIMEOUT=2s", "SIGNALBOX_API_PUBLIC_URL=https://signalbox.example.com"},
		}
		s := platform.StartServer(t, options)
		raise := "  - reject:\n      raise:\n        error: {type: https://example.com/bad, status: 400, title: '${ \"card " +
			"\" + (.card // \"\") }'}\n"
		fails := s.Publish(t, platform.Document("fails", raise, "  metadata: {sensitive: [/input/card]}\n"))
		handler := s.Publish(t, platform.Document("handler", strings.Replace(raise, `.card // ""`, `""`, 1),
			"schedule: {on: {one: {with: {type: "+failed+"}}}}\n"))
		everything := s.Publish(t,
			platform.Document("everything", "  - same: {set: {n: 1}}\n", "schedule: {on: {any: []}}\n"))
		silent := s.Start(t, fails, `{"card":"4000-1234"}`).GetId()
		s.Await(t, silent, soon, "failed")
		// It is reported, because the handler names the type. What the handler's own failure reports starts nothing.
		platform.Eventually(t, soon, func() string { return lackingFailures(t, s, 1) })

		r := newReceiver(t)
		r.set(func() { r.hold = make(chan struct{}) })
		createWebhook(t, s, "failures", "--url", r.URL, "--type", "io.signalbox.run.*")
		var ids []string
		for range runs {
			ids = append(ids, s.Start(t, fails, `{"card":"4000-1234"}`).GetId())
		}
		platform.Eventually(t, soon, func() string {
			r.mu.Lock()
			defer r.mu.Unlock()
			if len(r.counts) == 0 {
				return "no requests"
			}
			return ""
		})
		s.Kill() // the receiver has a request, and other runs are ending
		r.set(func() { r.release() })
		s = platform.StartServer(t, options)
		for _, id := range ids {
			s.Await(t, id, 2*soon, "failed")
		}
		platform.Eventually(t, 3*soon, func() string { return lackingFailures(t, s, 1+runs) })
		platform.Eventually(t, 3*soon, func() string { return r.lacks(t, map[string]int{failed: 2 * runs}) })
		require.Len(t, deliveriesOf(t, s, "failures"), 2*runs)
		require.Len(t, s.AllRuns(t, handler, 100), 1+runs, "one for each run that failed by itself")
		for _, other := range s.AllRuns(t, everything, 100) {
			require.NotContains(t, s.Run(t, other.GetId()).GetInput().GetJson(), failed,
				"a trigger without a type does not receive failures")
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, id := range ids {
			require.Contains(t, r.bodies[id], `"url":"https://signalbox.example.com/runs/`+id+`"`)
			require.NotContains(t, r.bodies[id], "afterfailure")
			require.NotContains(t, r.bodies[id], "4000-1234", "sensitive values are not sent")
		}
		for _, h := range s.AllRuns(t, handler, 100) {
			if body, there := r.bodies[h.GetId()]; there {
				require.Contains(t, body, `"afterfailure":true`)
			}
		}
	})
}

// lackingFailures reports what is missing until each of n failed runs, and each of the n handlers that these have
// started, is reported by one event: those of the former are routed to the handlers, those of the latter match nothing.
func lackingFailures(t *testing.T, s *platform.Server, n int) string {
	t.Helper()
	var list []struct{ Status, Reason, Subject string }
	s.CLI(t, "event", "list", "--type", "io.signalbox.run.failed", "--limit", "0", "-o", "json").JSON(t, &list)
	statuses, subjects := map[string]int{}, map[string]bool{}
	for _, e := range list {
		statuses[e.Status]++
		subjects[e.Subject] = true
		if e.Status == "unmatched" {
			require.Contains(t, e.Reason, "starts no workflow")
		}
	}
	require.Len(t, subjects, len(list), "a failure is reported twice")
	if statuses["routed"] < n || statuses["unmatched"] < n {
		return fmt.Sprint(statuses)
	}
	require.Equal(t, map[string]int{"routed": n, "unmatched": n}, statuses)
	return ""
}
