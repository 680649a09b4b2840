// Package examples_test runs every file of examples/workflows on the real platform, against the simulated services
// they call, and compares the results: output or problem, the calls made, the steps recorded.
package examples_test

import (
	"encoding/json"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/examples/services"
	"github.com/signalbox-dev/signalbox/test/platform"
)

const (
	folder = "../../examples/workflows"
	limit  = platform.Patience
)

var dev *platform.Shared[*platform.Server]

func TestMain(m *testing.M) {
	os.Exit(platform.Main(m, func(s *platform.Suite) {
		dev = platform.Share(s, func(t platform.T) *platform.Server {
			server := platform.StartDev(t)
			for _, path := range files(t) {
				if published := server.CLI(t, "workflow", "publish", path); published.Code != 0 {
					t.Fatalf("publish an example: %s", published.Stderr)
				}
			}
			return server
		})
	}))
}

// example is one run of one file. Its input gets the address of the simulated services as base.
type example struct {
	file, input string
	output      string   // of a completed run, or
	problem     string   // the error type of a failed one
	calls       []string // in order, where the order matters
	events      []event  // sent while the run waits for them
}

type event struct{ kind, data string }

// send sends an event as the examples' comments describe.
func (e event) send(t *testing.T, s *platform.Server) {
	t.Helper()
	sent := s.CLI(t, "event", "send", "--type", e.kind, "--source", "/examples", "--data", e.data)
	require.Zero(t, sent.Code, sent.Stderr)
}

