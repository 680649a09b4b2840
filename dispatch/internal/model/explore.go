package model

import (
	"fmt"
	"strings"
)

// Result is the result of an exploration.
type Result struct {
	// States and Steps are the numbers of visited states and steps.
	States, Steps int
	// Violated is the violated invariant, empty if none is; Trace is a shortest way there, one line per step.
	Violated string
	Trace    []string
}

// String returns the invariant and the trace, in lines.
func (r Result) String() string { return r.Violated + "\n  " + strings.Join(r.Trace, "\n  ") }

// explorer visits states in order of their distance from the initial ones.
type explorer struct {
	steps   stepper
	numbers map[state]int32
	states  []state
	// from is the state from which each state was first reached, -1 for initial ones.
	from []int32
	// reversed has the steps without faults, as pairs of the reached state and the previous one.
	reversed [][2]int32
}

// Explore visits every state that is reachable from an empty state, and from one with a dispatcher of an older program.
// It then checks that from each of them a routing dispatcher can be reached without another fault.
func Explore(defects Defects) Result {
	x := explorer{numbers: map[state]int32{},
		steps: stepper{Defects: defects,
			decisions: &decisions{moves: map[decisionInput]move{}, plans: map[planInput]string{}}}}
	x.visit(state{}, -1)
	x.visit(state{open: run{id: 1, legacy: true}}, -1)
	var result Result
	for at := 0; at < len(x.states); at++ { //nolint:intrange // the slice grows
		for _, step := range x.steps.next(x.states[at]) {
			result.Steps++
			if step.violated != "" {
				result.States, result.Violated = len(x.states), step.violated
				last := line(step) // the next call reuses the steps
				result.Trace = append(x.trace(int32(at)), last)
				return result
			}
			to := x.visit(step.to, int32(at))
			if !step.fault {
				x.reversed = append(x.reversed, [2]int32{to, int32(at)})
			}
		}
	}
	result.States = len(x.states)
	if stuck := x.stuck(); stuck >= 0 {
		result.Violated, result.Trace = noneRoutes, x.trace(stuck)
	}
	return result
}

func (x *explorer) visit(s state, from int32) int32 {
	s = s.renamed()
	if n, ok := x.numbers[s]; ok {
		return n
	}
	n := int32(len(x.states)) //nolint:gosec // a few million
	x.numbers[s] = n
	x.states, x.from = append(x.states, s), append(x.from, from)
	return n
}

// stuck returns the nearest state from which no routing dispatcher can be reached, or -1.
func (x *explorer) stuck() int32 {
	// predecessors has those of state i from starts[i] to starts[i+1].
	starts := make([]int32, len(x.states)+1)
	for _, edge := range x.reversed {
		starts[edge[0]+1]++
	}
	for i := range x.states {
		starts[i+1] += starts[i]
	}
	predecessors, filled := make([]int32, len(x.reversed)), make([]int32, len(x.states))
	for _, edge := range x.reversed {
		predecessors[starts[edge[0]]+filled[edge[0]]] = edge[1]
		filled[edge[0]]++
	}
	recovers := make([]bool, len(x.states))
	var queue []int32
	for i := range x.states {
		if x.states[i].routing() {
			recovers[i], queue = true, append(queue, int32(i))
		}
	}
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		for _, b := range predecessors[starts[at]:starts[at+1]] {
			if !recovers[b] {
				recovers[b], queue = true, append(queue, b)
			}
		}
	}
	for i := range recovers {
		if !recovers[i] {
			return int32(i)
		}
	}
	return -1
}

// trace returns the steps by which a state was reached.
func (x *explorer) trace(at int32) []string {
	if x.from[at] < 0 {
		return []string{"initially: " + x.states[at].String()}
	}
	previous := x.from[at]
	for _, step := range x.steps.next(x.states[previous]) {
		if step.to == x.states[at] {
			last := line(step) // the next call reuses the steps
			return append(x.trace(previous), last)
		}
	}
	return x.trace(previous)
}

func line(s step) string {
	text := actorName(s.actor) + " " + s.what
	if s.why != "" {
		text += ": " + s.why
	}
	return fmt.Sprintf("%-58s %s", text, s.to.String())
}
