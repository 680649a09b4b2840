package start

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/logger"
	"github.com/signalbox-dev/signalbox/internal/loop"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/worker"
)

const (
	// placementEvery is the interval between comparisons. Workers that have just stopped or moved must not count as a
	// difference, so only two equal comparisons in a row do.
	placementEvery = 2 * time.Second
	// placementReadFor is the timeout of a query of the database.
	placementReadFor = time.Second
	// refusedFor is how long a refusal is repeated without another query.
	refusedFor = 200 * time.Millisecond
)

// WorkerRegistry returns the live workers.
type WorkerRegistry interface {
	// Live returns the live workers, at most a second old; false where they are not known.
	Live(ctx context.Context) ([]worker.Worker, bool)
	// LiveNow returns the workers that are live now.
	LiveNow(ctx context.Context) ([]worker.Worker, bool)
	// Check returns why none of the live workers would execute a run of the project.
	Check(project string, live []worker.Worker) error
}

// PlacementStore reads and records the Temporal that holds the runs.
type PlacementStore interface {
	RunsCluster(ctx context.Context) (run.RunsCluster, error)
	// OpenInCluster counts the open runs that the recorded Temporal may have, by project.
	OpenInCluster(ctx context.Context) (map[string]int64, error)
	// ClaimRuns records another Temporal, in place of from, and returns true. It returns false where from, zero for none,
	// is not the recorded one, or may have open runs.
	ClaimRuns(ctx context.Context, from run.ClusterID, to run.RunsCluster) (bool, error)
	// AdoptCluster records another Temporal and writes e. Open runs are left in from: left counts them by project. It
	// returns false where from is not the recorded one.
	AdoptCluster(ctx context.Context, from run.ClusterID, to run.RunsCluster,
		e audit.Entry) (left map[string]int64, adopted bool, err error)
}

// PlacementOptions configure a monitor.
type PlacementOptions struct {
	Store    PlacementStore
	Registry WorkerRegistry
	// Here returns the Temporal that this process is connected to, without a namespace ID until it was reached. It must
	// not block.
	Here func() run.ClusterID
	// ExecutesRuns reports whether this process executes runs.
	ExecutesRuns bool
}

// PlacementMonitor compares the Temporal that this process is connected to with the recorded one that holds the runs
// and with those of the live workers. Processes on one database that are connected to different Temporals execute runs
// where the other processes cannot find them.
//
//	m := start.NewPlacementMonitor(start.PlacementOptions{Store: store, Registry: registry, Here: here})
//	err := m.Start(ctx)              // logs when a difference begins and ends
//	err = m.Check(ctx, project)      // before a run is started
//	err = m.Healthy(ctx)             // for status, readiness and metrics
//	a, err := m.Adopt(ctx, request)  // an administrator decides that runs start here from now on
//
// No run starts in another Temporal than the recorded one. The first start records the Temporal, and a start replaces
// the recorded one where that has no open run. While it has some, only [PlacementMonitor.Adopt] does.
//
// It compares namespace IDs, not addresses: one Temporal has many addresses. Another ID at the same address and
// namespace is a Temporal that has lost its data, which package reconcile handles.
type PlacementMonitor struct {
	*loop.Loop

	opts PlacementOptions

	recorded atomic.Pointer[run.RunsCluster] // nil until it was read
	mismatch atomic.Pointer[PlacementMismatch]
	before   PlacementMismatch // of the last comparison

	// placing is held by the caller that decides whether runs may start here; refusal is the last result, of refusedAt.
	placing   sync.Mutex
	refusal   error
	refusedAt time.Time
}

// NewPlacementMonitor returns a monitor. Before Start, only Check compares anything.
func NewPlacementMonitor(opts PlacementOptions) *PlacementMonitor {
	m := &PlacementMonitor{opts: opts}
	m.mismatch.Store(&PlacementMismatch{})
	m.Loop = loop.New(m.compare)
	return m
}

// Mismatch returns how this process and the others differ; zero while they do not.
func (m *PlacementMonitor) Mismatch() PlacementMismatch { return *m.mismatch.Load() }

// Elsewhere returns the Temporal that holds the runs, where that is not the one of this process; zero otherwise. It
// performs no I/O.
func (m *PlacementMonitor) Elsewhere() run.ClusterID {
	if found := m.Mismatch(); found.RunsThere {
		return found.Other
	}
	return run.ClusterID{}
}

