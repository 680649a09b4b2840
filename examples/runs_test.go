package examples_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/interp"
	"github.com/signalbox-dev/signalbox/dsl/jq"
	"github.com/signalbox-dev/signalbox/examples/services"
	"github.com/signalbox-dev/signalbox/internal/sandbox/javascript"
	"github.com/signalbox-dev/signalbox/internal/sandbox/limit"
	"github.com/signalbox-dev/signalbox/internal/sandbox/output"
	"github.com/signalbox-dev/signalbox/internal/sandbox/process"
)

// TestRuns interprets every example against the simulated services, with the inputs in its comments, and compares the
// results.
func TestRuns(t *testing.T) {
	t.Parallel()
	tests := []struct {
		example, input string
		events         []string // that arrive while it listens
		emits          []string // types of the events that it emits
		output         string   // of a completed run, or
		problem        string   // type of a failed one's error
		calls          []string // that must have been made, in this order where the order matters
	}{
		{example: "hello", input: `null`, output: `{"greeting": "Hello, world!"}`},
		{example: "hello", input: `{"name": "Ada"}`, output: `{"greeting": "Hello, Ada!"}`},
		{example: "hello", input: `{"nam": "Ada"}`, problem: dsl.ErrorTypeValidation},
		{
			example: "order", input: `{"id": "o-1", "sku": "lamp", "quantity": 2, "amount": 59.8}`,
			output: `{"order": "o-1", "status": "shipped", "payment": "payment-o-1", "shipment": "shipment-o-1"}`,
			calls:  []string{"POST /reservations", "POST /payments", "POST /payments", "POST /payments", "POST /shipments"},
		},
		{
			example: "order", input: `{"id": "o-2", "sku": "lamp", "quantity": 2, "amount": 59.8, "card": "declined"}`,
			output: `{"order": "o-2", "status": "rejected", "reason": "the card was declined"}`,
			calls:  []string{"POST /reservations", "POST /payments", "DELETE /reservations/reservation-lamp"},
		},
		{
			example: "order", input: `{"id": "o-3", "sku": "lamp", "quantity": 2, "amount": 59.8, "country": "XX"}`,
			output: `{"order": "o-3", "status": "rejected", "reason": "nothing is shipped to this country"}`,
			calls: []string{
				"POST /reservations", "POST /payments", "POST /payments", "POST /payments", "POST /shipments",
				"DELETE /payments/payment-o-3", "DELETE /reservations/reservation-lamp",
			},
		},
		{example: "order", input: `{"id": "o-4", "sku": "sold-out", "quantity": 1, "amount": 1}`,
			problem: dsl.ErrorTypeCommunication},
		{
			example: "price-list", input: `{"skus": ["lamp", "desk"]}`,
			output: `{"prices": [{"position": 1, "sku": "lamp", "price": 29.9}, {"position": 2, "sku": "desk", "price": 249}], "total": 278.9}`,
			calls:  []string{"GET /products/lamp", "GET /products/desk"},
		},
		{
			example: "reorder", input: `{"below": 5}`, output: `{"ordered": [{"id": "order-lamp", "sku": "lamp", "quantity": 8}]}`,
			calls: []string{"GET /stock", "POST /suppliers/s-1/orders"},
		},
		{example: "price-list", input: `{"skus": []}`, output: `{"prices": [], "total": 0}`},
		{
			example: "invoice",
			input:   `{"customer": "c-7", "lines": [{"sku": "lamp", "count": 2, "price": 29.9}, {"sku": "desk", "count": 1, "price": 249}]}`,
			output:  `{"customer": "c-7", "total": 308.8, "text": "2 × lamp     59.80\n1 × desk    249.00"}`,
		},
		{
			example: "statistics", input: `{"values": [4, 8, 15, 16, 23, 42], "digits": 2}`,
			output: `{"count": 6, "mean": 18, "median": 15.5, "deviation": 13.49}`,
		},
		{example: "statistics", input: `{"values": [1]}`, problem: dsl.ErrorTypeValidation},
		{example: "race", input: `{"slow": "north", "slowBy": 60000}`, output: `{"provider": "south", "rate": 10.94}`},
		{example: "race", input: `{"slow": "south", "slowBy": 60000}`, output: `{"provider": "north", "rate": 10.91}`},
		{example: "enrich", input: `{"customer": "c-7"}`,
			output: `{"id": "c-7", "name": "Customer c-7", "credit": {"score": 640, "known": true}}`},
		{example: "enrich", input: `{"customer": "c-0"}`,
			output: `{"id": "c-0", "name": "Customer c-0", "credit": {"score": null, "known": false}}`},
		{example: "poll", input: `{"polls": 3}`, output: `{"job": "job-1", "result": "done after 3 polls", "polls": 3}`},
		{example: "poll", input: `{"polls": 20}`, problem: "https://signalbox.dev/examples/not-ready"},
		{
			example: "clean-up", input: `{"olderThanDays": 30}`,
			output: `{"deleted": ["a.log", "c.log"], "failed": [{"file": "b.log", "status": 423}]}`,
		},
		{
			example: "clean-up", input: `{"stopAfter": 1}`,
			output: `{"deleted": ["a.log"], "failed": [{"file": "b.log", "status": 423}]}`,
			calls:  []string{"GET /files", "DELETE /files/a.log", "DELETE /files/b.log"},
		},
		{example: "scoring", input: `{"income": 42000, "debt": 6000, "years": 4}`,
			output: `{"decision": "approved", "score": 86, "limit": 16800}`},
		{example: "scoring", input: `{"income": 1000, "debt": 500, "years": 6}`,
			output: `{"decision": "review", "score": 60}`},
		{example: "scoring", input: `{"income": 1000, "debt": 900, "years": 1}`,
			output: `{"decision": "declined", "score": 10}`},
		{example: "scoring", input: `{"income": 1000, "debt": 20000, "years": 1}`,
			problem: "https://signalbox.dev/examples/implausible"},
		{
			example: "trip", input: `{"traveller": "Ada", "parts": ["flight", "hotel"]}`,
			output: `{"traveller": "Ada", "bookings": ["flight-1", "hotel-2"]}`,
		},
		{
			example: "trip", input: `{"traveller": "Ada", "parts": ["flight", "hotel", "moon"]}`,
			problem: "https://signalbox.dev/examples/not-bookable",
			calls: []string{
				"POST /bookings/flight", "POST /bookings/hotel", "POST /bookings/moon",
				"DELETE /bookings/hotel-2", "DELETE /bookings/flight-1",
			},
		},
		{
			example: "nightly-report", input: `{"day": "2026-11-20"}`,
			output: `{"report": "report-2026-11-20", "total": 3300, "missing": ["south"]}`,
		},
		{
			example: "paid-order", input: `[{"type": "com.example.order.placed", "data": {"order": "o-1", "amount": 59.8}}]`,
			events: []string{
				`{"type": "com.example.payment.received", "data": {"order": "o-2", "amount": 1}}`,
				`{"type": "com.example.payment.received", "data": {"order": "o-1", "amount": 59.8}}`,
			},
			output: `{"order": "o-1", "status": "paid", "paid": 59.8}`, emits: []string{"com.example.order.paid"},
		},
		{
			example: "paid-order", input: `[{"type": "com.example.order.placed", "data": {"order": "o-3", "amount": 59.8}}]`,
			output: `{"order": "o-3", "status": "expired"}`, emits: []string{"com.example.order.expired"},
		},
		{
			example: "approval", input: `{"request": "r-7", "amount": 1200}`,
			events: []string{
				`{"type": "com.example.approval.granted", "data": {"request": "r-7", "by": "Bob", "level": 1}}`,
				`{"type": "com.example.approval.granted", "data": {"request": "r-8", "by": "Eve", "level": 2}}`,
				`{"type": "com.example.approval.granted", "data": {"request": "r-7", "by": "Ada", "level": 2}}`,
			},
			output: `{"request": "r-7", "decision": "granted", "by": "Ada"}`, emits: []string{"com.example.approval.wanted"},
		},
		{
			example: "approval", input: `{"request": "r-9", "amount": 5}`,
			events: []string{`{"type": "com.example.approval.refused", "data": {"request": "r-9", "by": "Bob"}}`},
			output: `{"request": "r-9", "decision": "refused", "by": "Bob"}`, emits: []string{"com.example.approval.wanted"},
		},
		{
			example: "votes", input: `{"poll": "lunch"}`,
			events: []string{
				`{"type": "com.example.vote", "data": {"poll": "lunch", "for": "soup"}}`,
				`{"type": "com.example.vote", "data": {"poll": "dinner", "for": "fish"}}`,
				`{"type": "com.example.poll.closed", "data": {"poll": "dinner"}}`,
				`{"type": "com.example.vote", "data": {"poll": "lunch", "for": "salad"}}`,
				`{"type": "com.example.vote", "data": {"poll": "lunch", "for": "soup"}}`,
				`{"type": "com.example.poll.closed", "data": {"poll": "lunch"}}`,
			},
			output: `{"poll": "lunch", "votes": 3, "winner": "soup"}`,
		},
	}
	ran := map[string]bool{}
	for _, tt := range tests {
		ran[tt.example] = true
		t.Run(tt.example+" "+tt.input, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath("bwrap"); err != nil && tt.example == "statistics" {
				t.Skip("bubblewrap is not installed; on Debian: apt-get install bubblewrap")
			}
			service := services.New()
			server := httptest.NewServer(service)
			t.Cleanup(server.Close)
			document := parse(t, filepath.Join("workflows", tt.example+".yaml"))
			outcome, emitted := run(t, server.Client().Transport, document, withBase(t, tt.input, server.URL, tt.example),
				tt.events...)
			require.Equal(t, tt.emits, emitted)
			if tt.problem != "" {
				require.Equal(t, interp.StatusFailed, outcome.Status)
				require.Equal(t, tt.problem, outcome.Error.Type)
			} else {
				require.Nil(t, outcome.Error)
				output, err := jq.EncodeJSON(outcome.Output)
				require.NoError(t, err)
				require.JSONEq(t, tt.output, string(output))
			}
			if tt.calls != nil {
				require.Equal(t, tt.calls, service.Calls())
			}
		})
	}
	for _, path := range files(t) {
		name := filepath.Base(path[:len(path)-len(".yaml")])
		require.True(t, ran[name], "the example %q has no test case", name)
	}
}

