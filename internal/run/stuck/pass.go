package stuck

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/signalbox-dev/signalbox/internal/logger"
	"github.com/signalbox-dev/signalbox/internal/run/problem"
	"github.com/signalbox-dev/signalbox/internal/run/stuck/verdict"
	"github.com/signalbox-dev/signalbox/internal/worker"
)

const (
	// page is how many rows are read at a time, changesAtOnce how many verdicts are changed in one transaction.
	page, changesAtOnce = 1000, 200
	// mostCandidates bounds the runs that are looked at in one pass; those that are overdue for longest come first.
	mostCandidates = 100_000
	// confirmEvery is how old a verdict's last look may become before it is written anew.
	confirmEvery = 15 * time.Second
	// listEvery is how often Temporal's list of problems is read, forgetEvery how often failures of runs that have ended are
	// forgotten.
	listEvery, forgetEvery = 10 * time.Second, time.Minute
	// failedFor is for how long a failure makes a run that waits worth a question: Temporal has a task that fails tried again within
	// ten minutes.
	failedFor = 15 * time.Minute
	// knownFor is how long a worker without signs of life is remembered, maxWorkers how many there may be.
	knownFor   = 10 * time.Minute
	maxWorkers = 1000
)

// pass is one look at all runs that may be stuck.
type pass struct {
	w          *Watcher
	now        time.Time
	connection verdict.Connection
	workers    []worker.Worker
	live       map[string]bool
	queues     map[string]*verdict.Queue
	given      map[string]Given
	// changes are by project, checked the verdicts that stay, counts what there is after it.
	changes map[string][]Change
	checked []string
	counts  map[string]int64
	// poison are the runs, by project, that were poison in an earlier pass and still are.
	poison map[string][]Candidate
	// mayAsk is how many questions about single runs may be asked.
	mayAsk int
	// next is when the next run is overdue.
	next time.Time
}

// Look makes one pass now. It is for whoever has seen to it that nobody else does.
func (w *Watcher) Look(ctx context.Context) error {
	p := &pass{
		w: w, now: w.opts.Now(), connection: w.connection(), queues: map[string]*verdict.Queue{}, given: map[string]Given{},
		changes: map[string][]Change{}, poison: map[string][]Candidate{}, counts: map[string]int64{}, mayAsk: mayAsk(w.opts.Now().Sub(w.lookedAt)),
	}
	w.lookedAt, w.nextAt = p.now, time.Time{}
	for _, code := range problem.Codes() {
		p.counts[code] = 0
	}
	if err := p.read(ctx); err != nil {
		return err
	}
	candidates, err := p.candidates(ctx)
	if err != nil {
		return err
	}
	w.nextAt = p.next
	p.ask(ctx, candidates)
	p.judge(ctx, candidates)
	if err := p.write(ctx); err != nil {
		return err
	}
	w.count(p.counts)
	p.endings(ctx)
	if p.now.Sub(w.forgotAt) >= forgetEvery {
		w.forgotAt = p.now
		return w.store.ForgetFailures(ctx)
	}
	return nil
}

// read reads the verdicts there are, and the workers.
func (p *pass) read(ctx context.Context) (err error) {
	for after := ""; ; {
		list, err := p.w.store.Verdicts(ctx, after, page)
		if err != nil {
			return err
		}
		for _, g := range list {
			p.given[g.RunID] = g
		}
		if len(list) < page {
			break
		}
		after = list[len(list)-1].RunID
	}
	if p.workers, err = p.w.platform.ListWorkers(ctx, knownFor, maxWorkers); err != nil {
		return err
	}
	live, err := p.w.platform.ListWorkers(ctx, worker.AliveFor, maxWorkers)
	p.live = make(map[string]bool, len(live))
	for _, l := range live {
		p.live[l.ServerID] = true
	}
	return err
}

