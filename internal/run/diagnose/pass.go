package diagnose

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/signalbox-dev/signalbox/internal/logger"
	"github.com/signalbox-dev/signalbox/internal/run"
)

const (
	// page is how many rows are read at a time, changesPerTransaction how many verdicts are changed in one transaction.
	page, changesPerTransaction = 1000, 200
	// maxCandidates bounds the runs that one pass examines; the longest overdue come first.
	maxCandidates = 100_000
	// confirmEvery is the age of a verdict's last confirmation at which the confirmation is written again.
	confirmEvery = 15 * time.Second
	// listEvery is how often Temporal's list of problems is read, purgeEvery how often failures of runs that have ended
	// are deleted.
	listEvery, purgeEvery = 10 * time.Second, time.Minute
	// failureWindow is how long after a failure a waiting run is still examined: Temporal retries a failing task within
	// ten minutes.
	failureWindow = 15 * time.Minute
	// workerRetention is how long a worker without heartbeats is listed, maxWorkers how many workers are read.
	workerRetention = 10 * time.Minute
	maxWorkers      = 1000
)

// pass is one check of all runs that may be stuck.
type pass struct {
	w          *Watcher
	now        time.Time
	connection Connection
	workers    []Worker
	queues     map[string]*Queue
	// stored are the stored verdicts that the pass has not decided yet, by run ID.
	stored map[string]StoredVerdict
	// changes are by project. checked are the runs with confirmed verdicts.
	changes map[string][]Change
	checked []string
	// before and after are how many runs have a verdict, by project and code, before and after the pass. begun are the
	// verdicts that it sets, ended those that it removes, by the project and code of the verdict.
	before, after map[group]int
	begun, ended  map[group][]announced
	// carriers are the runs with whose changes the events about many runs are written.
	carriers map[group]string
	// poison are the runs, by project, that were poison in the previous pass and still are.
	poison map[string][]Candidate
	// limited reports that the budget for diagnosis has refused a request: the pass sends no others. undecided are the
	// runs that it could not decide then.
	limited   atomic.Bool
	undecided int64
	// maxDescriptions is how many single runs the pass may describe.
	maxDescriptions int
	// next is when the next run becomes overdue; zero where none is known.
	next time.Time
}

// RunPass makes one pass now. The caller must ensure that no other process makes one at the same time.
func (w *Watcher) RunPass(ctx context.Context) error {
	p := &pass{
		w: w, now: w.opts.Now(), connection: w.connection(), queues: map[string]*Queue{}, stored: map[string]StoredVerdict{},
		changes: map[string][]Change{}, poison: map[string][]Candidate{},
		before: map[group]int{}, after: map[group]int{}, begun: map[group][]announced{}, ended: map[group][]announced{},
		carriers:        map[group]string{},
		maxDescriptions: maxDescriptions(w.opts.Now().Sub(w.lastPass)),
	}
	w.lastPass, w.nextAt = p.now, time.Time{}
	if err := p.read(ctx); err != nil {
		return err
	}
	candidates, err := p.candidates(ctx)
	if err != nil {
		return err
	}
	w.nextAt = p.next
	p.queryTemporal(ctx, candidates)
	p.decide(ctx, candidates)
	p.announce()
	if err := p.write(ctx); err != nil {
		return err
	}
	w.count(p.counts(), p.undecided)
	p.endPoison(ctx)
	if p.now.Sub(w.purgedAt) >= purgeEvery {
		w.purgedAt = p.now
		return w.store.ForgetFailures(ctx)
	}
	return nil
}

// read reads the stored verdicts and the workers.
func (p *pass) read(ctx context.Context) (err error) {
	for after := ""; ; {
		list, err := p.w.store.Verdicts(ctx, after, page)
		if err != nil {
			return err
		}
		for _, g := range list {
			p.stored[g.RunID] = g
			p.before[group{g.Project, g.Code}]++
		}
		if len(list) < page {
			break
		}
		after = list[len(list)-1].RunID
	}
	p.workers, err = ReadWorkers(ctx, p.w.platform, p.w.opts.Fingerprint())
	return err
}