// withBase sets the address of the simulated services in the input of an example that calls them.
func withBase(t *testing.T, input, base, example string) any {
	t.Helper()
	value, err := jq.DecodeJSON([]byte(input))
	require.NoError(t, err)
	source, err := os.ReadFile(filepath.Join("workflows", example+".yaml"))
	require.NoError(t, err)
	if object, ok := value.(map[string]any); ok && strings.Contains(string(source), "base:") {
		object["base"] = base
	}
	return value
}

// world executes a machine's effects: real HTTP calls, and timers by a clock that advances to the next timer when
// nothing else is pending.
type world struct {
	http    http.RoundTripper
	now     time.Time
	timers  map[interp.EffectID]time.Time
	calls   map[interp.EffectID]context.CancelFunc
	results chan result

	events    []any // that have not arrived yet
	position  int64
	listeners map[string]bool
	emitted   []string
}

type result struct {
	id     interp.EffectID
	result interp.Result
}

// run runs a document to its end. It returns the outcome and the types of the emitted events.
func run(t *testing.T, transport http.RoundTripper, document *dsl.Document, input any,
	events ...string) (interp.Outcome, []string) {
	t.Helper()
	w := &world{
		http:    transport,
		now:     time.Date(2026, 11, 20, 3, 0, 0, 0, time.UTC),
		timers:  map[interp.EffectID]time.Time{},
		calls:   map[interp.EffectID]context.CancelFunc{},
		results: make(chan result, 100), listeners: map[string]bool{},
	}
	for _, text := range events {
		event, err := jq.DecodeJSON([]byte(text))
		require.NoError(t, err)
		w.events = append(w.events, event)
	}
	machine := interp.New(document, interp.Start{RunID: "run-1", Input: input, At: w.now}, interp.DefaultLimits())
	for range 10_000 {
		atOnce := w.perform(t.Context(), machine, machine.Advance(w.now))
		if outcome, done := machine.Done(); done {
			require.Empty(t, w.events, "events without a listener")
			return outcome, w.emitted
		}
		if !atOnce && !machine.Yielded() {
			w.wait(t, machine)
		}
	}
	t.Fatal("the run does not end")
	return interp.Outcome{}, nil
}

