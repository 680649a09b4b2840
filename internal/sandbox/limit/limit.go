// Package limit has the limits of programs: those of a runner, and those of a project below them.
package limit

import (
	"cmp"
	"slices"
	"time"
)

// Weight and Shares are the weight of a program among the groups of the host, in version 2 and in version 1 of control
// groups: a tenth of the usual one, so that other processes compute first. The priority of a process counts among those
// of its own group only.
const Weight, Shares = 10, 102

// Limits bound one program. The zero value of a field is no limit.
type Limits struct {
	// Memory bounds the memory of all processes of a program together, in bytes.
	Memory int64 `json:"memory,omitempty"`
	// Processes bounds the processes and threads.
	Processes int `json:"processes,omitempty"`
	// Processors bounds the processor time, in processors.
	Processors float64 `json:"processors,omitempty"`
	// Disk bounds the files that a program writes, in bytes.
	Disk int64 `json:"disk,omitempty"`
	// Output bounds each of the two output streams, in bytes.
	Output int64 `json:"output,omitempty"`
	// Time bounds the time from the start of a program to its end.
	Time time.Duration `json:"time,omitempty"`
	// Network is what a program may connect to.
	Network Network `json:"network,omitempty"`
}

// Network is what a program may connect to. Empty is no limit.
type Network string

// Networks, from the narrowest one on.
const (
	// None has no addresses, not even those of the host.
	None Network = "none"
	// Guarded reaches addresses through a proxy, which refuses those that are not public.
	Guarded Network = "guarded"
	// Host is the network of the runner, or one of the engine of containers.
	Host Network = "host"
)

// Networks returns all networks, from the narrowest one on.
func Networks() []Network { return []Network{None, Guarded, Host} }

// Bounds of limits. Below the smallest ones no program starts.
const (
	MinMemory     = 8 << 20
	MinProcessors = 0.01
	MaxProcessors = 1 << 10
	MinTime       = time.Millisecond
)

// Within returns the lower one of each limit.
func (l Limits) Within(other Limits) Limits {
	return Limits{
		Memory: lower(l.Memory, other.Memory), Processes: lower(l.Processes, other.Processes),
		Processors: lower(l.Processors, other.Processors), Disk: lower(l.Disk, other.Disk),
		Output: lower(l.Output, other.Output), Time: lower(l.Time, other.Time),
		Network: l.Network.within(other.Network),
	}
}

// lower returns the lower one of two limits, of which 0 is none.
func lower[N cmp.Ordered](a, b N) N {
	var none N
	if a == none || b == none {
		return max(a, b)
	}
	return min(a, b)
}

// within returns the narrower one of two networks.
func (n Network) within(other Network) Network {
	if n == "" || other == "" {
		return cmp.Or(n, other)
	}
	all := Networks()
	return all[min(slices.Index(all, n), slices.Index(all, other))]
}
