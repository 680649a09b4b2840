package health

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// Livez responds with 200 as long as the process can respond at all.
func (h *Health) Livez(w http.ResponseWriter, _ *http.Request) {
	write(w, http.StatusOK, statusBody{Status: "alive"})
}

type errorsKey struct{}

// WithErrors returns the context of a request whose answer of Readyz has the texts of errors. They may contain
// addresses.
func WithErrors(ctx context.Context) context.Context {
	return context.WithValue(ctx, errorsKey{}, true)
}

// Readyz responds with 200 while the process, or the one role in the query, can work, and 503 while it cannot. The body
// is a Report in both cases, without the texts of errors unless the request has [WithErrors]. A role that the process
// does not have is answered with 404.
func (h *Health) Readyz(w http.ResponseWriter, r *http.Request) {
	role := r.URL.Query().Get("role")
	if role != "" && !slices.Contains(h.roles, role) {
		write(w, http.StatusNotFound, statusBody{
			Status: Unavailable,
			Error:  fmt.Sprintf("this process does not have the role %q; its roles are %s", role, strings.Join(h.roles, ", ")),
		})
		return
	}
	report := h.Report(r.Context())
	if role != "" {
		report = report.forRole(role)
	}
	if r.Context().Value(errorsKey{}) == nil {
		report.hideErrors()
	}
	status := http.StatusOK
	if report.Status == Unavailable {
		status = http.StatusServiceUnavailable
	}
	write(w, status, report)
}

// hideErrors removes the texts of errors. The names, states and titles remain.
func (r *Report) hideErrors() {
	for i := range r.Roles {
		r.Roles[i].LastError = ""
	}
	for i := range r.Dependencies {
		r.Dependencies[i].LastError = ""
	}
}

// forRole restricts the report to one role.
func (r Report) forRole(role string) Report {
	for _, state := range r.Roles {
		if state.Role == role {
			r.Roles = []RoleState{state}
			r.Status = processStatus(r)
			return r
		}
	}
	return r
}

// statusBody is the body of a response without a report.
type statusBody struct {
	Status string `json:"status"`
	Error  string `json:"error,omitempty"`
}

func write(w http.ResponseWriter, status int, body any) {
	text, err := json.MarshalIndent(body, "", "  ")
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(append(text, '\n')) // fails only if the prober disconnected
}
