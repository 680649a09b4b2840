package problem

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/signalbox-dev/signalbox/conn/conntype"
	"github.com/signalbox-dev/signalbox/dispatch/dispatchtype"
	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/dispatcher"
	"github.com/signalbox-dev/signalbox/internal/health"
	"github.com/signalbox-dev/signalbox/internal/logger"
	"github.com/signalbox-dev/signalbox/internal/run"
)

// maxFailures is how many failed runs of a project are read: those of its newest failures.
const maxFailures = 20_000

// StuckGroup are the runs of a project that are stuck with the same code.
type StuckGroup struct {
	Project, Code string
	// Causes are those of failing tasks, sorted.
	Causes []string
	Count  int64
	// Since is when the first of them stopped, CheckedAt when one was last diagnosed.
	Since, CheckedAt time.Time
	// Detail and Advice are those of the newest run.
	Detail, Advice string
}

// FailureGroup are the runs of a project with the same failure group.
type FailureGroup struct {
	Project, Key       string
	Count, NotReplayed int64
	First, Last        time.Time
	// Hours counts them by the hour of their end, in hours since 1970.
	Hours map[int64]int64
	// Versions counts them by the version of the workflow.
	Versions map[string]int64
	// Newest is the newest of them: its workflow, version and error.
	Newest run.Run
}

// Source finds problems in the store. Each method returns the problems of these projects.
type Source interface {
	StuckGroups(ctx context.Context, projects []string) ([]StuckGroup, error)
	// FailureGroups returns the groups of the newest failures of each project, up to limit of them, that ended since then.
	// more has the projects with more failures.
	FailureGroups(ctx context.Context, projects []string, since time.Time,
		limit int) (groups []FailureGroup, more map[string]bool, err error)
	// DeadDeliveries counts the deliveries that are not attempted any more, by project, with the time of the oldest and of
	// the newest.
	DeadDeliveries(ctx context.Context, projects []string) ([]DeadDeliveries, error)
	// FailingWebhooks returns the webhooks whose attempts have failed since before the given time, that were paused after
	// failures, or that have given up deliveries.
	FailingWebhooks(ctx context.Context, projects []string, since time.Time) ([]FailingWebhook, error)
	// ForeignRuns returns the open runs in Temporal that have no row and cannot be adopted, of all projects.
	ForeignRuns(ctx context.Context) ([]run.ForeignRuns, error)
	// RetryingGroups returns the groups of which one run has so many failed attempts, or began the task before then.
	RetryingGroups(ctx context.Context, projects []string, attempts int, before time.Time) ([]RetryingGroup, error)
	// Runaways returns the workflows with more than a number of runs since then that descend from runs of the same
	// workflow, or follow one by its schedule.
	Runaways(ctx context.Context, projects []string, since time.Time, over int) ([]Runaway, error)
	// MissedSchedules returns the workflows whose schedules did not fire at their newest due time, without those that are
	// paused.
	MissedSchedules(ctx context.Context, projects []string) ([]MissedSchedule, error)
	// OpenRuns returns those of the projects that have open runs.
	OpenRuns(ctx context.Context, projects []string) ([]string, error)
	// Samples returns the newest runs of a problem of stuck or failed runs.
	Samples(ctx context.Context, f Finding, limit int) ([]string, error)
}

// DeadDeliveries are the dead deliveries of a project.
type DeadDeliveries struct {
	Project     string
	Count       int64
	First, Last time.Time
}

// FailingWebhook is a webhook that does not deliver.
type FailingWebhook struct {
	Project, Name string
	// Since is the first failed attempt since the last success; zero where it is not long ago. Error is that of the last
	// attempt.
	Since time.Time
	Error string
	// PausedAt is zero unless the webhook was paused after failures; PauseReason is why.
	PausedAt    time.Time
	PauseReason string
	// Pending counts the unfinished deliveries, Dead those that were given up, between FirstDead and LastDead.
	Pending, Dead       int64
	FirstDead, LastDead time.Time
}

