package processor

import (
	"fmt"
	"strings"
	"time"
)

// Minimum is the number of processors that a process requires, from docs/sizing.md. With less it works, and is slow.
const Minimum = 0.25

const (
	// shortest is the least time between two samples that shows anything: the start of a process uses all that it gets.
	shortest = time.Second
	// throttledMuch is the share of the periods from which on a process is short of processor time. It is that of the
	// alert ProcessorThrottled.
	throttledMuch = 0.25
	// waitingMuch is how many threads wait for a processor, on average, in a process that is short of processor time
	// because of others. They also wait longer than it runs.
	waitingMuch = 0.5
)

// State is what a process got of the machine's processors in the last minute. A value that could not be read is nil.
type State struct {
	// Limit is how many processors the control groups allow; 0 is no limit.
	Limit *float64 `json:"limit,omitempty"`
	// Used is how many processors the process used. While its control group was throttled, only the time in which the
	// group ran counts.
	Used *float64 `json:"used,omitempty"`
	// Throttled is the share of the scheduling periods, of those in which the control group ran, in which it had used up
	// its limit.
	Throttled *float64 `json:"throttled,omitempty"`
	// Waiting is how many of its threads were ready and waited for a processor, on average.
	Waiting *float64 `json:"waiting,omitempty"`
}

// Between returns the state from an earlier to a later sample. waited is the time that threads waited for a processor
// between both, nil where it is unknown.
func Between(from, to Sample, waited *time.Duration) (s State) {
	took := to.At.Sub(from.At)
	if to.Group != nil {
		limit := to.Group.Limit
		s.Limit = &limit
	}
	if took < shortest {
		return s
	}
	ran := took
	if from.Group != nil && to.Group != nil {
		share, periods := 0.0, to.Group.Periods-from.Group.Periods
		if periods > 0 {
			share = float64(to.Group.Throttled-from.Group.Throttled) / float64(periods)
		}
		s.Throttled = &share
		if active := time.Duration(periods) * to.Group.Period; share >= throttledMuch && active > 0 {
			ran = min(took, active)
		}
	}
	if from.Used != nil && to.Used != nil {
		used := (*to.Used - *from.Used).Seconds() / ran.Seconds()
		s.Used = &used
	}
	if waited != nil {
		waiting := waited.Seconds() / took.Seconds()
		s.Waiting = &waiting
	}
	return s
}

// Short reports whether the process needs more processor time than it gets: its control group throttles it, or the
// machine is busy with others. Its times by the clock show nothing about its work then.
func (s State) Short() bool {
	if s.Throttled != nil && *s.Throttled >= throttledMuch {
		return true
	}
	return s.Waiting != nil && *s.Waiting >= waitingMuch && s.Used != nil && *s.Waiting > *s.Used
}

// BelowMinimum reports whether the control groups allow less than [Minimum].
func (s State) BelowMinimum() bool { return s.Limit != nil && *s.Limit > 0 && *s.Limit < Minimum }

// Gets returns what a process that is [State.Short] gets, and why not more, as the predicate of a sentence.
func (s State) Gets() string {
	text := "gets too little processor time"
	if s.Used != nil {
		text = "gets " + Amount(*s.Used)
	}
	var why []string
	if s.Throttled != nil && *s.Throttled >= throttledMuch {
		limited := fmt.Sprintf("throttled in %.0f %% of the last minute's periods", 100**s.Throttled)
		if s.Limit != nil && *s.Limit > 0 {
			limited = fmt.Sprintf("limited to %s and %s", Amount(*s.Limit), limited)
		}
		why = append(why, limited)
	} else if s.Waiting != nil {
		why = append(why, fmt.Sprintf("%.1f threads wait for one on average, because the machine is busy", *s.Waiting))
	}
	if len(why) == 0 {
		return text
	}
	return text + " (" + strings.Join(why, ", ") + ")"
}

// Amount writes a number of processors.
func Amount(processors float64) string {
	if processors < 1 {
		return fmt.Sprintf("%.0f %% of a processor", 100*processors)
	}
	return fmt.Sprintf("%.1f processors", processors)
}
