package feed

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/test/platform"
)

// Evidence is the input of Judge. Only the feed may have published events for these targets.
type Evidence struct {
	Feed   *Feed
	Server *platform.Server
	// Starts are workflows of which every event starts a run.
	Starts []string
	// Wakes are runs that listen to every event until one ends them (see [Collector]); their output lists the events they
	// received.
	Wakes []string
	Limit time.Duration // until everything is delivered and every run has ended
}

// Verdict holds the measurements of Judge.
type Verdict struct {
	Events int
	// Latency is the time from sending an event to the creation of the row of its run.
	Latency []time.Duration
}

// Judge waits until every event has been delivered, and then checks: each has exactly one completed run of each
// workflow that it starts, with itself as the input, and there are no other runs; every run that it wakes received it
// once, in the order of positions. Positions are unique.
func Judge(t platform.T, e Evidence) Verdict {
	t.Helper()
	events := e.Feed.Accepted()
	if wrong := positions(events); len(wrong) > 0 {
		t.Fatalf("%s", firstOf(wrong))
	}
	v := Verdict{Events: len(events)}
	for _, workflow := range e.Starts {
		e.started(t, workflow, len(events))
		runs := e.Server.AllRuns(t, workflow, 500)
		inputs := e.inputs(t, runs)
		if wrong := compare(events, runs, inputs); len(wrong) > 0 {
			t.Fatalf("the runs of %s:\n%s", workflow, firstOf(wrong))
		}
		v.Latency = append(v.Latency, latencies(events, runs, inputs)...)
	}
	for _, run := range e.Wakes {
		r := e.Server.Await(t, run, e.Limit, "completed")
		if wrong := order(events, collected(t, r)); len(wrong) > 0 {
			t.Fatalf("the events of run %s:\n%s", run, firstOf(wrong))
		}
	}
	return v
}

// started waits until the expected number of runs exists and all have ended.
func (e Evidence) started(t platform.T, workflow string, want int) {
	t.Helper()
	deadline := time.Now().Add(e.Limit)
	for {
		runs := e.Server.AllRuns(t, workflow, 500)
		open := slices.IndexFunc(runs, func(r *signalboxv1.Run) bool { return r.GetStatus() != "completed" })
		switch {
		case len(runs) >= want && open < 0:
			return
		case time.Now().After(deadline) && len(runs) < want:
			t.Fatalf("not within %s: of %d events %d have started a run of %s", e.Limit, want, len(runs), workflow)
		case time.Now().After(deadline):
			t.Fatalf("not within %s: run %s is %s: %v", e.Limit, runs[open].GetId(), runs[open].GetStatus(),
				runs[open].GetError())
		}
		select {
		case <-time.After(200 * time.Millisecond):
		case <-t.Context().Done():
			t.Fatalf("stopped while waiting for runs of %s", workflow)
		}
	}
}

// given is an event as a run receives it.
type given struct {
	ID     string `json:"id"`
	Source string `json:"source"`
}

func (g given) String() string { return g.Source + " " + g.ID }

// inputs reads the events that runs were started with, by run.
func (e Evidence) inputs(t platform.T, runs []*signalboxv1.Run) map[string][]given {
	t.Helper()
	inputs := make(map[string][]given, len(runs))
	var mu sync.Mutex
	queue := make(chan string, len(runs))
	for _, r := range runs {
		queue <- r.GetId()
	}
	err := platform.Concurrently(len(runs), 8, func() error {
		id := <-queue
		res, err := platform.Read(t.Context(), e.Server.Runs.GetRun,
			&signalboxv1.GetRunRequest{Project: platform.DefaultProject, Id: id})
		if err != nil {
			return fmt.Errorf("read run %s: %w", id, err)
		}
		var events []given
		if err := json.Unmarshal([]byte(res.GetRun().GetInput().GetJson()), &events); err != nil {
			return fmt.Errorf("the input of run %s is no list of events: %w", id, err)
		}
		mu.Lock()
		defer mu.Unlock()
		inputs[id] = events
		return nil
	})
	if err != nil {
		t.Fatalf("%v", err)
	}
	return inputs
}

