package wire

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/signalbox-dev/signalbox/dispatch/dispatchtype"
	"github.com/signalbox-dev/signalbox/lease"
)

// Adoption is the argument of [AdoptUpdate]. The result is a [dispatchtype.State], or an error of type [FencedError].
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

// Request is the value of a handover request: the requester and the reason.
type Request struct {
	By     string `json:"by"`
	Reason string `json:"reason,omitempty"`
}

// EncodeHeartbeat returns the JSON of a heartbeat, with as many projects as fit into an entry, and without facts that
// do not fit.
func EncodeHeartbeat(b dispatchtype.Heartbeat) ([]byte, error) {
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