// Dispatchers reads the dispatchers of all projects. [dispatcher.Service] implements it.
type Dispatchers interface {
	List(ctx context.Context) ([]dispatcher.Dispatcher, error)
}

// live is what exists at a moment.
type live struct {
	findings []Finding
	// ended are groups of failures, by the ID of their problem, which is resolved because each of their runs has a replay.
	ended map[string]Finding
	// unknown has the sources that could not be read, as sourceOf names them.
	unknown map[string]bool
	// errors describe them, one line each.
	errors []string
}

// The sources of problems.
const (
	fromConnection   = "connection"
	fromDependencies = "dependencies"
	fromServers      = "servers"
	fromDispatchers  = "dispatchers"
	fromDeliveries   = "deliveries"
	fromWebhooks     = "webhooks"
	fromRunaways     = "runaways"
	fromSchedules    = "schedules"
	fromReconciler   = "reconciler"
)

// sourceOf returns the source of a problem. Each dispatcher is a source.
func sourceOf(f Finding) string {
	switch {
	case f.Kind != Platform:
		return string(f.Kind)
	case f.Code == TemporalNotConnected:
		return fromConnection
	case f.Code == DependencyNotUp:
		return fromDependencies
	case f.Code == ServerLost:
		return fromServers
	case f.Code == DeliveriesDead:
		return fromDeliveries
	case f.Code == RunsForeign:
		return fromReconciler
	case f.Code == WorkflowRunaway:
		return fromRunaways
	case f.Code == ScheduleMissed:
		return fromSchedules
	case strings.HasPrefix(string(f.Code), webhookCodes):
		return fromWebhooks
	}
	return fromDispatchers + "." + f.Project
}

// resolved returns the finding of a record whose problem no longer exists, without what no longer holds: no failed run
// lacks a replay.
func (l *live) resolved(r Finding) Finding {
	if f, ok := l.ended[r.ID]; ok {
		return f
	}
	r.NotReplayed = 0
	return r
}

// isUnknown reports whether the source of a problem could not be read.
func (l *live) isUnknown(f Finding) bool {
	return l.unknown[sourceOf(f)] || strings.HasPrefix(sourceOf(f), fromDispatchers) && l.unknown[fromDispatchers]
}

// missing records that a source could not be read.
func (l *live) missing(ctx context.Context, source, what string, err error) {
	l.unknown[source] = true
	reason := "see the server's log for the cause"
	if f, ok := apperror.From(err); ok {
		reason = f.Message
	}
	logger.FromContext(ctx).WarnContext(ctx, "Problems are not known completely", "source", source, "error", err)
	l.errors = append(l.errors, what+" are not known: "+reason)
}

