// Package origin is a substitute for services that workflows call: an HTTP server on loopback that records every
// request and returns the configured answer, or holds it back until the test releases it.
//
//	o := origin.New(t)
//	o.Answer("POST /orders", 201, `{"id":1}`)
//	gate := o.Hold("POST /charge", 200, `{}`)
//	… <-gate.Arrived … gate.Open()
package origin

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync"

	"github.com/signalbox-dev/signalbox/test/platform"
)

// Call is one request that arrived.
type Call struct {
	Method, Path, Query, Body string
	IdempotencyKey            string
	Header                    http.Header
}

// Answer is a response. A JSON body is announced as JSON.
type Answer struct {
	Status int
	Body   string
	Type   string // application/json when empty
}

// Origin is a substitute service. It is safe for concurrent use.
type Origin struct {
	URL string

	done   chan struct{} // closed when the test is over
	mu     sync.Mutex
	calls  []Call
	routes map[string]func(Call) Answer
}

// New starts a server that ends with t. Routes without an answer return 404.
func New(t platform.T) *Origin {
	t.Helper()
	o := &Origin{done: make(chan struct{}), routes: map[string]func(Call) Answer{}}
	server := httptest.NewServer(http.HandlerFunc(o.serve))
	o.URL = server.URL
	t.Cleanup(func() {
		close(o.done) // held answers would block Close
		server.CloseClientConnections()
		server.Close()
	})
	return o
}

// Handle answers a route, such as "GET /pets", with a function.
func (o *Origin) Handle(route string, f func(Call) Answer) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.routes[route] = f
}

// Answer sets the answer of a route.
func (o *Origin) Answer(route string, status int, body string) {
	o.Handle(route, func(Call) Answer { return Answer{Status: status, Body: body} })
}

// Sequence answers a route with one answer after the other, and repeats the last one.
func (o *Origin) Sequence(route string, answers ...Answer) {
	var mu sync.Mutex
	next := 0
	o.Handle(route, func(Call) Answer {
		mu.Lock()
		defer mu.Unlock()
		a := answers[min(next, len(answers)-1)]
		next++
		return a
	})
}

// Gate holds answers back.
type Gate struct {
	// Arrived receives one value per waiting request, up to its capacity.
	Arrived chan struct{}
	open    chan struct{}
	once    sync.Once
}

// Open releases all answers, now and later.
func (g *Gate) Open() { g.once.Do(func() { close(g.open) }) }

// Hold answers a route, but only once its gate is open.
func (o *Origin) Hold(route string, status int, body string) *Gate {
	g := &Gate{Arrived: make(chan struct{}, 100), open: make(chan struct{})}
	o.Handle(route, func(Call) Answer {
		select {
		case g.Arrived <- struct{}{}:
		default:
		}
		select {
		case <-g.open:
		case <-o.done:
		}
		return Answer{Status: status, Body: body}
	})
	return g
}

// Calls returns the requests of a route so far; all requests for "".
func (o *Origin) Calls(route string) []Call {
	o.mu.Lock()
	defer o.mu.Unlock()
	var out []Call
	for _, c := range o.calls {
		if route == "" || c.Method+" "+c.Path == route {
			out = append(out, c)
		}
	}
	return out
}

func (o *Origin) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the caller has disconnected
	}
	call := Call{
		Method: r.Method, Path: r.URL.Path, Query: r.URL.RawQuery, Body: string(body),
		IdempotencyKey: r.Header.Get("Idempotency-Key"), Header: r.Header,
	}
	o.mu.Lock()
	o.calls = append(o.calls, call)
	answer := o.routes[r.Method+" "+r.URL.Path]
	o.mu.Unlock()
	if answer == nil {
		http.NotFound(w, r)
		return
	}
	a := answer(call)
	if a.Type == "" {
		a.Type = "application/json"
	}
	w.Header().Set("Content-Type", a.Type)
	w.WriteHeader(a.Status)
	_, _ = io.WriteString(w, a.Body) // the caller may have disconnected
}
