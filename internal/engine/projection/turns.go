package projection

// turns orders runs: their task queues take turns, and within a queue the runs are ordered by arrival. A queue with a
// few runs thus waits for one run of each other queue, however many those have.
type turns struct {
	queues []string // with runs, the next one first
	runs   map[string][]string
}

// add appends a run to its task queue.
func (t *turns) add(queue, id string) {
	if t.runs == nil {
		t.runs = map[string][]string{}
	}
	if len(t.runs[queue]) == 0 {
		t.queues = append(t.queues, queue)
	}
	t.runs[queue] = append(t.runs[queue], id)
}

// first returns the next run.
func (t *turns) first() (id string, ok bool) {
	if len(t.queues) == 0 {
		return "", false
	}
	return t.runs[t.queues[0]][0], true
}

// next removes the first run, and passes the turn to the next task queue.
func (t *turns) next() {
	queue := t.queues[0]
	t.queues = t.queues[1:]
	if t.runs[queue] = t.runs[queue][1:]; len(t.runs[queue]) > 0 {
		t.queues = append(t.queues, queue)
		return
	}
	delete(t.runs, queue)
}