// find returns the problems of these projects, and those of no project.
func (s *Service) find(ctx context.Context, projects []string) *live {
	l, now := &live{ended: map[string]Finding{}, unknown: map[string]bool{}}, s.o.Now()
	connection := s.o.Connection()
	report := s.o.Health(ctx)
	l.addConnection(connection)
	leasesDown := l.addDependencies(report)
	s.addLostServers(ctx, l)
	if groups, err := s.o.Source.StuckGroups(ctx, projects); err != nil {
		l.missing(ctx, string(Stuck), "stuck runs", err)
	} else {
		for _, g := range groups {
			l.findings = append(l.findings, stuckFinding(g, s.o.TaskQueue(g.Project)))
		}
	}
	if groups, err := s.o.Source.RetryingGroups(ctx, projects, s.o.Retries.Attempts, now.Add(-s.o.Retries.After)); err != nil {
		l.missing(ctx, string(Retrying), "retries", err)
	} else {
		for _, g := range groups {
			l.findings = append(l.findings, retryingFinding(g))
		}
	}
	if f, err := s.failures.read(ctx, now, s.readFailures); err != nil {
		l.missing(ctx, string(Failure), "failed runs", err)
	} else {
		for _, g := range f.groups {
			switch found := failureFinding(g, f.more[g.Project], now); {
			case !slices.Contains(projects, g.Project):
			case g.NotReplayed > 0:
				l.findings = append(l.findings, found)
			default:
				l.ended[found.ID] = found
			}
		}
	}
	if dead, err := s.o.Source.DeadDeliveries(ctx, projects); err != nil {
		l.missing(ctx, fromDeliveries, "dead deliveries", err)
	} else {
		for _, d := range dead {
			l.findings = append(l.findings, deadFinding(d))
		}
	}
	if found, err := s.o.Source.Runaways(ctx, projects, now.Add(-RunawayWindow), s.o.RunawayPerMinute); err != nil {
		l.missing(ctx, fromRunaways, "workflows that start themselves", err)
	} else {
		for _, r := range found {
			l.findings = append(l.findings, runawayFinding(r))
		}
	}
	if missed, err := s.o.Source.MissedSchedules(ctx, projects); err != nil {
		l.missing(ctx, fromSchedules, "schedules", err)
	} else {
		for _, m := range missed {
			l.findings = append(l.findings, missedFinding(m))
		}
	}
	if failing, err := s.o.Source.FailingWebhooks(ctx, projects, now.Add(-webhookFailsFor)); err != nil {
		l.missing(ctx, fromWebhooks, "webhooks", err)
	} else {
		for _, w := range failing {
			l.findings = append(l.findings, webhookFindings(w)...)
		}
	}
	if foreign, err := s.o.Source.ForeignRuns(ctx); err != nil {
		l.missing(ctx, fromReconciler, "runs without a row", err)
	} else {
		l.addForeign(foreign, projects)
	}
	s.addDispatchers(ctx, l, projects, dispatcherFacts{connected: connection.State.Up(), leases: !leasesDown})
	return l
}

// failures are the groups of failed runs of all projects.
type failures struct {
	groups []FailureGroup
	// more has the projects with more failures than were read.
	more map[string]bool
}

func (s *Service) readFailures(ctx context.Context) (f failures, err error) {
	names, err := s.projects(ctx)
	if err != nil {
		return f, err
	}
	f.groups, f.more, err = s.o.Source.FailureGroups(ctx, names, s.o.Now().Add(-Window), maxFailures)
	return f, err
}

// addForeign adds the workflow versions that open runs in Temporal lack here. Runs that Signalbox did not start are no
// problem of its own. A project that does not exist has no problems, so that its runs are a problem of the platform.
func (l *live) addForeign(list []run.ForeignRuns, projects []string) {
	for _, g := range list {
		if g.Project == "" || !g.NoProject && !slices.Contains(projects, g.Project) {
			continue
		}
		f := Finding{
			ID: idOf(Platform, g.Project, string(RunsForeign), g.Workflow, g.Version), Kind: Platform, Code: RunsForeign,
			Project: g.Project, Workflow: g.Workflow,
			Title: "Runs in Temporal have no row: " +
				g.Why, Detail: fmt.Sprintf("%s@%s of project %s, for example %s", g.Workflow, g.Version, g.Project,
				strings.Join(g.RunIDs, ", ")),
			Advice: fmt.Sprintf("publish %s@%s in project %s, as it was: the runs are then adopted; or terminate them in "+
				"Temporal", g.Workflow, g.Version, g.Project),
			Count: int64(g.Open), First: g.Since, Runbook: runbook("ReconcileCorrections"),
		}
		if g.NoProject {
			f.ID, f.Project = idOf(Platform, "", string(RunsForeign), g.Project, g.Workflow, g.Version), ""
			f.Advice = fmt.Sprintf("create the project with `signalbox project create %s`, and publish %s@%s in it, as it "+
				"was: the runs are then adopted; or terminate them in Temporal",
				g.Project, g.Workflow, g.Version)
		}
		l.findings = append(l.findings, f)
	}
}