func cases() []example {
	return []example{
		{
			file: "hello", input: `{"name": "Ada"}`, output: `{"greeting": "Hello, Ada!"}`,
		},
		{
			file: "order", input: `{"id": "o-1", "sku": "lamp", "quantity": 2, "amount": 59.8}`,
			output: `{"order": "o-1", "status": "shipped", "payment": "payment-o-1", "shipment": "shipment-o-1"}`,
			calls:  []string{"POST /reservations", "POST /payments", "POST /payments", "POST /payments", "POST /shipments"},
		},
		{
			file: "order", input: `{"id": "o-3", "sku": "lamp", "quantity": 2, "amount": 59.8, "country": "XX"}`,
			output: `{"order": "o-3", "status": "rejected", "reason": "nothing is shipped to this country"}`,
			calls: []string{
				"POST /reservations", "POST /payments", "POST /payments", "POST /payments", "POST /shipments",
				"DELETE /payments/payment-o-3", "DELETE /reservations/reservation-lamp",
			},
		},
		{
			file: "order", input: `{"id": "o-4", "sku": "sold-out", "quantity": 1, "amount": 1}`,
			problem: dsl.ErrorTypeCommunication,
		},
		{
			file: "price-list", input: `{"skus": ["lamp", "desk"]}`,
			output: `{"prices": [{"position": 1, "sku": "lamp", "price": 29.9}, {"position": 2, "sku": "desk", "price": 249}], "total": 278.9}`,
			calls:  []string{"GET /products/lamp", "GET /products/desk"},
		},
		{
			file: "reorder", input: `{"below": 5}`, output: `{"ordered": [{"id": "order-lamp", "sku": "lamp", "quantity": 8}]}`,
			calls: []string{"GET /stock", "POST /suppliers/s-1/orders"},
		},
		{
			file: "invoice", input: `{"customer": "c-7", "lines": [{"sku": "lamp", "count": 2, "price": 29.9}]}`,
			output: `{"customer": "c-7", "total": 59.8, "text": "2 × lamp     59.80"}`,
		},
		{
			file: "statistics", input: `{"values": [4, 8, 15, 16, 23, 42], "digits": 2}`,
			output: `{"count": 6, "mean": 18, "median": 15.5, "deviation": 13.49}`,
		},
		{
			file: "race", input: `{"slow": "north", "slowBy": 60000}`, output: `{"provider": "south", "rate": 10.94}`,
		},
		{
			file: "enrich", input: `{"customer": "c-7"}`,
			output: `{"id": "c-7", "name": "Customer c-7", "credit": {"score": 640, "known": true}}`,
		},
		{
			file: "enrich", input: `{"customer": "c-0"}`,
			output: `{"id": "c-0", "name": "Customer c-0", "credit": {"score": null, "known": false}}`,
		},
		{
			file: "poll", input: `{"polls": 3}`, output: `{"job": "job-1", "result": "done after 3 polls", "polls": 3}`,
		},
		{
			file: "clean-up", input: `{"olderThanDays": 30}`,
			output: `{"deleted": ["a.log", "c.log"], "failed": [{"file": "b.log", "status": 423}]}`,
		},
		{
			file: "scoring", input: `{"income": 42000, "debt": 6000, "years": 4}`,
			output: `{"decision": "approved", "score": 86, "limit": 16800}`,
		},
		{
			file: "scoring", input: `{"income": 1000, "debt": 20000, "years": 1}`,
			problem: "https://signalbox.dev/examples/implausible",
		},
		{
			file: "trip", input: `{"traveller": "Ada", "parts": ["flight", "hotel", "moon"]}`,
			problem: "https://signalbox.dev/examples/not-bookable",
			calls: []string{
				"POST /bookings/flight", "POST /bookings/hotel", "POST /bookings/moon",
				"DELETE /bookings/hotel-2", "DELETE /bookings/flight-1",
			},
		},
		{
			file: "nightly-report", input: `{"day": "2026-11-20"}`,
			output: `{"report": "report-2026-11-20", "total": 3300, "missing": ["south"]}`,
		},
		{
			file: "approval", input: `{"request": "r-7", "amount": 1200}`,
			output: `{"request": "r-7", "decision": "granted", "by": "Ada"}`,
			events: []event{
				{"com.example.approval.granted", `{"request": "r-7", "by": "Bob", "level": 1}`},
				{"com.example.approval.granted", `{"request": "r-8", "by": "Eve", "level": 2}`},
				{"com.example.approval.granted", `{"request": "r-7", "by": "Ada", "level": 2}`},
			},
		},
		{
			file: "votes", input: `{"poll": "lunch"}`, output: `{"poll": "lunch", "votes": 3, "winner": "soup"}`,
			events: []event{
				{"com.example.vote", `{"poll": "lunch", "for": "soup"}`},
				{"com.example.vote", `{"poll": "dinner", "for": "fish"}`},
				{"com.example.poll.closed", `{"poll": "dinner"}`},
				{"com.example.vote", `{"poll": "lunch", "for": "salad"}`},
				{"com.example.vote", `{"poll": "lunch", "for": "soup"}`},
				{"com.example.poll.closed", `{"poll": "lunch"}`},
			},
		},
	}
}

func TestExamples(t *testing.T) {
	t.Parallel()
	for _, e := range cases() {
		t.Run(e.file+" "+e.input, func(t *testing.T) {
			t.Parallel()
			service := services.New()
			server := httptest.NewServer(service)
			t.Cleanup(server.Close)
			if _, err := exec.LookPath("bwrap"); err != nil && e.file == "statistics" {
				t.Skip("bubblewrap is not installed; on Debian: apt-get install bubblewrap")
			}
			s := dev.Get(t)
			id := s.Start(t, e.file, withBase(t, e, server.URL)).GetId()
			if len(e.events) > 0 {
				require.Equal(t, "event", s.Await(t, id, limit, "waiting").GetWaitingKind())
			}
			for _, event := range e.events {
				event.send(t, s)
			}

			if e.problem != "" {
				run := s.Await(t, id, limit, "failed")
				require.Equal(t, e.problem, run.GetError().GetType())
				require.NotEmpty(t, run.GetError().GetInstance())
			} else {
				require.JSONEq(t, e.output, s.Await(t, id, limit, "completed").GetOutput().GetJson())
			}
			if e.calls != nil {
				require.Equal(t, e.calls, service.Calls())
			}
			steps := platform.Statuses(s.Steps(t, id))
			require.NotEmpty(t, steps)
			for _, status := range steps {
				// A run that has ended has no open steps.
				require.False(t, strings.HasSuffix(status, ":running") || strings.HasSuffix(status, ":waiting"), status)
			}
		})
	}
}

