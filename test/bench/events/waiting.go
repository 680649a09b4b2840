package events

import (
	"fmt"
	"time"

	"github.com/signalbox-dev/signalbox/test/bench/compare"
	"github.com/signalbox-dev/signalbox/test/bench/figure"
	"github.com/signalbox-dev/signalbox/test/platform"
)

// Waiting compares an event that wakes one among many waiting runs with one that wakes one among few, and has what
// the waiting runs use meanwhile.
type Waiting struct {
	plan         Plan
	few, many    int
	fewer, among compare.Series
	earlier      earlier
	idle         float64 // processor time of the server per second while all wait, in milliseconds
	// server and temporal are memory in megabytes, before the runs and while all wait.
	server, temporal span
}

// span is a quantity before and after.
type span struct{ before, after float64 }

// MeasureWaiting measures on SQLite. The runs of both sides wait at the same time on one server, for events of two
// types. It calls progress with the name of each part that begins.
func MeasureWaiting(t platform.T, p Plan, progress func(string)) Waiting {
	scope := platform.NewScope(t.Context(), t.Name())
	defer scope.Close()
	s := newEnvironment(scope, platform.SQLite(scope))
	few := p.Wakes * p.Rounds
	l := Waiting{plan: p, few: few, many: p.Waiting}
	l.server.before, l.temporal.before = s.server.Memory(scope), s.temporal.Memory(scope)
	small, large := s.newSleepers(scope, "few", few), s.newSleepers(scope, "many", p.Waiting)
	progress(fmt.Sprintf("%d runs that wait", p.Waiting+few))
	large.start(scope, p.Waiting)
	small.start(scope, few)
	l.idle = idle(scope, s.server)
	l.server.after, l.temporal.after = s.server.Memory(scope), s.temporal.Memory(scope)
	progress("an event to one of them")
	series := compare.Measure(scope, compare.Work{Rounds: p.Rounds, Runs: p.Wakes, Callers: 1}, s.does(nil, small.wake),
		s.does(nil, large.wake))
	l.fewer, l.among = series[0], series[1]
	progress("an event that has arrived before")
	l.earlier = s.measureEarlier(scope, p)
	return l
}

// idle returns the processor time that a server uses per second without requests, in milliseconds.
func idle(t platform.T, server *platform.Server) float64 {
	const length = 30 * time.Second
	before := server.CPU(t)
	select {
	case <-time.After(length):
	case <-t.Context().Done():
	}
	return milliseconds(server.CPU(t)-before) / length.Seconds()
}

const (
	wakeAim   = 5   // milliseconds of processor time
	memoryAim = 200 // megabytes
)

// Aims are the figures with aims that this section measures.
func (l Waiting) Aims() []figure.Aim {
	return []figure.Aim{
		{
			What: fmt.Sprintf("processor time of the server for an event that wakes one among %d waiting runs", l.many),
			Aim:  fmt.Sprintf("< %d ms", wakeAim),
			Seen: fmt.Sprintf("%.1f ms", l.among.CPU()), Met: l.among.CPU() < wakeAim,
		},
		{
			What: fmt.Sprintf("memory of the server while %d runs wait", l.many+l.few),
			Aim:  fmt.Sprintf("< %d MB", memoryAim),
			Seen: fmt.Sprintf("%.0f MB", l.server.after), Met: l.server.after < memoryAim,
		},
	}
}

// Markdown writes the section's body, one line per call.
func (l Waiting) Markdown(line func(format string, args ...any)) {
	line("One event at a time wakes one run, which it finds by type and a correlation key; both kinds wait on one " +
		"server (API and worker) at the same")
	line("time (SQLite), of which `worker.cache` has room for about 680: the others continue from their history.")
	line("")
	line("| what | p50, p95, p99, longest | processor time: Signalbox + Temporal | aim | |")
	line("|---|---|---|---|---|")
	line("| one of %d runs that wait for events of its type | %s | %s | | |", l.few, figure.Four(l.fewer.Times()),
		l.fewer.CPUs())
	line("| one of %d | %s | %s | < %d ms of Signalbox | %s |", l.many, figure.Four(l.among.Times()), l.among.CPUs(),
		wakeAim, figure.Verdict(l.among.CPU() < wakeAim))
	line("")
	line("%d rounds of %d events of each kind. The processor time contains what the server uses without any event: %.0f "+
		"ms per second while all wait.", l.plan.Rounds, l.plan.Wakes, l.idle)
	line("")
	line("| memory | before | while %d runs wait | for each | aim | |", l.many+l.few)
	line("|---|---|---|---|---|---|")
	l.memory(line, "server", l.server, fmt.Sprintf("< %d MB", memoryAim), figure.Verdict(l.server.after < memoryAim))
	l.memory(line, "Temporal, one process with SQLite", l.temporal, "", "")
	l.earlier.markdown(line, l.plan.Waiting)
}

func (l Waiting) memory(line func(format string, args ...any), what string, m span, aim, verdict string) {
	line("| %s | %.0f MB | %.0f MB | %.1f kB | %s | %s |", what, m.before, m.after,
		1000*(m.after-m.before)/float64(l.many+l.few), aim, verdict)
}