func (l *live) addConnection(c conntype.Status) {
	if c.State != conntype.Down && c.State != conntype.Degraded {
		return
	}
	f := Finding{
		ID: idOf(Platform, "", string(TemporalNotConnected)), Kind: Platform, Code: TemporalNotConnected, Title: c.Title(),
		Cause: string(c.Kind), Detail: c.LastError, First: c.Since, Last: c.LastErrorAt, Runbook: connectionRunbook(c),
		Advice: "restore Temporal, or correct the temporal settings; `signalbox system status` shows the connection",
	}
	l.findings = append(l.findings, f)
}

// addDependencies adds the dependencies that are not up. Temporal has a problem of its own, and memory and pollers
// belong to one process.
func (l *live) addDependencies(report health.Report) (leasesDown bool) {
	for _, d := range report.Dependencies {
		if d.State == health.Up || !slices.Contains([]string{"store", "leases", "placement", "certificate"}, d.Name) {
			continue
		}
		leasesDown = leasesDown || d.Name == "leases"
		l.findings = append(l.findings, Finding{
			ID: idOf(Platform, "", string(DependencyNotUp), d.Name), Kind: Platform, Code: DependencyNotUp,
			Title: cmp.Or(d.Title, readable(d.Name)+" is "+d.State),
			Cause: d.Name, Detail: d.LastError, First: d.Since, Runbook: dependencyRunbook(d.Name),
			Advice: "`signalbox system status` shows the dependencies of the server with their last errors",
		})
	}
	return leasesDown
}

// readable returns the name of a dependency with what it is.
func readable(dependency string) string {
	switch dependency {
	case "leases":
		return "Redis (leases)"
	case "store":
		return "the database (store)"
	}
	return dependency
}

// dispatcherFacts are what determines whether the state of dispatchers can be known.
type dispatcherFacts struct{ connected, leases bool }

// starting is how long after the start of the process the state of a dispatcher may be unknown, or none be open: a
// worker that starts with it has no heartbeat yet, and has not started the dispatcher.
const starting = 15 * time.Second

// addDispatchers adds the dispatchers that do not route. The unknown state of a dispatcher is no problem of its own
// while Temporal or the leases are away, which is the problem, and neither is it, or a missing dispatcher, while the
// process has just started.
func (s *Service) addDispatchers(ctx context.Context, l *live, projects []string, facts dispatcherFacts) {
	all, err := s.dispatchers.read(ctx, s.o.Now(), s.o.Dispatchers.List)
	if err != nil {
		l.missing(ctx, fromDispatchers, "dispatchers", err)
		return
	}
	var idle []Finding
	started := s.o.Now().Sub(s.o.StartedAt) >= starting
	for i := range all {
		d := &all[i]
		f, found := dispatcherFinding(d)
		switch {
		case !found || !slices.Contains(projects, d.Name.Project):
		case f.Code == DispatcherUnknown && (!facts.connected || !facts.leases || !started),
			f.Code == DispatcherMissing && !started:
			l.unknown[sourceOf(f)] = true
		case f.Code == DispatcherNoWorkers && (d.Progress == nil || d.Progress.Pending == 0):
			idle = append(idle, f)
		default:
			l.add(f)
		}
	}
	if len(idle) == 0 {
		return
	}
	// Without workers, a project that has nothing to do has no problem.
	names := make([]string, len(idle))
	for i, f := range idle {
		names[i] = f.Project
	}
	open, err := s.o.Source.OpenRuns(ctx, names)
	for _, f := range idle {
		switch {
		case err != nil:
			l.missing(ctx, sourceOf(f), "workers of project "+f.Project, err)
		case slices.Contains(open, f.Project) && !l.stuckWithoutWorker(f.Project):
			l.add(f)
		}
	}
}