// Title returns the summary of the mismatch; empty while there is none. It performs no I/O.
func (m *PlacementMonitor) Title() string { return m.Mismatch().Summary }

// RunsTitle is Title where the runs are in another Temporal; empty otherwise.
func (m *PlacementMonitor) RunsTitle() string {
	if found := m.Mismatch(); found.RunsThere {
		return found.Summary
	}
	return ""
}

// Healthy returns the mismatch as an error. It performs no I/O.
func (m *PlacementMonitor) Healthy(context.Context) error {
	if found := m.Mismatch(); found != (PlacementMismatch{}) {
		return errors.New(found.Detail)
	}
	return nil
}

// Check returns an [apperror.Refused] while this process must not start runs, or no live worker would execute one of
// the project, and an [apperror.Unavailable] while it is not known which Temporal holds the runs.
func (m *PlacementMonitor) Check(ctx context.Context, project string) error {
	if err := m.place(ctx); err != nil {
		return err
	}
	live, known := m.opts.Registry.Live(ctx)
	if !known || m.opts.Registry.Check(project, live) == nil {
		return nil
	}
	if live, known = m.opts.Registry.LiveNow(ctx); !known {
		return nil
	}
	return m.opts.Registry.Check(project, live)
}

// place returns nil where the Temporal of this process is the recorded one, or has just become it.
func (m *PlacementMonitor) place(ctx context.Context) error {
	here := m.opts.Here()
	if here.NamespaceID == "" || m.placed(here) {
		return nil // without a connection, no run starts
	}
	m.placing.Lock()
	defer m.placing.Unlock()
	if m.refusal != nil && time.Since(m.refusedAt) < refusedFor {
		return m.refusal
	}
	// The answer serves all callers, so it must not end with the context of this one.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), placementReadFor)
	defer cancel()
	m.refusal, m.refusedAt = m.claim(ctx, here), time.Now()
	return m.refusal
}

// placed reports whether a Temporal is known to hold the runs.
func (m *PlacementMonitor) placed(here run.ClusterID) bool {
	recorded := m.recorded.Load()
	return recorded != nil && recorded.ClusterID != (run.ClusterID{}) && !run.DifferentCluster(recorded.ClusterID, here)
}

// claim records the Temporal of this process, unless the recorded one may still execute runs.
func (m *PlacementMonitor) claim(ctx context.Context, here run.ClusterID) error {
	if err := m.read(ctx); err != nil {
		return err
	}
	if m.placed(here) {
		return nil
	}
	from := *m.recorded.Load()
	f, err := m.facts(ctx, from, here)
	if err != nil {
		return err
	}
	live, known := m.opts.Registry.LiveNow(ctx)
	if f.Workers = live; !known && f.elsewhere() {
		return refused(f)
	}
	if err := PlacementRefusal(f); err != nil {
		return err
	}
	to := run.RunsCluster{ClusterID: here, Since: time.Now()}
	switch claimed, err := m.opts.Store.ClaimRuns(ctx, from.ClusterID, to); {
	case err != nil:
		return err
	case claimed:
		m.record(ctx, from, to)
		return nil
	}
	// Another process has recorded a Temporal, or started a run there.
	if err := m.read(ctx); err != nil || m.placed(here) {
		return err
	}
	if f, err = m.facts(ctx, *m.recorded.Load(), here); err != nil {
		return err
	}
	f.Workers = live
	return refused(f)
}

// record stores that this process has recorded another Temporal.
func (m *PlacementMonitor) record(ctx context.Context, from, to run.RunsCluster) {
	m.recorded.Store(&to)
	if from.ClusterID != (run.ClusterID{}) {
		logger.FromContext(ctx).InfoContext(ctx, "The runs are in another Temporal from now on",
			"before", run.ClusterName(from.ClusterID), "now", run.ClusterName(to.ClusterID))
	}
}

// read reads the recorded Temporal.
func (m *PlacementMonitor) read(ctx context.Context) error {
	found, err := m.opts.Store.RunsCluster(ctx)
	if err == nil {
		m.recorded.Store(&found)
	}
	return err
}

// facts returns the input of a comparison, without workers.
func (m *PlacementMonitor) facts(
	ctx context.Context, recorded run.RunsCluster, here run.ClusterID,
) (PlacementFacts, error) {
	f := PlacementFacts{Here: here, Recorded: recorded, ExecutesRuns: m.opts.ExecutesRuns}
	if !f.elsewhere() {
		return f, nil
	}
	open, err := m.opts.Store.OpenInCluster(ctx)
	f.Open = total(open)
	return f, err
}

