// Package retention deletes finished data past its age or count limit: ended runs, delivered events, entries of the
// audit log, the history of owners, ended batches, ended sessions, recorded outages, and finished deliveries of
// webhooks.
//
//	c := retention.New(store, retention.Options{Policy: …, Every: time.Hour, Now: time.Now, Metrics: tel.Retention})
//	err := c.Start(ctx)
//
// One elected process does so, in pages that are small enough not to delay others, with pauses between them. Data in
// use is never deleted: the store guards each row in the statement that deletes it. Each pass that deleted something
// leaves an entry in the audit log of the project.
//
// Deleted data is reported as not found. The package does not delete documents, drafts and versions of workflows.
package retention

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/logger"
	"github.com/signalbox-dev/signalbox/internal/loop"
	"github.com/signalbox-dev/signalbox/internal/project"
	"github.com/signalbox-dev/signalbox/internal/run"
)

// Kind is a kind of data.
type Kind string

// The kinds, in the order of their deletion.
const (
	Runs    Kind = "runs"
	Events  Kind = "events"
	Batches Kind = "batches"
	Owners  Kind = "owners"
	Audit   Kind = "audit"
)

// Kinds returns all kinds.
func Kinds() []Kind { return []Kind{Runs, Events, Batches, Owners, Audit} }

// Limits bound the retained data of a kind in one project; zero bounds nothing.
type Limits struct {
	MaxAge   time.Duration
	MaxCount int
}

// Bounded reports whether any limit is set.
func (l Limits) Bounded() bool { return l.MaxAge > 0 || l.MaxCount > 0 }

// Policy holds the limits of each kind.
type Policy map[Kind]Limits

// Bounded reports whether any kind has a limit.
func (p Policy) Bounded() bool {
	for _, l := range p {
		if l.Bounded() {
			return true
		}
	}
	return false
}

// Cut selects the data of one kind to delete in one project.
type Cut struct {
	// Project is empty for the audit entries without a project.
	Project string
	// Before is the time before which data that has ended or happened is deleted; zero: none is deleted for its age.
	Before time.Time
	// Keep is how many of the newest are retained; zero: all.
	Keep int
	// EndedBefore is the time before which runs have to have ended to be deleted.
	EndedBefore time.Time
}

// Page is the result of deleting one page.
type Page struct {
	// Deleted counts rows by table, such as "runs" and "steps".
	Deleted map[string]int64
	// Next is the position after which the next page continues; empty after the last page.
	Next string
}

// Store deletes. Each page is a transaction; it deletes only what may be deleted at that moment.
type Store interface {
	// DeletePage deletes the matching rows among the next limit of a kind behind after, which is empty at first.
	DeletePage(ctx context.Context, kind Kind, cut Cut, after string, limit int) (Page, error)
	// RunsWithoutRow returns those of the runs that have no row.
	RunsWithoutRow(ctx context.Context, ids []string) ([]string, error)
	// Comparisons returns what is known of the comparisons of the runs with Temporal.
	Comparisons(ctx context.Context) (run.Comparisons, error)
	// DeleteSessions deletes up to limit sessions that had ended before the given time, and returns how many.
	DeleteSessions(ctx context.Context, before time.Time, limit int) (int64, error)
	// DeleteOutages deletes up to limit recorded outages that were over before the given time, and returns how many.
	DeleteOutages(ctx context.Context, before time.Time, limit int) (int64, error)
	// DeleteWebhookDeliveries deletes up to limit deliveries of webhooks that were finished before the given time, and
	// returns how many.
	DeleteWebhookDeliveries(ctx context.Context, before time.Time, limit int) (int64, error)
	ListProjects(ctx context.Context, after string, limit int) ([]project.Project, error)
	WriteAudit(ctx context.Context, e audit.Entry) error
	// Exclusive runs fn unless another caller, in any process, runs work of that name.
	Exclusive(ctx context.Context, name string, fn func(context.Context) error) (ran bool, err error)
}

// Payloads is a store of the large values of runs, as package payload describes.
type Payloads interface {
	// Stale examines the next limit runs after a position, and returns those that have a value older than age, and the
	// position after which the next page continues: empty after the last page.
	Stale(ctx context.Context, age time.Duration, after string, limit int) (runIDs []string, next string, err error)
	// DeleteRun deletes the values of a run, and returns how many.
	DeleteRun(ctx context.Context, runID string) (int64, error)
}

// Executions has the executions of runs.
type Executions interface {
	// IsOpen reports whether Temporal has an open execution of a run.
	IsOpen(ctx context.Context, runID string) (bool, error)
}