// perform starts effects, and reports whether one of them was completed at once.
func (w *world) perform(ctx context.Context, machine *interp.Machine, effects []interp.Effect) (atOnce bool) {
	for _, effect := range effects {
		switch e := effect.(type) {
		case interp.StartTimer:
			w.timers[e.ID] = e.Deadline
		case interp.CancelTimer:
			delete(w.timers, e.ID)
		case interp.Call:
			callCtx, cancel := context.WithCancel(ctx)
			w.calls[e.ID] = cancel
			go func() { w.results <- result{e.ID, w.exchange(callCtx, e.HTTP)} }()
		case interp.CancelCall:
			w.calls[e.ID]()
			delete(w.calls, e.ID)
		case interp.Listen:
			w.listeners[e.Listener] = true
			machine.Complete(e.ID, interp.Result{}, w.now)
			atOnce = true
		case interp.Unlisten:
			delete(w.listeners, e.Listener)
		case interp.RunProgram:
			machine.Complete(e.ID, w.program(ctx, e.Program), w.now)
			atOnce = true
		case interp.Emit:
			w.emitted = append(w.emitted, fmt.Sprint(e.Event["type"]))
			machine.Complete(e.ID, interp.Result{}, w.now)
			atOnce = true
		}
	}
	return atOnce
}