func total(open map[string]int64) (sum int64) {
	for _, n := range open {
		sum += n
	}
	return sum
}

// Adopt records that runs start in the Temporal of this process from now on, although the recorded one has open runs.
// Those are left there and read as being in another Temporal, until this one is replaced by theirs. It is refused while
// live workers are connected there, because they could still start runs.
func (m *PlacementMonitor) Adopt(ctx context.Context, r run.AdoptRequest) (run.Adoption, error) {
	here := m.opts.Here()
	if here.NamespaceID == "" {
		return run.Adoption{}, apperror.New(apperror.Unavailable, apperror.EngineUnavailable,
			"this server has not reached Temporal at %s yet", here.Address)
	}
	recorded, err := m.opts.Store.RunsCluster(ctx)
	a := run.Adoption{Before: recorded, Now: here, Needed: PlacementFacts{Here: here, Recorded: recorded}.elsewhere()}
	if err != nil || !a.Needed {
		return a, err
	}
	if a.Left, err = m.opts.Store.OpenInCluster(ctx); err != nil || r.DryRun {
		return a, err
	}
	if r.Address != here.Address || r.Namespace != here.Namespace {
		return a, apperror.New(apperror.Invalid, apperror.InvalidArgument,
			"this server is connected to %s, not to Temporal at %s (namespace %q)",
			run.ClusterName(here), r.Address, r.Namespace).WithField("address", "is not that of the server's Temporal")
	}
	live, known := m.opts.Registry.LiveNow(ctx)
	if !known {
		return a, apperror.New(apperror.Unavailable, apperror.StoreUnavailable,
			"the live workers are not known: they may be connected to the former Temporal")
	}
	if there := (PlacementFacts{Workers: live}).connectedTo(recorded.ClusterID); len(there) > 0 {
		return a, apperror.New(apperror.Refused, apperror.ContractMismatch,
			"live workers are connected to %s: %s; stop them first, they could still start runs there",
			run.ClusterName(recorded.ClusterID), listWorkers(there))
	}
	now := time.Now()
	entry := audit.NewEntry(ctx, now, audit.SystemAdoptTemporal, "", here.Address+" "+here.Namespace, r.Reason)
	entry.Detail, _ = json.Marshal( //nolint:errchkjson // texts and numbers always encode
		map[string]any{"before": recorded.ClusterID, "now": here,
			"left": a.Left})
	to := run.RunsCluster{ClusterID: here, Since: now}
	a.Left, a.Adopted, err = m.opts.Store.AdoptCluster(ctx, recorded.ClusterID, to, entry)
	if err != nil {
		return a, err
	}
	if !a.Adopted {
		return a, apperror.New(apperror.Refused, apperror.ContractMismatch,
			"another server has recorded another Temporal at the same time; try again")
	}
	m.record(ctx, recorded, to)
	return a, nil
}

func (m *PlacementMonitor) compare(ctx, _ context.Context) time.Duration {
	reading, cancel := context.WithTimeout(ctx, placementReadFor)
	defer cancel()
	if m.read(reading) != nil {
		return placementEvery
	}
	f, err := m.facts(reading, *m.recorded.Load(), m.opts.Here())
	live, known := m.opts.Registry.Live(ctx)
	if err == nil && known {
		f.Workers = live
		now := CompareClusters(f)
		m.confirm(ctx, m.before, now)
		m.before = now
	}
	return placementEvery
}

// confirm stores a mismatch found by two comparisons in a row, and logs it when it has changed. Other workers in the
// same Temporal are no change.
func (m *PlacementMonitor) confirm(ctx context.Context, before, now PlacementMismatch) {
	stored := m.mismatch.Load()
	if now.Other != before.Other || now.RunsThere != before.RunsThere {
		return
	}
	m.mismatch.Store(&now)
	log := logger.FromContext(ctx)
	switch {
	case now.Other == stored.Other && now.RunsThere == stored.RunsThere:
	case now == (PlacementMismatch{}):
		log.InfoContext(ctx, "All processes on this database use one Temporal again")
	default:
		log.ErrorContext(ctx, "Processes on this database use different Temporals", "title", now.Summary,
			"detail", now.Detail)
	}
}