// Metrics counts deleted rows.
type Metrics interface {
	// Deleted adds rows by table (signalbox_retention_deleted_total).
	Deleted(ctx context.Context, kind string, rows int64)
}

// Options are the policy and the dependencies.
type Options struct {
	Policy Policy
	// Payloads are the stores with values of runs.
	Payloads   []Payloads
	Executions Executions
	// WebhookDeliveries is how long finished deliveries of webhooks are kept.
	WebhookDeliveries time.Duration
	// Every is the time from one pass to the next.
	Every   time.Duration
	Now     func() time.Time
	Metrics Metrics
}

const (
	// pageSize is how many rows one transaction examines.
	pageSize = 500
	// minPause is the shortest pause after a page, in which others use the database; the pause is as long as the page took
	// if that is more.
	minPause = 20 * time.Millisecond
	// retryEvery is how soon another process takes over from one that has stopped, and how soon a failed pass is repeated.
	retryEvery = time.Minute
	// endedFor is how long ago a run has to have ended: the reconciler, which searches for the rows of recently ended
	// executions, would take it for lost and create it again.
	endedFor = time.Hour
	// orphanedFor is how old payloads without a run have to be: the row of a run may be written after its first payload,
	// also by the reconciler.
	orphanedFor = 24 * time.Hour
	// searchedWithin is how far the search for ended executions without a row may be behind while payloads are deleted.
	// Otherwise an older database was restored, or Temporal is unavailable, and a run without a row may get one: then its
	// payloads are needed, however old they are. The search ends minutes before the present.
	searchedWithin = 15 * time.Minute
	// sessionsFor is how long ended sessions are kept, so that a late request gets the reason of the end.
	sessionsFor = 24 * time.Hour
	// outagesFor is how long outages of Temporal are kept, for charts of runs.
	outagesFor = 90 * 24 * time.Hour
	// lockName is the name of the lock that elects one process.
	lockName = "retention"
	// projectsPage is how many projects are read at a time.
	projectsPage = 100
)

// Cleaner deletes what the policy does not retain.
type Cleaner struct {
	*loop.Loop

	store Store
	opts  Options
}

// New returns a cleaner. It deletes nothing before Start. Payloads without a run, ended sessions and old outages are
// deleted also where the policy retains everything.
func New(store Store, opts Options) *Cleaner {
	c := &Cleaner{store: store, opts: opts}
	c.Loop = loop.New(c.poll)
	return c
}

// poll makes passes while this process holds the lock, and tries to get the lock otherwise.
func (c *Cleaner) poll(ctx, _ context.Context) time.Duration {
	ctx = auth.WithActor(ctx, auth.System())
	_, err := c.store.Exclusive(ctx, lockName, func(ctx context.Context) error {
		for {
			if err := c.Pass(ctx); err != nil {
				return err
			}
			if !loop.Sleep(ctx, c.opts.Every) {
				return ctx.Err()
			}
		}
	})
	if err != nil && ctx.Err() == nil {
		logger.FromContext(ctx).WarnContext(ctx, "Data past its retention limit could not be deleted", "error", err)
	}
	return min(retryEvery, c.opts.Every)
}

// Pass processes all projects once.
func (c *Cleaner) Pass(ctx context.Context) error {
	if err := c.clean(ctx, "", Audit); err != nil {
		return err
	}
	for after := ""; ; {
		projects, err := c.store.ListProjects(ctx, after, projectsPage)
		if err != nil {
			return err
		}
		for _, p := range projects {
			if err := c.clean(ctx, p.Name, Kinds()...); err != nil {
				return err
			}
			after = p.Name
		}
		if len(projects) < projectsPage {
			// Also where the policy retains everything: sessions are credentials, and outages only annotate charts.
			return errors.Join(c.cleanOrphans(ctx), c.cleanAged(ctx, "sessions", sessionsFor, c.store.DeleteSessions),
				c.cleanAged(ctx, "outages", outagesFor, c.store.DeleteOutages),
				c.cleanAged(ctx, "webhook_deliveries", c.opts.WebhookDeliveries, c.store.DeleteWebhookDeliveries))
		}
	}
}

// cleanAged deletes rows of a kind without a limit in the policy that are older than age.
func (c *Cleaner) cleanAged(
	ctx context.Context, kind string, age time.Duration,
	remove func(ctx context.Context, before time.Time, limit int) (int64, error),
) error {
	for {
		begun := time.Now()
		deleted, err := remove(ctx, c.opts.Now().Add(-age), pageSize)
		if deleted > 0 {
			c.opts.Metrics.Deleted(ctx, kind, deleted)
		}
		if err != nil || deleted < pageSize {
			return err
		}
		if !loop.Sleep(ctx, max(minPause, time.Since(begun))) {
			return ctx.Err()
		}
	}
}