// add adds a finding, unless another task queue of the project has the same.
func (l *live) add(f Finding) {
	if !slices.ContainsFunc(l.findings, func(g Finding) bool { return g.ID == f.ID }) {
		l.findings = append(l.findings, f)
	}
}

// stuckWithoutWorker reports whether the stuck runs of a project show that it has no worker.
func (l *live) stuckWithoutWorker(project string) bool {
	return slices.ContainsFunc(l.findings, func(f Finding) bool {
		return f.Project == project && f.Kind == Stuck && (f.Code == run.NoPoller || f.Code == run.PollerStale)
	})
}

func dispatcherFinding(d *dispatcher.Dispatcher) (Finding, bool) {
	f := Finding{
		Kind: Platform, Project: d.Name.Project, TaskQueue: d.Name.TaskQueue, Detail: d.Detail,
		Advice: fmt.Sprintf("`signalbox dispatcher show %s` shows its owner, progress and workers", d.Name.Project),
	}
	if f.Detail == "" {
		f.Detail = strings.Join(d.Unread, "; ")
	}
	switch d.Status { //nolint:exhaustive // the others route, or wait for events
	case dispatchtype.Stale:
		f.Code, f.Title = DispatcherStale, "The dispatcher has neither an owner nor a worker"
	case dispatchtype.Missing:
		f.Code, f.Title = DispatcherMissing, "The project has no dispatcher"
	case dispatchtype.Foreign:
		f.Code, f.Title = DispatcherForeign, "A foreign workflow has the ID of the dispatcher"
	case dispatchtype.NoWorkers:
		f.Code, f.Title = DispatcherNoWorkers, "No worker serves the project"
		f.Advice = fmt.Sprintf("start a worker for project %s: `signalbox server --roles worker`; `signalbox worker list` "+
			"shows those that run", d.Name.Project)
	case dispatchtype.Unknown:
		f.Code, f.Title = DispatcherUnknown, "The state of the dispatcher is not known"
	default:
		return Finding{}, false
	}
	f.ID, f.Runbook = idOf(Platform, f.Project, string(f.Code)), dispatcherRunbook(f.Code)
	return f, true
}

func deadFinding(d DeadDeliveries) Finding {
	return Finding{
		ID: idOf(Platform, d.Project, string(DeliveriesDead)), Kind: Platform, Code: DeliveriesDead, Project: d.Project,
		Title:  "Deliveries of events are dead",
		Detail: "events were not delivered: each attempt failed, or the run or workflow refused them", Count: d.Count,
		First: d.First, Last: d.Last,
		Advice: fmt.Sprintf("`signalbox event list --project %s --dead` shows the events; correct the cause, then "+
			"`signalbox event redeliver`", d.Project),
		Runbook: runbook("DeadLetters"),
	}
}

func stuckFinding(g StuckGroup, queue string) Finding {
	return Finding{
		ID: idOf(Stuck, g.Project, g.Code), Kind: Stuck, Code: Code(g.Code), Project: g.Project, TaskQueue: queue,
		Title:  stuckTitle(g.Code),
		Detail: g.Detail, Cause: strings.Join(g.Causes, ", "), Advice: g.Advice, Runbook: stuckRunbook(g.Code),
		Count: g.Count, First: g.Since, Last: g.CheckedAt,
	}
}

func stuckTitle(code string) string {
	switch code {
	case run.InAnotherTemporal:
		return "The run is in another Temporal"
	case run.EngineDisconnected:
		return "Temporal cannot be used"
	case run.NoPoller:
		return "No worker polls the task queue"
	case run.PollerStale:
		return "No worker polls the task queue any more"
	case run.NoRunner:
		return "No runner executes the programs"
	case run.Backlog:
		return "Tasks wait for a worker"
	case run.TaskFailing:
		return "Workflow tasks fail"
	case run.Poison:
		return "Workflow tasks fail because of the run"
	case run.ActivityRetrying:
		return "An activity fails repeatedly"
	case run.NotStarted:
		return "Temporal has not confirmed the start"
	case run.ExecutionMissing:
		return "Temporal has no execution of the run"
	case run.ExecutionClosed:
		return "The execution has ended in Temporal"
	case run.TimerLate:
		return "Temporal has not fired the run's timer"
	}
	return "No progress"
}

