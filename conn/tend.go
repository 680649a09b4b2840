package conn

import (
	"time"

	"github.com/signalbox-dev/signalbox/conn/internal/classify"
	"github.com/signalbox-dev/signalbox/conn/internal/machine"
	"github.com/signalbox-dev/signalbox/conn/internal/traffic"
	"github.com/signalbox-dev/signalbox/conn/internal/workerset"
)

// tend starts the worker sets that have no worker, whose worker has died, or whose worker is left from an older
// generation, each at its own pace, and reports to the machine whether all of them poll and whether requests are served.
func (l *loop) tend() {
	if !up(l.machine.View(time.Now()).State) {
		l.traffic.Reset() // requests that an outage met say nothing about what comes after it
		return
	}
	now := time.Now()
	all := true
	for _, one := range l.sets.List() {
		all = all && one.Status(true).Polling
		if !one.Wanting(now, l.current.number) {
			continue
		}
		if !one.Take() {
			continue // somebody is at it
		}
		if died := one.Obituary(); died != nil {
			l.log.Error("Worker has died, replacing it", "worker", one.Name, "error", died)
		}
		l.replace(one)
	}
	switch {
	case all:
		l.silent = time.Time{}
	case l.silent.IsZero():
		l.silent = now
	}
	l.tell(machine.Polling{OK: l.silent.IsZero() || now.Sub(l.silent) < silentFor})
	verdict, why := l.traffic.Judge()
	l.tell(machine.Requests{Late: verdict == traffic.Late, Failing: verdict == traffic.Failing, Err: why})
}

// replace starts a worker of a set, whose turn it holds, on the current client.
func (l *loop) replace(one *workerset.Set) {
	g := l.current
	l.joined.Go(func() {
		r, err := one.Start(g.link, g.number)
		if err != nil {
			first := one.Failed(err, time.Now()) == 1
			one.Give()
			if first {
				l.log.Error("Failed to start worker", "worker", one.Name, "generation", g.number, "error", err)
			}
			if classify.Suspicious(err) {
				l.signals.Raise(&l.signals.Suspected)
			}
			return
		}
		before, ok := one.Put(r)
		one.Give()
		if !ok {
			before = r // the set was removed meanwhile
		}
		l.log.Info("Worker started", "worker", one.Name, "task_queues", r.Queues(), "generation", g.number)
		if before != nil {
			pause(l.life, l.opts.DrainGrace)
			before.Stop()
		}
	})
}
