// Package services simulates the HTTP services that the example workflows call: a shop, customers, exchange rates,
// jobs, files, bookings, sales. It needs no network beyond loopback, its answers are deterministic, and it records its
// calls, so that a test can check which calls a workflow made.
//
//	server := httptest.NewServer(services.New())
//
// Run it with `go run ./examples/services/serve`. It keeps its state in memory and has no authentication: it is for
// examples and tests only.
package services

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// Service simulates all services. It is an http.Handler, safe for concurrent use.
type Service struct {
	routes *http.ServeMux

	mu       sync.Mutex
	calls    []string
	payments map[string]int // tries per order
	jobs     map[string]*job
	bookings int
}

type job struct{ polls, needed int }

// New returns a service without calls.
func New() *Service {
	s := &Service{routes: http.NewServeMux(), payments: map[string]int{}, jobs: map[string]*job{}}
	s.shop()
	s.otherRoutes()
	return s
}

// ServeHTTP answers and records one call.
func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.calls = append(s.calls, r.Method+" "+r.URL.Path)
	s.mu.Unlock()
	s.routes.ServeHTTP(w, r)
}

// Calls returns the calls so far, in order, as "METHOD /path".
func (s *Service) Calls() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.calls...)
}

// shop registers the routes of the workflows order, price-list and reorder.
func (s *Service) shop() {
	s.routes.HandleFunc("POST /reservations", func(w http.ResponseWriter, r *http.Request) {
		body := read(r)
		if body["sku"] == "sold-out" {
			refuse(w, http.StatusConflict, "the item is sold out")
			return
		}
		answer(w, http.StatusCreated, map[string]any{"id": fmt.Sprintf("reservation-%v", body["sku"])})
	})
	s.routes.HandleFunc("DELETE /reservations/{id}", noContent)
	s.routes.HandleFunc("POST /payments", s.pay)
	s.routes.HandleFunc("DELETE /payments/{id}", noContent)
	s.routes.HandleFunc("POST /shipments", func(w http.ResponseWriter, r *http.Request) {
		body := read(r)
		if body["country"] == "XX" {
			refuse(w, http.StatusUnprocessableEntity, "nothing is shipped to this country")
			return
		}
		answer(w, http.StatusCreated, map[string]any{"id": fmt.Sprintf("shipment-%v", body["order"])})
	})
	s.routes.HandleFunc("GET /stock", func(w http.ResponseWriter, r *http.Request) {
		short := []map[string]any{}
		if below, err := strconv.Atoi(r.URL.Query().Get("below")); err == nil && below > 2 {
			short = append(short, map[string]any{"sku": "lamp", "left": 2, "supplier": "s-1"})
		}
		answer(w, http.StatusOK, short)
	})
	s.routes.HandleFunc("POST /suppliers/{supplier}/orders", func(w http.ResponseWriter, r *http.Request) {
		body := read(r)
		answer(w, http.StatusCreated, map[string]any{
			"id": fmt.Sprintf("order-%v", body["sku"]), "sku": body["sku"], "quantity": body["quantity"]})
	})
	s.routes.HandleFunc("GET /products/{sku}", func(w http.ResponseWriter, r *http.Request) {
		prices := map[string]float64{"lamp": 29.9, "desk": 249, "chair": 89.5}
		price, ok := prices[r.PathValue("sku")]
		if !ok {
			refuse(w, http.StatusNotFound, "no such product")
			return
		}
		answer(w, http.StatusOK, map[string]any{"sku": r.PathValue("sku"), "price": price})
	})
}

// pay declines the card "declined" and is busy for the first two tries of every order.
func (s *Service) pay(w http.ResponseWriter, r *http.Request) {
	body := read(r)
	order := fmt.Sprint(body["order"])
	s.mu.Lock()
	s.payments[order]++
	tries := s.payments[order]
	s.mu.Unlock()
	switch {
	case body["card"] == "declined":
		refuse(w, http.StatusPaymentRequired, "the card was declined")
	case tries <= 2:
		refuse(w, http.StatusServiceUnavailable, "the payment service is busy")
	default:
		answer(w, http.StatusCreated, map[string]any{"id": "payment-" + order})
	}
}