// The test sends the shop's and the bank's events of paid-order, which is never started by hand.
func TestEventStartsPaidOrder(t *testing.T) {
	t.Parallel()
	s := dev.Get(t)
	event{"com.example.order.placed", `{"order": "o-1", "amount": 59.8}`}.send(t, s)
	var id string
	require.Eventually(t, func() bool {
		for _, r := range s.AllRuns(t, "paid-order", 10) {
			id = r.GetId()
		}
		return id != ""
	}, limit, 50*time.Millisecond)
	require.Equal(t, "event", s.Await(t, id, limit, "waiting").GetWaitingKind())
	event{"com.example.payment.received", `{"order": "o-2", "amount": 1}`}.send(t, s)
	event{"com.example.payment.received", `{"order": "o-1", "amount": 59.8}`}.send(t, s)
	require.JSONEq(t, `{"order": "o-1", "status": "paid", "paid": 59.8}`,
		s.Await(t, id, limit, "completed").GetOutput().GetJson())
	listed := s.CLI(t, "event", "list", "--type", "com.example.order.paid", "-o", "json")
	require.Zero(t, listed.Code, listed.Stderr)
	require.Contains(t, listed.Stdout, "/projects/default/workflows/examples/paid-order/runs/"+id)
	require.Len(t, s.AllRuns(t, "paid-order", 10), 1, "one run for one order")
}

func TestEveryExampleFileHasACase(t *testing.T) {
	t.Parallel()
	require.NotEmpty(t, files(t))
	for _, path := range files(t) {
		name := strings.TrimSuffix(filepath.Base(path), ".yaml")
		started := name == "paid-order" || slices.ContainsFunc(cases(), func(e example) bool { return e.file == name })
		require.True(t, started, "%s is not run", name)
	}
}

// withBase sets the address of the simulated services in the input of an example that calls them.
func withBase(t *testing.T, e example, base string) string {
	t.Helper()
	if slices.Contains([]string{"hello", "scoring", "approval", "votes", "invoice", "statistics"}, e.file) {
		return e.input // these make no calls
	}
	var input map[string]any
	require.NoError(t, json.Unmarshal([]byte(e.input), &input))
	input["base"] = base
	out, err := json.Marshal(input)
	require.NoError(t, err)
	return string(out)
}

// files lists the examples.
func files(t platform.T) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil {
		t.Fatalf("list the examples: %v", err)
	}
	return slices.DeleteFunc(paths, func(path string) bool { return strings.Count(filepath.Base(path), ".") > 1 })
}

// An answer that arrives before its listen task is not lost: the responder answers at once, in one workflow task of its
// own.
func TestAnswersComeAtOnce(t *testing.T) {
	t.Parallel()
	const runs = 20
	s := dev.Get(t)
	s.Publish(t, `document: {dsl: '1.0.3', namespace: early, name: responder, version: '1.0.0'}
schedule: {on: {one: {with: {type: test.early.wanted}}}}
do:
  - answer: {emit: {event: {with: {type: test.early.granted, source: 'https://example.com/desk', data: '${ {of: $workflow.input[0].data.of} }'}}}}
`)
	asker := s.Publish(t, `document: {dsl: '1.0.3', namespace: early, name: asker, version: '1.0.0'}
do:
  - ask: {emit: {event: {with: {type: test.early.wanted, source: 'https://example.com/asker', data: '${ {of: $workflow.id} }'}}}}
  - between: {switch: [{call: {when: .data.of != null, then: pause}}]}
  - pause: {wait: {milliseconds: 300}}
  - answer: {listen: {to: {one: {with: {type: test.early.granted}, correlate: {of: {from: .data.of, expect: '${ $workflow.id }'}}}}}}
`)
	ids := make([]string, runs)
	for i := range ids {
		ids[i] = s.Start(t, asker, `{}`).GetId()
	}
	for _, id := range ids {
		require.JSONEq(t, `[{"of": "`+id+`"}]`, s.Await(t, id, limit, "completed").GetOutput().GetJson())
	}
}
