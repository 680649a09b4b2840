package wire

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/lease"
)

// Phase is the current phase of a dispatcher.
type Phase string

// The phases.
const (
	Routing Phase = "routing"
	Parked  Phase = "parked"
)

// Worker is a process as registered with a dispatcher.
type Worker struct {
	ServerID     string    `json:"serverId"`
	TaskQueue    string    `json:"taskQueue"`
	Build        string    `json:"build,omitempty"`
	RegisteredAt time.Time `json:"registeredAt"`
	// Missed is the number of consecutive checks that found no heartbeat.
	Missed int `json:"missed,omitempty"`
}

// State is the result of a state query or an adoption.
type State struct {
	Name        inbox.Name `json:"name"`
	Owner       string     `json:"owner"`
	Epoch       int64      `json:"epoch"`
	Phase       Phase      `json:"phase"`
	Interpreter int        `json:"interpreter"`
	// Workers are ordered by server ID.
	Workers []Worker `json:"workers,omitempty"`
}

// Adoption is the argument of [AdoptUpdate]. The result is a [State], or an error of type [FencedError].
type Adoption struct {
	ServerID string `json:"serverId"`
	Epoch    int64  `json:"epoch"`
}

// Registration is the argument of [RegisterUpdate].
type Registration struct {
	ServerID  string `json:"serverId"`
	TaskQueue string `json:"taskQueue"`
	Build     string `json:"build,omitempty"`
}

// Late is the argument of [LateSignal].
type Late struct {
	ServerIDs []string `json:"serverIds"`
}

// Claim is the value of an owner's lease. Epoch is 0 until the inbox has allocated it.
type Claim struct {
	ServerID string `json:"serverId"`
	Epoch    int64  `json:"epoch"`
}

// Beat is the value of a heartbeat.
type Beat struct {
	ServerID    string    `json:"serverId"`
	Build       string    `json:"build,omitempty"`
	Interpreter int       `json:"interpreter"`
	StartedAt   time.Time `json:"startedAt"`
	// Projects are the served projects, sorted. If they exceed the size of an entry, it has only the first ones. Serves is their total
	// number.
	Projects []string `json:"projects,omitempty"`
	Serves   int      `json:"serves"`
	// Facts are further facts of the process, for display.
	Facts map[string]string `json:"facts,omitempty"`
}

// Request is the value of a handover request: the requester and the reason.
type Request struct {
	By     string `json:"by"`
	Reason string `json:"reason,omitempty"`
}

// Encode returns the JSON of a heartbeat, with as many projects as fit into an entry, and without facts that do not fit.
func (b Beat) Encode() ([]byte, error) {
	for {
		value, err := json.Marshal(b)
		switch {
		case err != nil:
			return nil, fmt.Errorf("encode heartbeat: %w", err)
		case len(value) <= lease.MaxValue:
			return value, nil
		case len(b.Projects) > 0:
			b.Projects = slices.Clip(b.Projects[:len(b.Projects)/2])
		case len(b.Facts) > 0:
			b.Facts = nil
		default:
			return nil, fmt.Errorf("encode heartbeat: %d bytes, of which an entry holds %d", len(value), lease.MaxValue)
		}
	}
}