// positions lists events that share a position.
func positions(events []Event) []string {
	var wrong []string
	for i := 1; i < len(events); i++ {
		if events[i].Position == events[i-1].Position {
			wrong = append(wrong, fmt.Sprintf("events %s and %s were both accepted at position %d", events[i-1].ID, events[i].ID,
				events[i].Position))
		}
	}
	return wrong
}

// compare lists the differences between the events and the runs that they have started.
func compare(events []Event, runs []*signalboxv1.Run, inputs map[string][]given) []string {
	want := map[string]bool{}
	for _, e := range events {
		want[e.ID] = true
	}
	var wrong []string
	found := map[string]string{}
	for _, r := range runs {
		input := inputs[r.GetId()]
		if len(input) != 1 {
			wrong = append(wrong, fmt.Sprintf("run %s has %d events for its input", r.GetId(), len(input)))
			continue
		}
		id := input[0].ID
		if other, ok := found[id]; ok {
			wrong = append(wrong, fmt.Sprintf("event %s has started two runs: %s and %s", id, other, r.GetId()))
		}
		if !want[id] {
			wrong = append(wrong, fmt.Sprintf("run %s was started by event %s, which was not accepted", r.GetId(), input[0]))
		}
		found[id] = r.GetId()
	}
	for _, e := range events {
		if found[e.ID] == "" {
			wrong = append(wrong, fmt.Sprintf("event %s at position %d has started no run", e.ID, e.Position))
		}
	}
	slices.Sort(wrong)
	return wrong
}

func latencies(events []Event, runs []*signalboxv1.Run, inputs map[string][]given) []time.Duration {
	sent := map[string]time.Time{}
	for _, e := range events {
		sent[e.ID] = e.Sent
	}
	out := make([]time.Duration, 0, len(runs))
	for _, r := range runs {
		out = append(out, r.GetCreateTime().AsTime().Sub(sent[inputs[r.GetId()][0].ID]))
	}
	return out
}

// order lists the differences between the events that a run received and those that were accepted.
func order(events []Event, got []string) []string {
	positions := map[string]int64{}
	for _, e := range events {
		positions[e.ID] = e.Position
	}
	var wrong []string
	seen := map[string]bool{}
	last := int64(0)
	for _, id := range got {
		at, ok := positions[id]
		switch {
		case !ok:
			wrong = append(wrong, fmt.Sprintf("event %s was not accepted", id))
			continue
		case seen[id]:
			wrong = append(wrong, fmt.Sprintf("event %s came twice", id))
		case at < last:
			wrong = append(wrong, fmt.Sprintf("event %s at position %d came after that of position %d", id, at, last))
		}
		seen[id] = true
		last = max(last, at)
	}
	for _, e := range events {
		if !seen[e.ID] {
			wrong = append(wrong, fmt.Sprintf("event %s at position %d did not come", e.ID, e.Position))
		}
	}
	return wrong
}

func firstOf(wrong []string) string {
	const most = 8
	if len(wrong) > most {
		return strings.Join(wrong[:most], "\n") + fmt.Sprintf("\n… %d in all", len(wrong))
	}
	return strings.Join(wrong, "\n")
}

// Collector returns a document whose runs listen to every event of a type, until one of the type with the suffix ".end"
// arrives. The output is the list of the events' IDs, in the order of arrival.
func Collector(name, eventType string) string {
	return platform.Document(name, fmt.Sprintf(`  - collect:
      listen:
        to:
          any:
            - with: {type: %q}
          until:
            one:
              with: {type: %q}
        read: envelope
      output:
        as: "${ [.[] | .id] }"
`, eventType, eventType+".end"))
}

// collected returns the output of a run of a [Collector].
func collected(t platform.T, r *signalboxv1.Run) []string {
	t.Helper()
	var ids []string
	if err := json.Unmarshal([]byte(r.GetOutput().GetJson()), &ids); err != nil {
		t.Fatalf("the output of run %s is no list of IDs: %v", r.GetId(), err)
	}
	return ids
}

// Starter returns a document of which every event of a type starts a run of one step.
func Starter(name, eventType string) string {
	return platform.Document(name, "  - note:\n      set: {seen: true}\n",
		fmt.Sprintf("schedule:\n  on:\n    one:\n      with: {type: %q}\n", eventType))
}
