package lint

import (
	"fmt"
	"slices"

	"github.com/signalbox-dev/signalbox/dsl/internal/tree"
)

// Tasks returns the tasks of a list that are unreachable, that repeat themselves for ever, or that are named like a
// directive.
func Tasks(list *tree.Node) []Violation {
	var out []Violation
	index := make(map[string]int, len(list.Items))
	for i, item := range list.Items {
		name := item.Members[0].Key
		index[name] = i
		if slices.Contains([]string{"continue", "exit", "end"}, name) {
			out = append(out, Violation{
				Code: DirectiveName, Task: i, Suggestion: "rename it",
				Message: fmt.Sprintf("the task is named like the directive %q: then: %s follows the directive and never goes to "+
					"the task", name, name),
			})
		}
	}
	reached := make([]bool, len(list.Items))
	for queue := []int{0}; len(queue) > 0; {
		i := queue[0]
		queue = queue[1:]
		if i >= len(list.Items) || reached[i] {
			continue
		}
		reached[i] = true
		name, task := list.Items[i].Members[0].Key, list.Items[i].Members[0].Value
		targets := nextTasks(task)
		for _, way := range targets {
			switch way {
			case "continue":
				queue = append(queue, i+1)
			case "exit", "end":
			default:
				queue = append(queue, index[way])
			}
		}
		if always(targets, name) && !mayExit(task) {
			out = append(out, Violation{
				Code: Endless, Task: i, Then: true, Suggestion: "go on conditionally: by if, or by a switch",
				Message: fmt.Sprintf("the task %q goes to itself without a condition: it is repeated until an error or a timeout "+
					"ends it", name),
			})
		}
	}
	out = append(out, cycles(list, index)...)
	for i, item := range list.Items {
		if !reached[i] {
			out = append(out, Violation{
				Code: Unreachable, Task: i, Suggestion: "go to it by then, or remove it",
				Message: fmt.Sprintf("the task %q is never reached: no task before it goes on with it, and no then names it",
					item.Members[0].Key),
			})
		}
	}
	return out
}

// cycles returns one violation for each cycle of several tasks of which each continues with the next without a
// condition, and of which none waits.
func cycles(list *tree.Node, index map[string]int) []Violation {
	next := make([]int, len(list.Items))
	for i, item := range list.Items {
		name, task := item.Members[0].Key, item.Members[0].Value
		targets := nextTasks(task)
		next[i] = -1
		if len(targets) == 0 || mayExit(task) || waits(task) || !always(targets, targets[0]) {
			continue
		}
		switch target := targets[0]; target {
		case "exit", "end", name:
		case "continue":
			if i+1 < len(list.Items) {
				next[i] = i + 1
			}
		default:
			next[i] = index[target]
		}
	}
	var out []Violation
	seen := make([]int, len(list.Items)) // 0: not seen; otherwise the number of the walk, which began at number-1
	for start := range next {
		i := start
		for i >= 0 && seen[i] == 0 {
			seen[i] = start + 1
			i = next[i]
		}
		if i < 0 || seen[i] != start+1 {
			continue
		}
		last := i
		for next[last] != i {
			last = next[last]
		}
		out = append(out, Violation{
			Code: Endless, Task: last, Then: list.Items[last].Members[0].Value.Get("then") != nil,
			Suggestion: "go on conditionally: by if, or by a switch; or wait in between",
			Message: fmt.Sprintf("the tasks from %q to %q repeat each other without a condition and without a wait",
				list.Items[i].Members[0].Key, list.Items[last].Members[0].Key),
		})
	}
	return out
}

// waits reports whether a task, or one in it, waits or calls.
func waits(task *tree.Node) bool {
	for _, key := range []string{"wait", "listen", "call", "run"} {
		if task.Get(key) != nil {
			return true
		}
	}
	return anyOf(innerLists(task), waits)
}

// innerLists returns the lists of tasks in a task, without that of its catch; nil for one that it lacks.
func innerLists(task *tree.Node) []*tree.Node {
	lists := []*tree.Node{task.Get("do"), task.Get("try")}
	if fork := task.Get("fork"); fork != nil {
		lists = append(lists, fork.Get("branches"))
	}
	return lists
}

// anyOf reports whether a condition is true of a task in one of the lists.
func anyOf(lists []*tree.Node, is func(task *tree.Node) bool) bool {
	return slices.ContainsFunc(lists, func(list *tree.Node) bool {
		return list != nil && slices.ContainsFunc(list.Items, func(item *tree.Node) bool {
			return is(item.Members[0].Value)
		})
	})
}

func always(targets []string, name string) bool {
	return len(targets) > 0 && !slices.ContainsFunc(targets, func(way string) bool { return way != name })
}

// nextTasks returns the possible continuations after a task: directives, and names of tasks. It does not inspect inner
// lists: each may complete normally.
func nextTasks(task *tree.Node) []string {
	var out []string
	if task.Get("if") != nil {
		out = append(out, "continue")
	}
	if task.Get("raise") != nil {
		return out
	}
	if cases := task.Get("switch"); cases != nil {
		for _, item := range cases.Items {
			one := item.Members[0].Value
			out = append(out, then(one))
			if one.Get("when") == nil {
				return append(out, casesAfter(cases, item)...)
			}
		}
	}
	if catch := task.Get("catch"); catch != nil && catch.Get("then") != nil {
		out = append(out, then(catch))
	}
	return append(out, then(task))
}

// casesAfter returns the continuations of the cases after one.
func casesAfter(cases, after *tree.Node) []string {
	var out []string
	for _, item := range cases.Items[slices.Index(cases.Items, after)+1:] {
		out = append(out, then(item.Members[0].Value))
	}
	return out
}

func then(n *tree.Node) string {
	if t := n.Get("then"); t != nil {
		return t.Text
	}
	return "continue"
}

// mayExit reports whether something in a task may end the run or raise an error of its own, or waits for events.
func mayExit(task *tree.Node) bool {
	if task.Get("raise") != nil || task.Get("listen") != nil {
		return true
	}
	lists := innerLists(task)
	if catch := task.Get("catch"); catch != nil {
		lists = append(lists, catch.Get("do"))
	}
	return slices.Contains(nextTasks(task), "end") || anyOf(lists, mayExit)
}