// otherRoutes registers the routes of the other workflows.
func (s *Service) otherRoutes() {
	s.routes.HandleFunc("GET /rates/{provider}", rate)
	s.routes.HandleFunc("GET /customers/{id}", func(w http.ResponseWriter, r *http.Request) {
		answer(w, http.StatusOK, map[string]any{"id": r.PathValue("id"), "name": "Customer " + r.PathValue("id")})
	})
	s.routes.HandleFunc("GET /customers/{id}/credit", func(w http.ResponseWriter, r *http.Request) {
		if r.PathValue("id") == "c-0" {
			refuse(w, http.StatusNotFound, "no credit score")
			return
		}
		answer(w, http.StatusOK, map[string]any{"score": 640})
	})
	s.routes.HandleFunc("POST /jobs", s.startJob)
	s.routes.HandleFunc("GET /jobs/{id}", s.pollJob)
	s.routes.HandleFunc("GET /files", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, map[string]any{"files": []string{"a.log", "b.log", "c.log"}})
	})
	s.routes.HandleFunc("DELETE /files/{name}", func(w http.ResponseWriter, r *http.Request) {
		if r.PathValue("name") == "b.log" {
			refuse(w, http.StatusLocked, "the file is in use")
			return
		}
		noContent(w, r)
	})
	s.routes.HandleFunc("POST /bookings/{part}", s.book)
	s.routes.HandleFunc("DELETE /bookings/{id}", noContent)
	s.routes.HandleFunc("GET /sales/{region}/{day}", func(w http.ResponseWriter, r *http.Request) {
		totals := map[string]int{"north": 1200, "west": 2100}
		total, ok := totals[r.PathValue("region")]
		if !ok {
			refuse(w, http.StatusServiceUnavailable, "the region does not answer")
			return
		}
		answer(w, http.StatusOK, map[string]any{"region": r.PathValue("region"), "total": total})
	})
	s.routes.HandleFunc("POST /reports", func(w http.ResponseWriter, r *http.Request) {
		answer(w, http.StatusCreated, map[string]any{"id": fmt.Sprintf("report-%v", read(r)["day"])})
	})
}

// rate answers after the query's delay in milliseconds, or not at all if the caller has disconnected by then.
func rate(w http.ResponseWriter, r *http.Request) {
	rates := map[string]float64{"north": 10.91, "south": 10.94}
	milliseconds, _ := strconv.Atoi(r.URL.Query().Get("delay"))
	timer := time.NewTimer(time.Duration(milliseconds) * time.Millisecond)
	defer timer.Stop()
	select {
	case <-r.Context().Done():
	case <-timer.C:
		provider := r.PathValue("provider")
		answer(w, http.StatusOK, map[string]any{"provider": provider, "rate": rates[provider]})
	}
}

func (s *Service) startJob(w http.ResponseWriter, r *http.Request) {
	needed, _ := read(r)["polls"].(float64)
	s.mu.Lock()
	id := fmt.Sprintf("job-%d", len(s.jobs)+1)
	s.jobs[id] = &job{needed: int(needed)}
	s.mu.Unlock()
	answer(w, http.StatusCreated, map[string]any{"id": id})
}

func (s *Service) pollJob(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	j := s.jobs[r.PathValue("id")]
	if j == nil {
		refuse(w, http.StatusNotFound, "no such job")
		return
	}
	j.polls++
	if j.polls < j.needed {
		answer(w, http.StatusOK, map[string]any{"status": "pending"})
		return
	}
	answer(w, http.StatusOK, map[string]any{"status": "ready", "result": fmt.Sprintf("done after %d polls", j.polls)})
}

func (s *Service) book(w http.ResponseWriter, r *http.Request) {
	part := r.PathValue("part")
	if part == "moon" {
		refuse(w, http.StatusConflict, "nothing goes there")
		return
	}
	s.mu.Lock()
	s.bookings++
	id := fmt.Sprintf("%s-%d", part, s.bookings)
	s.mu.Unlock()
	answer(w, http.StatusCreated, map[string]any{"id": id})
}

func noContent(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }

func read(r *http.Request) map[string]any {
	var body map[string]any
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		return map[string]any{}
	}
	return body
}

func refuse(w http.ResponseWriter, status int, reason string) {
	send(w, status, "application/problem+json", map[string]any{"title": reason, "status": status})
}

func answer(w http.ResponseWriter, status int, body any) {
	send(w, status, "application/json", body)
}

func send(w http.ResponseWriter, status int, contentType string, body any) {
	text, err := json.Marshal(body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(status)
	_, _ = w.Write(text) // it fails only if the caller has disconnected
}
