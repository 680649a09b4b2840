// Package health answers the two questions of an orchestrator: is the process alive (/livez), and can it do its work
// (/readyz).
//
// /livez depends on nothing: an outage of Temporal or the database must not restart the fleet. /readyz checks every
// dependency, and reports per role:
//
//	h := health.New(time.Now, []health.Dependency{
//		{Name: "store", Checker: store, Required: []string{"api"}, Used: []string{"worker"}},
//		{Name: "pollers", Checker: workers, Required: []string{"worker"}},
//		{Name: "temporal", Condition: condition, Used: []string{"api", "worker"}},
//	}, "api", "worker")
//	mux.HandleFunc("/livez", h.Livez)
//	mux.HandleFunc("/readyz", h.Readyz)
//
// A dependency that another component already monitors has a Condition, which every report reads without a check, so
// that /readyz never differs from the monitor. All other dependencies have a Checker.
//
// A role is unavailable while a dependency it requires is down, and while it is not known yet whether one that it uses
// works: the first attempt to use it has not ended. It is degraded while a dependency it merely uses is down, or any of
// them is impaired. A process with several roles is ready if its first role is: an API that can refuse and queue stays
// in the load balancer while its workers wait for Temporal, and reports "degraded". GET /readyz?role=worker reports on
// one role.
//
// The package runs no loop: a dependency is checked on request, at most once a second.
package health

import (
	"context"
	"slices"
	"sync"
	"time"
)

// The statuses of a role or of the process.
const (
	Ready       = "ready"
	Degraded    = "degraded"
	Unavailable = "unavailable"
)

// The states of a dependency.
const (
	Up       = "up"
	Impaired = "impaired" // usable, but with an error
	Down     = "down"
)

// States returns all states of a dependency.
func States() []string { return []string{Up, Impaired, Down} }

const (
	freshness     = time.Second            // how long the result of a successful check is reused
	downFreshness = 100 * time.Millisecond // a recovery is visible at once
	checkTimeout  = 2 * time.Second        // below the usual probe timeout of three seconds
)

// Checker returns why a dependency does not work, or nil. It must respect the context.
type Checker interface {
	Check(ctx context.Context) error
}

// CheckFunc adapts a function to a Checker.
type CheckFunc func(ctx context.Context) error

// Check calls f.
func (f CheckFunc) Check(ctx context.Context) error { return f(ctx) }

// Condition is the state of a dependency as its monitor reports it.
type Condition struct {
	// State and Kind are the monitor's own terms, such as "down" and "hung"; both are passed on unchanged.
	State, Kind string
	// Since is the start of this state.
	Since time.Time
	// Err is the error, if there is one. Usable reports whether the dependency can be used despite it. Pending reports
	// that the first attempt to use the dependency has not ended, which is then the error.
	Err             error
	Usable, Pending bool
}

// Dependency is something that roles need. It has either a Checker or a Condition.
type Dependency struct {
	Name    string
	Checker Checker
	// Condition must not block.
	Condition func() Condition
	// Title returns what is wrong while Checker fails, in one sentence without addresses; nil where the name says it. It
	// must not block.
	Title func() string

	Required []string // roles that cannot work without it
	Used     []string // roles that are degraded without it
}

// DependencyState is the state of a dependency. Since is the first observation of this state or, with a Condition, the
// start that the monitor reports. Condition and Kind are the monitor's own terms. Title is what is wrong; empty while
// it is up, and where the name says it.
type DependencyState struct {
	Name        string     `json:"name"`
	State       string     `json:"state"`
	Condition   string     `json:"condition,omitempty"`
	Kind        string     `json:"kind,omitempty"`
	Since       time.Time  `json:"since"`
	Title       string     `json:"title,omitempty"`
	LastError   string     `json:"lastError,omitempty"`
	LastErrorAt *time.Time `json:"lastErrorAt,omitempty"`

	// pending reports that the first attempt to use it has not ended.
	pending bool
}

// RoleState is the state of a role. Because names the dependencies that cause it.
type RoleState struct {
	Role      string    `json:"role"`
	Status    string    `json:"status"`
	Since     time.Time `json:"since"`
	Because   []string  `json:"because,omitempty"`
	LastError string    `json:"lastError,omitempty"`
}

// Report is the body of /readyz.
type Report struct {
	Status       string            `json:"status"`
	Stopping     bool              `json:"stopping,omitempty"`
	Roles        []RoleState       `json:"roles"`
	Dependencies []DependencyState `json:"dependencies"`
}

// Health holds the state of one process.
type Health struct {
	now   func() time.Time
	parts []*part
	roles []string

	mu       sync.Mutex
	stopping bool
	states   map[string]RoleState
}

// New returns the health of a process with these roles. The first role decides whether the process is ready.
func New(now func() time.Time, dependencies []Dependency, roles ...string) *Health {
	h := &Health{now: now, roles: roles, states: map[string]RoleState{}}
	for _, d := range dependencies {
		h.parts = append(h.parts, &part{dependency: d, turn: make(chan struct{}, 1)})
	}
	return h
}

// Drain makes the process permanently unavailable, so that load balancers send no new requests while it stops.
func (h *Health) Drain() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stopping = true
}

// Report checks all dependencies concurrently and returns the result.
func (h *Health) Report(ctx context.Context) Report {
	found := make([]DependencyState, len(h.parts))
	var wg sync.WaitGroup
	for i, p := range h.parts {
		wg.Go(func() { found[i] = p.state(ctx, h.now) })
	}
	wg.Wait()

	h.mu.Lock()
	defer h.mu.Unlock()
	report := Report{Stopping: h.stopping, Dependencies: found}
	for _, role := range h.roles {
		state := roleState(role, h.parts, found)
		state.Since = h.now()
		if before, ok := h.states[role]; ok && before.Status == state.Status {
			state.Since = before.Since
		}
		if ctx.Err() == nil { // a canceled request does not update the state
			h.states[role] = state
		}
		report.Roles = append(report.Roles, state)
	}
	report.Status = processStatus(report)
	return report
}

// roleState derives one role's status from the states of the dependencies.
func roleState(role string, parts []*part, found []DependencyState) RoleState {
	state := RoleState{Role: role, Status: Ready}
	for i, p := range parts {
		required, used := slices.Contains(p.dependency.Required, role), slices.Contains(p.dependency.Used, role)
		if found[i].State == Up || !required && !used {
			continue
		}
		status := Degraded
		if (required || found[i].pending) && found[i].State == Down {
			status = Unavailable
		}
		state.Because = append(state.Because, p.dependency.Name)
		if state.LastError == "" || status == Unavailable && state.Status != Unavailable {
			state.LastError = found[i].text()
		}
		if state.Status != Unavailable {
			state.Status = status
		}
	}
	return state
}

// text returns what is wrong, with the title.
func (d DependencyState) text() string {
	if d.Title == "" {
		return d.LastError
	}
	return d.Title + ": " + d.LastError
}

// processStatus returns the status of the process: the first role decides whether it is ready, every role whether it is
// degraded.
func processStatus(report Report) string {
	if report.Stopping || len(report.Roles) == 0 || report.Roles[0].Status == Unavailable {
		return Unavailable
	}
	for _, role := range report.Roles {
		if role.Status != Ready {
			return Degraded
		}
	}
	return Ready
}
