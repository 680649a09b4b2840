package systemcmd

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/cli/invocation"
	"github.com/signalbox-dev/signalbox/internal/cli/output"
	"github.com/signalbox-dev/signalbox/internal/terminal"
)

// States of the connection and the breaker, as the API spells them.
const (
	stateConnecting = "connecting"
	stateConnected  = "connected"
	stateDegraded   = "degraded"
	stateDown       = "down"
	breakerClosed   = "closed"
	breakerHalfOpen = "half_open"
	dependencyUp    = "up"
)

// usable reports whether runs can be started over a connection.
func usable(c interface{ GetState() string }) bool {
	return c.GetState() == stateConnected || c.GetState() == stateDegraded
}

// printStatus prints the verdict, then the facts, then the workers. Ages are by the server's clock.
func printStatus(s *invocation.Invocation, status *signalboxv1.GetStatusResponse) error {
	now := s.Now()
	if status.GetTime() != nil {
		now = status.GetTime().AsTime()
	}
	c := status.GetConnection()
	if err := write(s.Out, verdict(c, now, s.Style())+"\n\n"); err != nil {
		return err
	}
	if err := output.Card(s.Out, s.Style(), facts(status, now)); err != nil {
		return err
	}
	if err := printWorkerSets(s, c.GetWorkerSets(), now); err != nil {
		return err
	}
	if err := printWorkers(s, status, now); err != nil {
		return err
	}
	return printRunners(s, status, now)
}

// verdict is the connection in one line.
func verdict(c *signalboxv1.Connection, now time.Time, style output.Style) string {
	line := fmt.Sprintf("Temporal %s (%s): %s", terminal.Line(c.GetAddress()), terminal.Line(c.GetNamespace()),
		style.Status(c.GetState()))
	since := c.GetSince()
	if c.GetState() == stateConnected && c.GetStatistics().GetConnectedSince() != nil {
		since = c.GetStatistics().GetConnectedSince() // a spell of slowness is no end of the connection
	}
	if since != nil {
		line += " for " + output.Span(now.Sub(since.AsTime()))
	}
	switch c.GetState() {
	case stateConnected:
		return fmt.Sprintf("%s, generation %d", line, c.GetGeneration())
	case stateDegraded:
		return fmt.Sprintf("%s (%s), generation %d", line, words(c.GetKind()), c.GetGeneration())
	case stateConnecting, stateDown:
		if c.GetKind() != "" {
			line += " (" + words(c.GetKind()) + ")"
		}
		if c.GetLastError() != "" {
			line += ": " + terminal.Line(c.GetLastError())
		}
		if next := c.GetNextAttemptTime(); next != nil {
			line += "; next attempt in " + output.Span(next.AsTime().Sub(now))
		}
	}
	return line
}

// words writes one of the API's words as people do.
func words(word string) string { return strings.ReplaceAll(terminal.Line(word), "_", " ") }

func facts(status *signalboxv1.GetStatusResponse, now time.Time) []output.Field {
	c := status.GetConnection()
	server := fmt.Sprintf("%s, version %s, %s", status.GetServerId(), status.GetVersion(),
		strings.Join(status.GetRoles(), " and "))
	if status.GetStartTime() != nil {
		server += ", up for " + output.Span(now.Sub(status.GetStartTime().AsTime()))
	}
	fields := []output.Field{
		{Name: "server", Value: server}, {Name: "processors", Value: processors(status.GetProcessor())}}
	fields = append(fields, processorWarnings(status.GetProcessor())...)
	fields = append(fields,
		output.Field{Name: "maintenance", Value: maintenanceLine(status.GetMaintenance(), now)},
		output.Field{Name: "breaker", Value: breaker(c.GetBreaker(), now)},
		output.Field{Name: "outages", Value: outages(c)},
		output.Field{Name: "attempts",
			Value: fmt.Sprintf("%d to connect, %d connected", c.GetAttempts(), c.GetStatistics().GetConnections())})
	if usable(c) && c.GetLatency().AsDuration() > 0 {
		fields = append(fields, output.Field{Name: "check", Value: "answered in " + output.Took(c.GetLatency().AsDuration())})
	}
	if c.GetLastError() != "" && usable(c) { // while it is down, the verdict has it
		fields = append(fields, output.Field{
			Name: "last error", Value: ago(c.GetLastErrorTime(), now) + ": " + c.GetLastError()})
	}
	if c.GetDraining() > 0 {
		fields = append(fields, output.Field{Name: "draining", Value: output.Count(c.GetDraining(), "replaced generation")})
	}
	for _, d := range status.GetDependencies() {
		if d.GetState() == dependencyUp || d.GetName() == "temporal" {
			continue // the verdict has Temporal
		}
		text := words(d.GetState())
		if d.GetSince() != nil {
			text += " for " + output.Span(now.Sub(d.GetSince().AsTime()))
		}
		if d.GetTitle() != "" {
			text += ": " + d.GetTitle()
		}
		fields = append(fields, output.Field{Name: words(d.GetName()), Value: text + ": " + d.GetError()})
	}
	fields = append(fields, storeFields(status.GetStore())...)
	return append(fields,
		output.Field{Name: "queue", Value: queue(status.GetQueueMode())},
		output.Field{Name: "reconciler", Value: reconciler(status.GetReconciler(), now)})
}

