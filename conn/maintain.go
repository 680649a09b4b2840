package conn

import (
	"time"

	"github.com/signalbox-dev/signalbox/conn/internal/classify"
	"github.com/signalbox-dev/signalbox/conn/internal/fsm"
	"github.com/signalbox-dev/signalbox/conn/internal/traffic"
	"github.com/signalbox-dev/signalbox/conn/internal/workers"
	"github.com/signalbox-dev/signalbox/internal/loop"
)

// maintainWorkers starts the worker sets that have no worker, whose worker has died, or whose worker belongs to an
// older generation, each with its own back-off. It reports to the machine whether all of them poll, and whether
// requests are served.
func (l *eventLoop) maintainWorkers() {
	if !l.machine.View(time.Now()).State.Up() {
		l.traffic.Reset() // requests that an outage affected say nothing about the connection after it
		return
	}
	now := time.Now()
	all := true
	for _, set := range l.sets.List() {
		all = all && set.Status(true).Polling
		if !set.NeedsWorker(now, l.current.number) {
			continue
		}
		if !set.TryLock() {
			continue // a start of it is under way
		}
		if died := set.TakeDeath(); died != nil {
			l.log.Error("Worker has died, replacing it", "worker", set.Name, "error", died)
		}
		l.startWorker(set)
	}
	switch {
	case all:
		l.notPollingSince = time.Time{}
	case l.notPollingSince.IsZero():
		l.notPollingSince = now
	}
	l.handle(fsm.Polling{OK: l.notPollingSince.IsZero() || now.Sub(l.notPollingSince) < notPollingAfter})
	verdict, reason := l.traffic.Verdict()
	l.handle(fsm.Requests{Late: verdict == traffic.Late, Failing: verdict == traffic.Failing, Err: reason})
}

// startWorker starts a worker of a set on the current client, and stops the previous one. The caller has locked the
// set.
func (l *eventLoop) startWorker(set *workers.Set) {
	g := l.current
	l.tasks.Go(func() {
		r, err := set.Start(g.client, g.number)
		if err != nil {
			first := set.StartFailed(err, time.Now()) == 1
			set.Unlock()
			if first {
				l.log.Error("Failed to start worker", "worker", set.Name, "generation", g.number, "error", err)
			}
			if classify.SuggestsOutage(err) {
				l.signals.raise(&l.signals.suspected)
			}
			return
		}
		before, ok := set.Replace(r)
		set.Unlock()
		if !ok {
			before = r // the set was removed meanwhile
		}
		l.log.Info("Worker started", "worker", set.Name, "task_queues", r.TaskQueues(), "generation", g.number)
		if before != nil {
			loop.Sleep(l.lifetime, l.opts.DrainGrace)
			before.Stop()
		}
	})
}