// candidates are the runs whose progress is overdue. It sees when the next one will be.
func (p *pass) candidates(ctx context.Context) ([]Candidate, error) {
	before := p.now.Add(lookEvery - p.w.opts.After)
	list, err := p.w.store.OverdueWaits(ctx, before, mostCandidates)
	if err != nil {
		return nil, err
	}
	seen := make(map[string]bool, len(list))
	var due []Candidate
	add := func(c Candidate) {
		since, is := verdict.Due(c.Row, p.now, p.w.opts.After)
		switch at := since.Add(p.w.opts.After); {
		case is && !seen[c.ID]:
			seen[c.ID] = true
			due = append(due, c)
		case !is && !since.IsZero() && (p.next.IsZero() || at.Before(p.next)):
			p.next = at
		}
	}
	for _, c := range list {
		add(c)
	}
	for after := (Cursor{}); len(due) < mostCandidates; {
		list, err := p.w.store.Overdue(ctx, before, after, page)
		if err != nil {
			return nil, err
		}
		for _, c := range list {
			add(c)
		}
		if len(list) < page {
			break
		}
		last := list[len(list)-1]
		after = Cursor{StatusAt: last.StatusAt, ID: last.ID}
	}
	list, err = p.suspects(ctx, seen)
	return append(due, list...), err
}

// suspects are those of the other runs that may wait for as long as it takes, and of which something tells that they do not take note of
// what they should.
func (p *pass) suspects(ctx context.Context, seen map[string]bool) ([]Candidate, error) {
	list, err := p.w.store.Suspects(ctx, p.now.Add(-failedFor), mostCandidates)
	if err != nil {
		return nil, err
	}
	list = slices.DeleteFunc(list, func(c Candidate) bool { return seen[c.ID] })
	for _, c := range list {
		seen[c.ID] = true
	}
	var others []string
	for _, id := range slices.Sorted(maps.Keys(p.w.problems)) {
		if !seen[id] {
			others = append(others, id)
		}
	}
	reported, err := p.w.store.Waiting(ctx, others)
	return append(list, reported...), err
}

// ask asks Temporal what answers for many runs at once.
func (p *pass) ask(ctx context.Context, candidates []Candidate) {
	w := p.w
	if !p.connection.Usable {
		return
	}
	p.remember()
	for _, c := range candidates {
		if _, asked := p.queues[c.Project]; !asked {
			p.queues[c.Project] = p.queue(ctx, c.Project)
		}
	}
	if p.now.Sub(w.listedAt) < listEvery {
		return
	}
	w.listedAt = p.now
	problems, err := w.engine.Problems(ctx)
	if err != nil {
		logger.FromContext(ctx).DebugContext(ctx, "Temporal's list of problems could not be read", "error", err)
	}
	w.problems = problems
}

// remember keeps what workers said of themselves. One that has left the list has stopped.
func (p *pass) remember() {
	own := p.w.opts.Fingerprint()
	listed := make(map[string]bool, len(p.workers))
	for _, k := range p.workers {
		listed[k.ServerID] = true
		p.w.known[k.ServerID] = verdict.Worker{
			Identity: k.ServerID, Live: p.live[k.ServerID], Here: !own.Differs(k.Fingerprint), Place: k.Fingerprint.String(),
		}
	}
	for id, k := range p.w.known {
		if listed[id] {
			continue
		}
		if k.Live = false; len(p.w.known) > 2*maxWorkers {
			delete(p.w.known, id)
			continue
		}
		p.w.known[id] = k
	}
}

// queue is what is known of a project's queue; nil when Temporal does not answer.
func (p *pass) queue(ctx context.Context, project string) *verdict.Queue {
	state, err := p.w.engine.Queue(ctx, project)
	if err != nil {
		logger.FromContext(ctx).DebugContext(ctx, "Task queue could not be described", "project", project, "error", err)
		return nil
	}
	all := slices.Collect(maps.Values(p.w.known))
	var serving []verdict.Worker
	for _, k := range p.workers {
		if len(k.Projects) == 0 || slices.Contains(k.Projects, project) {
			serving = append(serving, p.w.known[k.ServerID])
		}
	}
	q := &verdict.Queue{Name: state.Name, Elsewhere: verdict.Elsewhere(serving)}
	q.Workflow = verdict.Count(state.Workflow.Pollers, all, p.now)
	q.Activity = verdict.Count(state.Activity.Pollers, all, p.now)
	q.Workflow.Backlog, q.Workflow.Age = state.Workflow.Backlog, state.Workflow.Age
	q.Activity.Backlog, q.Activity.Age = state.Activity.Backlog, state.Activity.Age
	return q
}