// processors is what a process gets of its machine's processors; p is nil where the server reports none.
func processors(p *signalboxv1.Processor) string {
	if p == nil {
		return "unknown"
	}
	var facts []string
	if p.Used != nil {
		facts = append(facts, fmt.Sprintf("%.2f used", p.GetUsed()))
	}
	if p.Limit != nil {
		limit := "no limit"
		if p.GetLimit() > 0 {
			limit = fmt.Sprintf("limit %.2f", p.GetLimit())
		}
		facts = append(facts, limit)
	}
	if p.Throttled != nil && p.GetLimit() > 0 {
		facts = append(facts, fmt.Sprintf("throttled in %.0f %% of the periods", 100*p.GetThrottled()))
	}
	if p.Waiting != nil {
		facts = append(facts, fmt.Sprintf("%.1f threads wait for one", p.GetWaiting()))
	}
	return cmp.Or(strings.Join(facts, ", "), "unknown")
}

// processorWarnings are the warnings of a process that gets too little processor time.
func processorWarnings(p *signalboxv1.Processor) (warnings []output.Field) {
	if p.GetLimit() > 0 && p.GetLimit() < p.GetRequired() {
		warnings = append(warnings, output.Field{Name: "limit too low", Value: fmt.Sprintf(
			"the control group of this server allows %.2f processors, and it requires %.2f; raise the limit, or work takes "+
				"longer", p.GetLimit(), p.GetRequired())})
	}
	if p.GetShortage() != "" {
		warnings = append(warnings,
			output.Field{Name: "too slow", Value: "this server is short of processor time: " + p.GetShortage()})
	}
	return warnings
}

// mostClockSkew is the difference of the database's clock and the server's that is not worth a warning.
const mostClockSkew = 2 * time.Second

// storeFields are the facts of the database; f is nil where the server reports none.
func storeFields(f *signalboxv1.StoreFacts) []output.Field {
	if f == nil {
		return []output.Field{{Name: "database", Value: "unknown"}}
	}
	schema, size, latency := "unknown", "unknown", "unknown"
	if f.Schema != nil {
		schema = fmt.Sprint(f.GetSchema())
	}
	if f.Bytes != nil {
		size = output.Bytes(f.GetBytes())
	}
	if f.GetLatency() != nil {
		latency = output.Took(f.GetLatency().AsDuration())
	}
	database := fmt.Sprintf("%s %s, %s", f.GetDriver(), cmp.Or(f.GetVersion(), "of unknown version"), f.GetLocation())
	facts := fmt.Sprintf("schema %s (this server requires %d), size %s, answers in %s", schema, f.GetRequiredSchema(),
		size, latency)
	if f.GetError() != "" {
		facts += ": " + f.GetError()
	}
	var pools []string
	for _, p := range f.GetPools() {
		limit := "no limit"
		if p.GetLimit() > 0 {
			limit = fmt.Sprint(p.GetLimit())
		}
		use := fmt.Sprintf("%d of %s in use, %s", p.GetInUse(), limit, output.Count(p.GetWaits(), "wait"))
		if len(f.GetPools()) > 1 { // the name of a single one says nothing
			use = p.GetName() + " " + use
		}
		pools = append(pools, use)
	}
	fields := []output.Field{{Name: "database", Value: database}, {Name: "", Value: facts}}
	if skew := f.GetClockSkew().AsDuration(); skew.Abs() > mostClockSkew {
		direction := "ahead of"
		if skew < 0 {
			direction = "behind"
		}
		fields = append(fields, output.Field{Name: "clocks differ", Value: fmt.Sprintf(
			"the database's clock is %s %s this server's; synchronise both, or times and ages are wrong", output.Span(
				skew.Abs()), direction)})
	}
	return append(fields, output.Field{Name: "connections", Value: strings.Join(pools, "; ")})
}

func breaker(b *signalboxv1.Breaker, now time.Time) string {
	failures := output.Count(b.GetFailures(), "failure") + " in a row"
	if b.GetState() == breakerClosed {
		return "closed, " + failures
	}
	text := words(b.GetState())
	if b.GetOpenTime() != nil {
		text += " for " + output.Span(now.Sub(b.GetOpenTime().AsTime()))
	}
	text += ", " + failures
	if b.GetState() == breakerHalfOpen {
		return text + ", trying now"
	}
	if next := b.GetNextProbeTime(); next != nil {
		text += ", next probe in " + output.Span(next.AsTime().Sub(now))
	}
	return text
}

// outages counts from the same moments as the verdict: an outage that lasts has the length that the connection is down
// for.
func outages(c *signalboxv1.Connection) string {
	s := c.GetStatistics()
	text := fmt.Sprint(s.GetOutages())
	if s.GetOutages() > 0 {
		last := "last one"
		if c.GetState() == stateDown {
			last = "this one so far"
		}
		text += fmt.Sprintf(", %s %s, longest %s", last,
			output.Span(s.GetLastOutage().AsDuration()), output.Span(s.GetLongestOutage().AsDuration()))
	}
	return fmt.Sprintf("%s; since the start connected %s, not connected %s", text,
		output.Span(s.GetUptime().AsDuration()), output.Span(s.GetDowntime().AsDuration()))
}