// cleanOrphans deletes the large payloads of runs that do not exist, in all stores.
func (c *Cleaner) cleanOrphans(ctx context.Context) (err error) {
	for _, payloads := range c.opts.Payloads {
		err = errors.Join(err, c.cleanOrphansOf(ctx, payloads))
	}
	return err
}

// cleanOrphansOf deletes the payloads of runs that were deleted by retention, or never accepted. It deletes nothing
// while runs without a row may still get one.
func (c *Cleaner) cleanOrphansOf(ctx context.Context, payloads Payloads) error {
	for after := ""; ; {
		begun := time.Now()
		switch known, err := c.store.Comparisons(ctx); {
		case err != nil:
			return err
		case c.opts.Now().Sub(known.SearchedUntil) > searchedWithin:
			logger.FromContext(ctx).InfoContext(ctx,
				"Payloads without a run are kept until all ended executions were searched for runs without a row",
				"searched_until", known.SearchedUntil)
			return nil
		}
		stale, next, err := payloads.Stale(ctx, orphanedFor, after, pageSize)
		if err != nil {
			return err
		}
		orphans, err := c.store.RunsWithoutRow(ctx, stale)
		if err != nil {
			return err
		}
		deleted, err := c.deleteOrphans(ctx, payloads, orphans)
		if deleted > 0 {
			c.opts.Metrics.Deleted(ctx, "payloads", deleted)
			logger.FromContext(ctx).InfoContext(ctx, "Payloads whose runs are gone were deleted", "rows", deleted)
		}
		if err != nil || next == "" {
			return err
		}
		after = next
		if !loop.Sleep(ctx, max(minPause, time.Since(begun))) {
			return ctx.Err()
		}
	}
}

// deleteOrphans deletes the payloads of runs without a row. It keeps those of open executions: such a run is adopted as
// soon as its workflow is published.
func (c *Cleaner) deleteOrphans(ctx context.Context, payloads Payloads, runIDs []string) (deleted int64, err error) {
	for _, id := range runIDs {
		open, err := c.opts.Executions.IsOpen(ctx, id)
		if err != nil {
			return deleted, err
		}
		if open {
			continue
		}
		n, err := payloads.DeleteRun(ctx, id)
		if deleted += n; err != nil {
			return deleted, err
		}
	}
	return deleted, nil
}

// clean deletes the data of one project past its limits, and writes the audit entry also when it could not finish.
func (c *Cleaner) clean(ctx context.Context, name string, kinds ...Kind) (err error) {
	deleted := map[string]int64{}
	for _, kind := range kinds {
		if err = c.cleanKind(ctx, name, kind, deleted); err != nil {
			break
		}
	}
	if len(deleted) == 0 {
		return err
	}
	logger.FromContext(ctx).InfoContext(ctx, "Data past its retention limit was deleted", "project", name, "rows", deleted)
	entry := audit.NewEntry(ctx, c.opts.Now(), audit.RetentionDelete, name, name, "")
	entry.Detail, _ = json.Marshal(deleted) //nolint:errchkjson // names and numbers always encode
	if auditErr := c.store.WriteAudit(context.WithoutCancel(ctx), entry); err == nil {
		err = auditErr
	}
	return err
}

func (c *Cleaner) cleanKind(ctx context.Context, name string, kind Kind, deleted map[string]int64) error {
	limits := c.opts.Policy[kind]
	if !limits.Bounded() {
		return nil
	}
	now := c.opts.Now()
	cut := Cut{Project: name, Keep: limits.MaxCount, EndedBefore: now.Add(-endedFor)}
	if limits.MaxAge > 0 {
		cut.Before = now.Add(-limits.MaxAge)
	}
	for after := ""; ; {
		begun := time.Now()
		page, err := c.store.DeletePage(ctx, kind, cut, after, pageSize)
		if err != nil {
			return err
		}
		for what, rows := range page.Deleted {
			if rows > 0 {
				deleted[what] += rows
				c.opts.Metrics.Deleted(ctx, what, rows)
			}
		}
		if page.Next == "" {
			return nil
		}
		after = page.Next
		if !loop.Sleep(ctx, max(minPause, time.Since(begun))) {
			return ctx.Err()
		}
	}
}
