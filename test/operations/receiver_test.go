package operations_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"
)

// receiver is a webhook to which Alertmanager sends notifications, as a pager would be.
type receiver struct {
	*httptest.Server

	mu       sync.Mutex
	arrivals []arrival
}

// arrival is one alert in a notification.
type arrival struct {
	Status   string            `json:"status"` // firing or resolved
	Labels   map[string]string `json:"labels"`
	StartsAt time.Time         `json:"startsAt"` // since when it has fired in Prometheus
	at       time.Time
}

func startReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{}
	r.Server = httptest.NewServer(http.HandlerFunc(r.receive))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) receive(w http.ResponseWriter, req *http.Request) {
	var notification struct {
		Alerts []arrival `json:"alerts"`
	}
	if err := json.NewDecoder(req.Body).Decode(&notification); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range notification.Alerts {
		a.at = time.Now()
		r.arrivals = append(r.arrivals, a)
	}
}

// first returns the first arrival of an alert with this status after a moment.
func (r *receiver) first(name, severity, status string, after time.Time) (arrival, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range r.arrivals {
		if a.Labels["alertname"] == name && a.Labels["severity"] == severity && a.Status == status && a.at.After(after) {
			return a, true
		}
	}
	return arrival{}, false
}

// names returns the names of the alerts that have arrived and began to fire after a moment, sorted.
func (r *receiver) names(after time.Time) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	names := map[string]bool{}
	for _, a := range r.arrivals {
		if a.StartsAt.After(after) {
			names[a.Labels["alertname"]] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}
