// Package health answers the two questions an orchestrator asks: is the process alive (/livez), and can it
// do its work (/readyz).
//
// /livez depends on nothing: an outage of Temporal or the database must not restart the fleet. /readyz asks
// every dependency, and answers per role:
//
//	h := health.New(time.Now, []health.Dependency{
//		{Name: "store", Checker: store, Required: []string{"api"}, Used: []string{"worker"}},
//		{Name: "pollers", Checker: workers, Required: []string{"worker"}},
//		{Name: "temporal", Condition: manager.Condition, Used: []string{"api", "worker"}},
//	}, "api", "worker")
//	mux.HandleFunc("/livez", h.Livez)
//	mux.HandleFunc("/readyz", h.Readyz)
//
// A dependency that somebody watches already tells its Condition: it is not checked but read, whenever somebody asks, so
// that /readyz never says anything else than whoever watches. All others have a Checker.
//
// A role is unavailable while a dependency it requires is down, and degraded while one it merely uses is, or any of them is
// impaired. A process that carries several roles is ready as the first is: an API that can refuse and queue stays in the
// load balancer while its workers wait for Temporal, and says "degraded". GET /readyz?role=worker asks for one.
//
// The package runs no loop: a dependency is checked when somebody asks, at most once a second.
package health

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Status of a role or of the process.
const (
	Ready       = "ready"
	Degraded    = "degraded"
	Unavailable = "unavailable"
)

// State of a dependency.
const (
	Up       = "up"
	Impaired = "impaired" // it can be used, and something is wrong with it
	Down     = "down"
)

const (
	freshness     = time.Second            // how long one check's good result is given to all askers
	downFreshness = 100 * time.Millisecond // a recovery shows at once
	checkTimeout  = 2 * time.Second        // under the three seconds probes usually wait
)

// Checker says what keeps a dependency from working, or nil. It must honour the context.
type Checker interface {
	Check(ctx context.Context) error
}

// CheckFunc makes a Checker of a function.
type CheckFunc func(ctx context.Context) error

// Check calls f.
func (f CheckFunc) Check(ctx context.Context) error { return f(ctx) }

// Condition is what whoever watches a dependency knows of it.
type Condition struct {
	// State and Kind are its own words for how it is, such as "down" and "hung"; both are passed on as they are.
	State, Kind string
	// Since is when it got into this state.
	Since time.Time
	// Err says what is wrong; nil while nothing is. Usable tells whether it can be used all the same.
	Err    error
	Usable bool
}

// Dependency is something roles need. It has either a Checker or a Condition.
type Dependency struct {
	Name    string
	Checker Checker
	// Condition must not block.
	Condition func() Condition

	Required []string // roles that cannot work without it
	Used     []string // roles that work worse without it
}

// DependencyState is what is known of a dependency. Since is when it was first seen in this state, or, with a condition, when
// it got into that. Condition and Kind are its own words.
type DependencyState struct {
	Name        string     `json:"name"`
	State       string     `json:"state"`
	Condition   string     `json:"condition,omitempty"`
	Kind        string     `json:"kind,omitempty"`
	Since       time.Time  `json:"since"`
	LastError   string     `json:"lastError,omitempty"`
	LastErrorAt *time.Time `json:"lastErrorAt,omitempty"`
}

// RoleState is what is known of a role. Because names the dependencies at fault.
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

// Health keeps the state of one process.
type Health struct {
	now   func() time.Time
	parts []*part
	roles []string

	mu       sync.Mutex
	stopping bool
	states   map[string]RoleState
}

// New returns the health of a process that carries the roles, the one that decides first.
func New(now func() time.Time, dependencies []Dependency, roles ...string) *Health {
	h := &Health{now: now, roles: roles, states: map[string]RoleState{}}
	for _, d := range dependencies {
		h.parts = append(h.parts, &part{dependency: d, turn: make(chan struct{}, 1)})
	}
	return h
}

// Drain makes the process unavailable for good, so that balancers send nothing new while it stops.
func (h *Health) Drain() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stopping = true
}

// Report asks every dependency, all at the same time, and returns the whole picture.
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
		state := judge(role, h.parts, found)
		state.Since = h.now()
		if before, ok := h.states[role]; ok && before.Status == state.Status {
			state.Since = before.Since
		}
		if ctx.Err() == nil { // an asker that gave up has seen nothing worth remembering
			h.states[role] = state
		}
		report.Roles = append(report.Roles, state)
	}
	report.Status = overall(report)
	return report
}

// judge decides one role's status from the dependencies' states.
func judge(role string, parts []*part, found []DependencyState) RoleState {
	state := RoleState{Role: role, Status: Ready}
	for i, p := range parts {
		required, used := slices.Contains(p.dependency.Required, role), slices.Contains(p.dependency.Used, role)
		if found[i].State == Up || !required && !used {
			continue
		}
		status := Degraded
		if required && found[i].State == Down {
			status = Unavailable
		}
		state.Because = append(state.Because, p.dependency.Name)
		if state.LastError == "" || status == Unavailable && state.Status != Unavailable {
			state.LastError = found[i].LastError
		}
		if state.Status != Unavailable {
			state.Status = status
		}
	}
	return state
}

// overall lets the first role decide whether the process is ready, and every role whether it is degraded.
func overall(report Report) string {
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