// judge judges every candidate, and takes back what was said of the others.
func (p *pass) judge(ctx context.Context, candidates []Candidate) {
	decisions := make([]verdict.Decision, len(candidates))
	var unclear []int
	for i, c := range candidates {
		if decisions[i] = verdict.Of(p.facts(c)); decisions[i].Action == verdict.Ask {
			unclear = append(unclear, i)
		}
	}
	p.describe(ctx, candidates, unclear, decisions)
	for i, c := range candidates {
		before, was := p.given[c.ID]
		delete(p.given, c.ID)
		switch d := decisions[i]; {
		case d.Action == verdict.Give:
			p.give(c, before, was, d.Verdict)
		case !was:
		case d.Action == verdict.Clear:
			p.takeBack(before)
		case before.Moved:
			p.give(c, before, was, before.Verdict)
		default: // what was said before stays
			p.counts[before.Code]++
		}
	}
	for _, id := range slices.Sorted(maps.Keys(p.given)) {
		p.takeBack(p.given[id])
	}
}

func (p *pass) facts(c Candidate) verdict.Facts {
	return verdict.Facts{
		Now: p.now, After: p.w.opts.After, Row: c.Row, Connection: p.connection, Queue: p.queues[c.Project], Reported: p.w.problems[c.ID],
		Failure: c.Failure, PoisonAfter: p.w.opts.PoisonAfter,
	}
}

// described adds what Temporal said of a run when it was asked.
func (p *pass) described(c Candidate, x verdict.Execution) verdict.Facts {
	f := p.facts(c)
	_, ours := p.w.known[x.FailedBy]
	f.Execution, f.Foreign = &x, x.FailedBy != "" && !ours
	return f
}

// give gives a verdict, or confirms it. How much waits is another number in every pass, which alone is written when it is confirmed.
func (p *pass) give(c Candidate, before Given, was bool, v verdict.Verdict) {
	p.counts[v.Code]++
	if was && !before.Moved && before.Code == problem.Poison && v.Code == problem.Poison {
		p.poison[c.Project] = append(p.poison[c.Project], c)
	}
	if was && !before.Moved && before.Code == v.Code && before.Since.Equal(v.Since.Truncate(time.Microsecond)) {
		same, due := before.Detail == v.Detail && before.Advice == v.Advice && before.Cause == v.Cause, p.now.Sub(before.CheckedAt) >= confirmEvery
		switch {
		case same && due:
			p.checked = append(p.checked, c.ID)
			return
		case same, v.Code == problem.Backlog && !due:
			return
		}
	}
	p.changes[c.Project] = append(p.changes[c.Project], Change{
		RunID: c.ID, Sequence: c.Sequence, To: &v, Events: given(c, before, was, v, p.now),
	})
}

func (p *pass) takeBack(g Given) {
	p.changes[g.Project] = append(p.changes[g.Project], Change{RunID: g.RunID, Sequence: g.Sequence, Events: takenBack(g, p.now)})
}

// write makes the changes, project by project. What cannot be written does not hold up the others.
func (p *pass) write(ctx context.Context) error {
	var failed error
	for _, project := range slices.Sorted(maps.Keys(p.changes)) {
		for part := range slices.Chunk(p.changes[project], changesAtOnce) {
			done, err := p.w.store.ChangeVerdicts(ctx, project, p.now, part)
			if err != nil {
				failed = errors.Join(failed, err)
				break
			}
			p.told(ctx, project, done)
		}
	}
	for part := range slices.Chunk(p.checked, page) {
		failed = errors.Join(failed, p.w.store.CheckVerdicts(ctx, part, p.now))
	}
	return failed
}

// told tells those who wait for the runs, and for the events.
func (p *pass) told(ctx context.Context, project string, done Changed) {
	if len(done.Runs) == 0 {
		return
	}
	for _, id := range done.Runs {
		p.w.opts.Changes.Notify(id)
	}
	p.w.opts.Committed(ctx, project, done.Wake)
	logger.FromContext(ctx).InfoContext(ctx, "Verdicts about runs without progress have changed", "project", project, "runs", len(done.Runs))
}
