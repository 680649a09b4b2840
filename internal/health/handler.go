package health

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// Livez answers 200 while the process can answer at all.
func (h *Health) Livez(w http.ResponseWriter, _ *http.Request) {
	write(w, http.StatusOK, answer{Status: "alive"})
}

// Readyz answers 200 while the process, or the one role asked for, can work, and 503 while it cannot. The body
// is a Report either way. A role the process does not carry is answered with 404.
func (h *Health) Readyz(w http.ResponseWriter, r *http.Request) {
	role := r.URL.Query().Get("role")
	if role != "" && !slices.Contains(h.roles, role) {
		write(w, http.StatusNotFound, answer{
			Status: Unavailable,
			Error:  fmt.Sprintf("this process does not carry the role %q; it carries %s", role, strings.Join(h.roles, ", ")),
		})
		return
	}
	report := h.Report(r.Context())
	if role != "" {
		report = report.of(role)
	}
	status := http.StatusOK
	if report.Status == Unavailable {
		status = http.StatusServiceUnavailable
	}
	write(w, status, report)
}

// of narrows the report to one role.
func (r Report) of(role string) Report {
	for _, state := range r.Roles {
		if state.Role == role {
			r.Roles = []RoleState{state}
			r.Status = overall(r)
			return r
		}
	}
	return r
}

// answer is the body where there is no report.
type answer struct {
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
	_, _ = w.Write(append(text, '\n')) // the prober hung up
}