// candidates returns the runs with overdue progress, and sets when the next one becomes overdue.
func (p *pass) candidates(ctx context.Context) ([]Candidate, error) {
	before := p.now.Add(passEvery - p.w.opts.After)
	list, err := p.w.store.OverdueWaits(ctx, before, maxCandidates)
	if err != nil {
		return nil, err
	}
	due, err := p.w.store.Left(ctx, maxCandidates)
	if err != nil {
		return nil, err
	}
	seen := make(map[string]bool, len(list))
	for _, c := range due {
		seen[c.ID] = true
	}
	add := func(c Candidate) {
		since, is := Due(c.Row, p.now, p.w.opts.After)
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
	for after := (Cursor{}); len(due) < maxCandidates; {
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

// suspects returns further waiting runs, with waits that are not overdue, for which a failure, a requested cancellation
// or Temporal's list of problems indicates that they do not process their workflow tasks.
func (p *pass) suspects(ctx context.Context, seen map[string]bool) ([]Candidate, error) {
	list, err := p.w.store.Suspects(ctx, p.now.Add(-failureWindow), maxCandidates)
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

// queryTemporal reads the states of task queues and the list of problems, which decide many runs at once.
func (p *pass) queryTemporal(ctx context.Context, candidates []Candidate) {
	w := p.w
	if !p.connection.Usable {
		return
	}
	p.updateWorkers()
	for _, c := range candidates {
		if _, read := p.queues[c.Project]; !read {
			p.queues[c.Project] = p.queue(ctx, c.Project)
		}
	}
	if p.limited.Load() || p.now.Sub(w.listedAt) < listEvery {
		return
	}
	w.listedAt = p.now
	problems, err := w.engine.Problems(ctx)
	if p.isLimited(err) {
		return // the previous list stays
	}
	if err != nil {
		logger.FromContext(ctx).DebugContext(ctx, "Temporal's list of problems could not be read", "error", err)
	}
	w.problems = problems
}

// updateWorkers updates the known workers from the list. A worker that is no longer listed has stopped.
func (p *pass) updateWorkers() {
	listed := make(map[string]bool, len(p.workers))
	for _, k := range p.workers {
		listed[k.Identity] = true
		p.w.workers[k.Identity] = k
	}
	for id, k := range p.w.workers {
		if listed[id] {
			continue
		}
		if k.Live = false; len(p.w.workers) > 2*maxWorkers {
			delete(p.w.workers, id)
			continue
		}
		p.w.workers[id] = k
	}
}

// isLimited reports whether a request was refused because the budget for diagnosis is used up.
func (p *pass) isLimited(err error) bool {
	if !errors.Is(err, ErrLimited) {
		return false
	}
	p.limited.Store(true)
	return true
}

// queue returns the state of a project's queue; nil when Temporal does not answer, or was not asked.
func (p *pass) queue(ctx context.Context, project string) *Queue {
	if p.limited.Load() {
		return nil
	}
	state, err := p.w.engine.Queue(ctx, project)
	if p.isLimited(err) {
		return nil
	}
	if err != nil {
		logger.FromContext(ctx).DebugContext(ctx, "Task queue could not be described", "project", project, "error", err)
		return nil
	}
	var serving []Worker
	for _, k := range p.workers {
		if k.Registered.Serves(project) {
			serving = append(serving, k)
		}
	}
	q := &Queue{Name: state.Name, Elsewhere: Elsewhere(serving), Shortage: Shortage(serving)}
	q.Workflow, q.Activity = state.Pollers(project, slices.Collect(maps.Values(p.w.workers)), p.now)
	return q
}

// decide decides every candidate, and clears the verdicts of the other runs.
func (p *pass) decide(ctx context.Context, candidates []Candidate) {
	decisions := make([]Decision, len(candidates))
	var unclear []int
	for i, c := range candidates {
		if decisions[i] = Decide(p.facts(c)); decisions[i].Action == Describe {
			unclear = append(unclear, i)
		}
	}
	p.describe(ctx, candidates, unclear, decisions)
	for i, c := range candidates {
		before, was := p.stored[c.ID]
		delete(p.stored, c.ID)
		if decisions[i].Action == Keep && p.limited.Load() {
			p.undecided++
		}
		switch d := decisions[i]; {
		case d.Action == Report:
			p.report(c, before, was, d.Verdict)
		case !was:
		case d.Action == Clear:
			p.clear(before)
		case before.Moved:
			p.report(c, before, was, before.Verdict)
		default: // the stored verdict stays
			p.after[group{before.Project, before.Code}]++
		}
	}
	for _, id := range slices.Sorted(maps.Keys(p.stored)) {
		p.clear(p.stored[id])
	}
}

// elsewhere returns the Temporal that has a run, where that is not the one of this process; zero otherwise.
func (p *pass) elsewhere(r Row) run.ClusterID {
	f := p.w.opts.Fingerprint()
	here := run.ClusterID{Address: f.Address, Namespace: f.Namespace, NamespaceID: f.NamespaceID}
	switch {
	case r.LeftIn != (run.ClusterID{}) && run.DifferentCluster(r.LeftIn, here):
		return r.LeftIn
	case r.LeftIn == (run.ClusterID{}) && p.w.opts.Elsewhere != nil:
		return p.w.opts.Elsewhere()
	}
	return run.ClusterID{}
}

func (p *pass) facts(c Candidate) Facts {
	return Facts{
		Now: p.now, After: p.w.opts.After, Row: c.Row, Elsewhere: p.elsewhere(c.Row), Connection: p.connection,
		Queue: p.queues[c.Project], Reported: p.w.problems[c.ID],
		Failure: c.Failure, PoisonAfter: p.w.opts.PoisonAfter,
	}
}

// described returns the facts of a candidate with its execution.
func (p *pass) described(c Candidate, x Execution) Facts {
	f := p.facts(c)
	_, registered := p.w.workers[x.FailedBy]
	f.Execution, f.Foreign = &x, x.FailedBy != "" && !registered
	return f
}

// counts returns how many runs have a verdict after the pass, by code, zeros included.
func (p *pass) counts() map[string]int64 {
	counts := map[string]int64{}
	for _, code := range run.Codes() {
		counts[code] = 0
	}
	for of, runs := range p.after {
		counts[of.code] += int64(runs)
	}
	return counts
}

// report sets or confirms a verdict. The size of a backlog, and what a worker gets of a processor, differ in every
// pass: a difference in them alone is written only with a confirmation.
func (p *pass) report(c Candidate, before StoredVerdict, was bool, v Verdict) {
	p.after[group{c.Project, v.Code}]++
	if was && !before.Moved && before.Code == run.Poison && v.Code == run.Poison {
		p.poison[c.Project] = append(p.poison[c.Project], c)
	}
	sameSince := was && before.Since.Equal(v.Since.Truncate(time.Microsecond))
	if sameSince && !before.Moved && before.Code == v.Code {
		same, due := before.Detail == v.Detail && before.Advice == v.Advice &&
			before.Cause == v.Cause, p.now.Sub(before.CheckedAt) >= confirmEvery
		switch {
		case same && due:
			p.checked = append(p.checked, c.ID)
			return
		case same, (v.Code == run.Backlog || v.Cause == run.ProcessorShortage || v.Cause == run.NoAnswer) &&
			v.Cause == before.Cause && !due:
			return
		}
	}
	at := p.change(c.Project, Change{RunID: c.ID, Sequence: c.Sequence, To: &v})
	if sameSince && before.Code == v.Code {
		return
	}
	data := stuckData(c, v)
	switch {
	case sameSince:
		data.Previous = before.Code
	case was:
		p.over(before, at)
	}
	of := group{c.Project, v.Code}
	p.begun[of] = append(p.begun[of], announced{change: at, data: data})
}

// change adds a change, and returns its place among those of the project.
func (p *pass) change(project string, c Change) int {
	p.changes[project] = append(p.changes[project], c)
	return len(p.changes[project]) - 1
}

// over notes that a verdict is removed by a change.
func (p *pass) over(g StoredVerdict, at int) {
	of := group{g.Project, g.Code}
	p.ended[of] = append(p.ended[of], announced{change: at, data: unstuckData(g)})
}

func (p *pass) clear(g StoredVerdict) {
	p.over(g, p.change(g.Project, Change{RunID: g.RunID, Sequence: g.Sequence}))
}

// write writes the changes by project. A failure in one project does not prevent those of the others.
func (p *pass) write(ctx context.Context) error {
	var failed error
	changed := map[string]bool{}
	for _, project := range slices.Sorted(maps.Keys(p.changes)) {
		for part := range slices.Chunk(p.changes[project], changesPerTransaction) {
			done, err := p.w.store.ChangeVerdicts(ctx, project, p.now, part)
			if err != nil {
				failed = errors.Join(failed, err)
				break
			}
			for _, id := range done.Runs {
				changed[id] = true
			}
			p.notify(ctx, project, done)
		}
	}
	p.noteAnnounced(changed)
	for part := range slices.Chunk(p.checked, page) {
		failed = errors.Join(failed, p.w.store.CheckVerdicts(ctx, part, p.now))
	}
	return failed
}

// notify notifies subscribers of the runs, and the project's dispatcher of the events.
func (p *pass) notify(ctx context.Context, project string, done Changed) {
	if len(done.Runs) == 0 {
		return
	}
	for _, id := range done.Runs {
		p.w.opts.Changes.Notify(id)
	}
	p.w.opts.Committed(ctx, project, done.Wake)
	logger.FromContext(ctx).InfoContext(ctx, "Verdicts about runs without progress have changed", "project", project,
		"runs", len(done.Runs))
}
