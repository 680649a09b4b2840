package model

import (
	"fmt"
	"strings"
)

// Result is what an exploration found.
type Result struct {
	// States and Steps count what was visited.
	States, Steps int
	// Broken is the invariant that does not hold, empty if all do; Trace is a shortest way there, a line for each step.
	Broken string
	Trace  []string
}

// String is the trace in lines.
func (r Result) String() string { return r.Broken + "\n  " + strings.Join(r.Trace, "\n  ") }

// explorer visits states in the order of their distance from the beginning.
type explorer struct {
	steps   stepper
	numbers map[state]int32
	states  []state
	// from is the state by which one was first reached, -1 for the beginnings.
	from []int32
	// back are the steps without faults, as pairs of the state reached and the state before.
	back [][2]int32
}

// Explore visits every state that can be reached from an empty world, and from one with a dispatcher of an older release, and
// then tells whether from each of them a dispatcher that routes can be reached without another fault.
func Explore(defects Defects) Result {
	x := explorer{numbers: map[state]int32{}, steps: stepper{Defects: defects, minds: &minds{choices: map[choice]move{}, sights: map[sight]string{}}}}
	x.visit(state{}, -1)
	x.visit(state{open: run{id: 1, legacy: true}}, -1)
	var result Result
	for at := 0; at < len(x.states); at++ { //nolint:intrange // they become more
		for _, step := range x.steps.next(x.states[at]) {
			result.Steps++
			if step.broken != "" {
				result.States, result.Broken = len(x.states), step.broken
				last := line(step) // the steps are gone with the next question
				result.Trace = append(x.trace(int32(at)), last)
				return result
			}
			to := x.visit(step.to, int32(at))
			if !step.fault {
				x.back = append(x.back, [2]int32{to, int32(at)})
			}
		}
	}
	result.States = len(x.states)
	if stranded := x.stranded(); stranded >= 0 {
		result.Broken, result.Trace = noneRoutes, x.trace(stranded)
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

// stranded returns the nearest state from which no routing dispatcher can be reached, or -1.
func (x *explorer) stranded() int32 {
	starts := make([]int32, len(x.states)+1)
	for _, edge := range x.back {
		starts[edge[0]+1]++
	}
	for i := range x.states {
		starts[i+1] += starts[i]
	}
	before, filled := make([]int32, len(x.back)), make([]int32, len(x.states))
	for _, edge := range x.back {
		before[starts[edge[0]]+filled[edge[0]]] = edge[1]
		filled[edge[0]]++
	}
	good := make([]bool, len(x.states))
	var queue []int32
	for i := range x.states {
		if x.states[i].routing() {
			good[i], queue = true, append(queue, int32(i))
		}
	}
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		for _, b := range before[starts[at]:starts[at+1]] {
			if !good[b] {
				good[b], queue = true, append(queue, b)
			}
		}
	}
	for i := range good {
		if !good[i] {
			return int32(i)
		}
	}
	return -1
}

// trace is how a state was reached.
func (x *explorer) trace(at int32) []string {
	if x.from[at] < 0 {
		return []string{"in the beginning: " + x.states[at].String()}
	}
	before := x.from[at]
	for _, step := range x.steps.next(x.states[before]) {
		if step.to == x.states[at] {
			last := line(step) // the steps are gone with the next question
			return append(x.trace(before), last)
		}
	}
	return x.trace(before)
}

func line(s step) string {
	text := actor(s.who) + " " + s.what
	if s.why != "" {
		text += ": " + s.why
	}
	return fmt.Sprintf("%-58s %s", text, s.to.String())
}