func failureFinding(g FailureGroup, more bool, now time.Time) Finding {
	p := cmp.Or(g.Newest.Error, &run.Error{})
	f := Finding{
		ID: FailureID(g.Project, g.Key), Kind: Failure, Code: RunFailed, Project: g.Project, FailureGroup: g.Key,
		Workflow: g.Newest.Workflow, Versions: versionsOf(g), Title: cmp.Or(p.Title, p.Type, "The run failed"),
		Detail: p.Detail, Cause: p.Type,
		Advice: fmt.Sprintf("correct the cause, then replay the runs: `signalbox batch start --action replay --project %s "+
			"--failure-group %s --not-replayed --reason TEXT`",
			g.Project, g.Key),
		Runbook: "docs/runs.md#failures", Count: g.Count, More: more, NotReplayed: g.NotReplayed, First: g.First,
		Last: g.Last, Series: seriesOf(g, now),
	}
	if strings.HasPrefix(p.Instance, "/do/") {
		f.Pointer, f.Task = p.Instance, path.Base(p.Instance)
	}
	return f
}

// versionsOf returns the versions of a group, those with the most runs first.
func versionsOf(g FailureGroup) (list []VersionCount) {
	for version, n := range g.Versions {
		list = append(list, VersionCount{version, n})
	}
	slices.SortFunc(list, func(a, b VersionCount) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(b.Version, a.Version))
	})
	return list
}

const (
	hoursADay = 24
	daysAWeek = 7
)

// seriesOf counts by hour, of a group without failures before the last day, or else by day.
func seriesOf(g FailureGroup, now time.Time) *Series {
	last := now.Unix() / int64(time.Hour/time.Second)
	hours, counts := int64(1), make([]int64, hoursADay)
	for hour := range g.Hours {
		if last-hour >= hoursADay {
			hours, counts = hoursADay, make([]int64, daysAWeek)
			break
		}
	}
	first := last + 1 - hours*int64(len(counts))
	for hour, n := range g.Hours {
		counts[min(max(hour-first, 0)/hours, int64(len(counts))-1)] += n
	}
	return &Series{
		Start: time.Unix(first*int64(time.Hour/time.Second), 0).UTC(), Interval: time.Duration(hours) * time.Hour,
		Counts: counts,
	}
}

// recentFor is how long a list is reused that is expensive to read: that of the dispatchers makes calls to Temporal and
// to the leases, that of the failures reads thousands of runs, and each open page, each scrape of the metrics and the
// recorder ask for both.
const recentFor = 5 * time.Second

// recent keeps the last answer to a read, or why it failed, for a short time. It is safe for concurrent use.
type recent[T any] struct {
	// turn is held by the caller that reads; the others wait for it no longer than their contexts allow.
	turn *semaphore.Weighted
	at   time.Time
	last T
	err  error
}

func (r *recent[T]) read(ctx context.Context, now time.Time,
	from func(context.Context) (T, error)) (none T, err error) {
	if err := r.turn.Acquire(ctx, 1); err != nil {
		return none, err
	}
	defer r.turn.Release(1)
	if !r.at.IsZero() && now.Sub(r.at) < recentFor {
		return r.last, r.err
	}
	limited, cancel := context.WithTimeout(ctx, recentFor)
	defer cancel()
	last, err := from(limited)
	if ctx.Err() != nil {
		return none, ctx.Err() // that the caller had no time says nothing about the source
	}
	r.at, r.last, r.err = now, last, err
	return last, err
}