// wait processes the next input: an answer while calls are pending, otherwise the next event, otherwise the earliest
// timer.
func (w *world) wait(t *testing.T, machine *interp.Machine) {
	t.Helper()
	if len(w.calls) > 0 {
		r := <-w.results
		if cancel, open := w.calls[r.id]; open {
			cancel()
			delete(w.calls, r.id)
			machine.Complete(r.id, r.result, w.now)
		}
		return
	}
	if len(w.listeners) > 0 && len(w.events) > 0 {
		w.position++
		for listener := range w.listeners {
			machine.Deliver(listener, w.position, w.events[0], w.now)
		}
		w.events = w.events[1:]
		return
	}
	require.NotEmpty(t, w.timers, "the machine waits for nothing")
	var first interp.EffectID
	for id, deadline := range w.timers {
		if first == 0 || deadline.Before(w.timers[first]) {
			first = id
		}
	}
	w.now = w.timers[first]
	delete(w.timers, first)
	machine.Fire(first, w.now)
}

// program executes a script.
func (w *world) program(ctx context.Context, p *interp.Program) interp.Result {
	failed := func(err error) interp.Result {
		return interp.Result{Error: &dsl.Error{Type: dsl.ErrorTypeRuntime, Status: 500, Title: err.Error()}}
	}
	if p.Language == dsl.Python {
		return w.python(ctx, p)
	}
	engine, err := javascript.New(ctx, javascript.Options{Memory: 16 << 20})
	if err != nil {
		return failed(err)
	}
	defer func() { _ = engine.Close(ctx) }()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	printed := output.New(1<<16, cancel)
	code, err := engine.Run(ctx, javascript.Program{
		Code: p.Code, Arguments: p.Arguments, Environment: p.Environment, Stdin: p.Stdin,
		Output: printed, Time: time.Minute,
	})
	if err != nil {
		return failed(err)
	}
	stdout, stderr := printed.Text()
	return interp.Result{Value: interp.ProgramResult{Code: code, Stdout: stdout, Stderr: stderr}}
}

// python executes a script in Python.
func (w *world) python(ctx context.Context, p *interp.Program) interp.Result {
	failed := func(err error) interp.Result {
		return interp.Result{Error: &dsl.Error{Type: dsl.ErrorTypeRuntime, Status: 500, Title: err.Error()}}
	}
	host, err := process.New(ctx, process.Options{
		Isolation: process.Bubblewrap, Limits: limit.Limits{
			Memory: 256 << 20, Processes: 16, Processors: 1, Disk: 1 << 20, Network: limit.None},
	})
	if err != nil {
		return failed(err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	printed := output.New(1<<16, cancel)
	code, err := host.Run(ctx, process.Program{
		Command: append([]string{"python3", "-c", p.Code}, p.Arguments...), Environment: p.Environment, Stdin: p.Stdin,
		Output: printed,
	})
	if err != nil {
		return failed(err)
	}
	stdout, stderr := printed.Text()
	return interp.Result{Value: interp.ProgramResult{Code: code, Stdout: stdout, Stderr: stderr}}
}

// exchange makes a minimal HTTP call: JSON in, JSON out; a status other than 2xx is a communication error.
func (w *world) exchange(ctx context.Context, r *interp.HTTPRequest) interp.Result {
	failed := func(status int, title string) interp.Result {
		return interp.Result{Error: &dsl.Error{Type: dsl.ErrorTypeCommunication, Status: status, Title: title}}
	}
	var body []byte
	if r.HasBody {
		var err error
		if body, err = jq.EncodeJSON(r.Body); err != nil {
			return failed(0, err.Error())
		}
	}
	query := url.Values{}
	for name, value := range r.Query {
		query.Set(name, value)
	}
	request, err := http.NewRequestWithContext(ctx, r.Method, r.URL+"?"+query.Encode(), bytes.NewReader(body))
	if err != nil {
		return failed(0, err.Error())
	}
	response, err := w.http.RoundTrip(request)
	if err != nil {
		return failed(0, err.Error())
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return failed(0, err.Error())
	}
	if response.StatusCode >= http.StatusMultipleChoices {
		var problem struct {
			Title string `json:"title"`
		}
		if err := json.Unmarshal(text, &problem); err != nil {
			return failed(response.StatusCode, err.Error())
		}
		return failed(response.StatusCode, problem.Title)
	}
	if len(text) == 0 {
		return interp.Result{}
	}
	value, err := jq.DecodeJSON(text)
	if err != nil {
		return failed(0, err.Error())
	}
	return interp.Result{Value: value}
}