func queue(q *signalboxv1.QueueMode) string {
	if !q.GetEnabled() && q.GetRuns() == 0 {
		return "off: runs are refused while Temporal is unavailable"
	}
	runs := fmt.Sprintf("%d of %d slots in use", q.GetRuns(), q.GetMaxRuns())
	if q.GetError() != "" {
		runs = "runs: " + q.GetError()
	}
	if !q.GetEnabled() {
		return "off, " + runs
	}
	return fmt.Sprintf("on, %s, each for %s at most", runs, output.Span(q.GetTtl().AsDuration()))
}

func reconciler(r *signalboxv1.Reconciler, now time.Time) string {
	if r.GetLastTime() == nil {
		return "has not run here; one worker of all does it at a time"
	}
	text := ago(r.GetLastTime(), now)
	if r.GetError() != "" {
		return text + ": " + r.GetError()
	}
	text += fmt.Sprintf(": %s compared, %s", output.Count(r.GetChecked(), "run"),
		output.Count(r.GetCorrections(), "difference"))
	if r.GetFailed() > 0 {
		text += fmt.Sprintf(", %d not compared", r.GetFailed())
	}
	if r.GetForeign() > 0 {
		text += fmt.Sprintf(", %s in Temporal without a row, which cannot be adopted", output.Count(r.GetForeign(), "run"))
	}
	if until := r.GetSearchedUntil(); until != nil {
		text += ", searching ended executions without a row: done up to " + output.Moment(until)
	}
	return text
}

func printWorkerSets(s *invocation.Invocation, sets []*signalboxv1.WorkerSet, now time.Time) error {
	if len(sets) == 0 {
		return nil
	}
	rows := make([]output.Row, len(sets))
	for i, set := range sets {
		rows[i] = output.Cells(
			"SERVES", set.GetName(), "RUNNING", yes(set.GetRunning()), "POLLING", yes(set.GetPolling()),
			"LAST POLL", ago(set.GetLastPollTime(), now), "GENERATION", fmt.Sprint(set.GetGeneration()),
			"STARTED", cmp.Or(past(set.GetStartTime(), now), "not started"), "+FAILURES", fmt.Sprint(set.GetFailures()),
			"+TASK QUEUES", strings.Join(set.GetTaskQueues(), ","), "ERROR", set.GetError(),
		)
	}
	if err := write(s.Out, "\nworkers of this server\n"); err != nil {
		return err
	}
	return output.Rows(s.Out, s.Format(), s.Style(), rows)
}

func printWorkers(s *invocation.Invocation, status *signalboxv1.GetStatusResponse, now time.Time) error {
	if text := status.GetWorkersError(); text != "" {
		return write(s.Out, "\nlive workers: "+terminal.Line(text)+"\n")
	}
	if len(status.GetWorkers()) == 0 {
		return write(s.Out, "\nno live workers\n")
	}
	rows := make([]output.Row, len(status.GetWorkers()))
	for i, w := range status.GetWorkers() {
		projects := "all"
		if len(w.GetProjects()) > 0 {
			projects = strings.Join(w.GetProjects(), ",")
		}
		rows[i] = output.Cells(
			"SERVER", w.GetServerId(), "HEARTBEAT", cmp.Or(past(w.GetLastBeatTime(), now), "unknown"),
			"ACCEPTS RUNS", yes(w.GetTakesRuns()), "PROJECTS", projects,
			"PROCESSORS", workerProcessors(w.GetProcessor()), "TEMPORAL", w.GetAddress(), "NAMESPACE", w.GetNamespace(),
			"+STARTED", cmp.Or(past(w.GetStartTime(), now), "unknown"), "+NAMESPACE ID", w.GetNamespaceId(),
			"+CONTRACT", w.GetContract(),
		)
	}
	if err := write(s.Out, "\nlive workers of all servers\n"); err != nil {
		return err
	}
	return output.Rows(s.Out, s.Format(), s.Style(), rows)
}

// workerProcessors is what a worker used of its limit, in one cell.
func workerProcessors(p *signalboxv1.Processor) string {
	if p == nil || p.Used == nil {
		return "unknown"
	}
	text := fmt.Sprintf("%.2f", p.GetUsed())
	if p.GetLimit() > 0 {
		text += fmt.Sprintf(" of %.2f", p.GetLimit())
	}
	if p.GetShortage() != "" {
		text += ", too little"
	}
	return text
}

func ago(t *timestamppb.Timestamp, now time.Time) string {
	return cmp.Or(past(t, now), "never")
}

// past is how long ago something was, where that is known.
func past(t *timestamppb.Timestamp, now time.Time) string {
	if t == nil {
		return ""
	}
	return output.Span(now.Sub(t.AsTime())) + " ago"
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
