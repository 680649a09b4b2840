// Package retention takes away what is over and older, or more, than is to be kept: runs that have ended, events that were
// delivered, entries of the audit log, the history of owners, and batches that have ended.
//
//	k := retention.New(store, retention.Options{Policy: …, Every: time.Hour, Now: time.Now, Metrics: tel.Retention})
//	err := k.Start(ctx)
//
// One process of all does so at a time, in pages that are small enough to hold nobody up, with pauses between them. What is in use is
// never taken: the store knows that, and guards each row in the statement that deletes it. Each pass that took something away
// leaves an entry in the audit log of the project.
//
// What is gone is not found. Documents, drafts and versions of workflows are none of its business.
package retention

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/logger"
	"github.com/signalbox-dev/signalbox/internal/pause"
	"github.com/signalbox-dev/signalbox/internal/project"
)

// Kind is what is kept.
type Kind string

// The kinds, in the order in which they are gone through.
const (
	Runs    Kind = "runs"
	Events  Kind = "events"
	Batches Kind = "batches"
	Owners  Kind = "owners"
	Audit   Kind = "audit"
)

// Kinds returns all of them.
func Kinds() []Kind { return []Kind{Runs, Events, Batches, Owners, Audit} }

// Limits bound what is kept of a kind in one project; zero bounds nothing.
type Limits struct {
	MaxAge   time.Duration
	MaxCount int
}

// Bounded tells whether anything goes.
func (l Limits) Bounded() bool { return l.MaxAge > 0 || l.MaxCount > 0 }

// Policy says what is kept of each kind.
type Policy map[Kind]Limits

// Bounded tells whether anything goes at all.
func (p Policy) Bounded() bool {
	for _, l := range p {
		if l.Bounded() {
			return true
		}
	}
	return false
}

// Cut is what goes of one kind in one project.
type Cut struct {
	// Project is empty for the audit entries that belong to none.
	Project string
	// Before is the time before which things go that have ended or happened; zero: none go for their age.
	Before time.Time
	// Keep is how many of the newest are kept; zero: all.
	Keep int
	// Settled is the time before which runs have to have ended to go at all.
	Settled time.Time
}

// Page is what one page of deletion did.
type Page struct {
	// Deleted counts rows by what they were, such as "runs" and "steps".
	Deleted map[string]int64
	// Next is the place to go on from; empty when there is no more.
	Next string
}

// Store deletes. Each page is a transaction; it deletes only what may go at that moment.
type Store interface {
	// DeletePage deletes what goes among the next limit of a kind behind after, which is empty at first.
	DeletePage(ctx context.Context, kind Kind, cut Cut, after string, limit int) (Page, error)
	// DeleteOrphans deletes the payloads of the next limit runs behind after whose row is gone and that are older than age. It returns how
	// many it deleted, and the run to go on behind: empty when there are no more.
	DeleteOrphans(ctx context.Context, age time.Duration, after string, limit int) (deleted int64, next string, err error)
	ListProjects(ctx context.Context, after string, limit int) ([]project.Project, error)
	WriteAudit(ctx context.Context, e audit.Entry) error
	// Exclusive runs fn unless somebody else, in any process, runs work of that name.
	Exclusive(ctx context.Context, name string, fn func(context.Context) error) (ran bool, err error)
}

// Metrics counts what goes.
type Metrics interface {
	// Deleted adds rows by what they were (signalbox_retention_deleted_total).
	Deleted(ctx context.Context, kind string, rows int64)
}

// Options say what is kept, and whom to tell.
type Options struct {
	Policy Policy
	// Every is the time from one pass to the next.
	Every   time.Duration
	Now     func() time.Time
	Metrics Metrics
}

const (
	// pageSize is how much is looked at in one transaction.
	pageSize = 500
	// pauseLeast is how long others have the database for themselves after a page; it is as long as the page took if that is more.
	pauseLeast = 20 * time.Millisecond
	// retryEvery is how soon another process takes over from one that has stopped, and how soon a pass is made again that failed.
	retryEvery = time.Minute
	// settledFor is how long ago a run has to have ended: the reconciler, which looks for the rows of executions that have just
	// ended, would take it for lost and make it again.
	settledFor = time.Hour
	// orphanedFor is how old payloads without a run have to be to go: the row of a run may be written after its first payload, also by
	// the reconciler.
	orphanedFor = 24 * time.Hour
	// exclusively is the name under which one process deletes.
	exclusively = "retention"
	// projectsPage is how many projects are read at a time.
	projectsPage = 100
)

// Keeper takes away what is not to be kept.
type Keeper struct {
	store  Store
	opts   Options
	cancel context.CancelFunc
	joined sync.WaitGroup
}

// New returns a keeper. Nothing goes before Start.
func New(store Store, opts Options) *Keeper { return &Keeper{store: store, opts: opts} }

// Start begins to look. Payloads without a run go also where everything else is kept.
func (k *Keeper) Start(ctx context.Context) error {
	ctx, k.cancel = context.WithCancel(auth.WithActor(context.WithoutCancel(ctx), auth.System()))
	k.joined.Go(func() { k.loop(ctx) })
	return nil
}

// Stop ends it after the page that is under way.
func (k *Keeper) Stop(context.Context) error {
	k.cancel()
	k.joined.Wait()
	return nil
}

func (k *Keeper) loop(ctx context.Context) {
	for ctx.Err() == nil {
		_, err := k.store.Exclusive(ctx, exclusively, func(ctx context.Context) error {
			for {
				if err := k.Pass(ctx); err != nil {
					return err
				}
				if !pause.For(ctx, k.opts.Every) {
					return ctx.Err()
				}
			}
		})
		if err != nil && ctx.Err() == nil {
			logger.FromContext(ctx).WarnContext(ctx, "What is not to be kept could not be deleted", "error", err)
		}
		pause.For(ctx, min(retryEvery, k.opts.Every))
	}
}

// Pass goes once through all projects.
func (k *Keeper) Pass(ctx context.Context) error {
	if err := k.clean(ctx, "", Audit); err != nil {
		return err
	}
	for after := ""; ; {
		projects, err := k.store.ListProjects(ctx, after, projectsPage)
		if err != nil {
			return err
		}
		for _, p := range projects {
			if err := k.clean(ctx, p.Name, Kinds()...); err != nil {
				return err
			}
			after = p.Name
		}
		if len(projects) < projectsPage {
			return k.cleanOrphans(ctx)
		}
	}
}

// cleanOrphans deletes the large payloads whose run is gone: deleted by retention, or never accepted.
func (k *Keeper) cleanOrphans(ctx context.Context) error {
	for after := ""; ; {
		begun := time.Now()
		deleted, next, err := k.store.DeleteOrphans(ctx, orphanedFor, after, pageSize)
		if deleted > 0 {
			k.opts.Metrics.Deleted(ctx, "payloads", deleted)
			logger.FromContext(ctx).InfoContext(ctx, "Payloads whose runs are gone were deleted", "rows", deleted)
		}
		if err != nil || next == "" {
			return err
		}
		after = next
		if !pause.For(ctx, max(pauseLeast, time.Since(begun))) {
			return ctx.Err()
		}
	}
}

// clean takes away what goes in one project, and tells of it also when it could not end.
func (k *Keeper) clean(ctx context.Context, name string, kinds ...Kind) (err error) {
	deleted := map[string]int64{}
	for _, kind := range kinds {
		if err = k.cleanKind(ctx, name, kind, deleted); err != nil {
			break
		}
	}
	if len(deleted) == 0 {
		return err
	}
	logger.FromContext(ctx).InfoContext(ctx, "What was not to be kept was deleted", "project", name, "rows", deleted)
	entry := audit.NewEntry(ctx, k.opts.Now(), audit.RetentionDelete, name, name, "")
	entry.Detail, _ = json.Marshal(deleted) //nolint:errchkjson // names and numbers always encode
	if auditErr := k.store.WriteAudit(context.WithoutCancel(ctx), entry); err == nil {
		err = auditErr
	}
	return err
}

func (k *Keeper) cleanKind(ctx context.Context, name string, kind Kind, deleted map[string]int64) error {
	limits := k.opts.Policy[kind]
	if !limits.Bounded() {
		return nil
	}
	now := k.opts.Now()
	cut := Cut{Project: name, Keep: limits.MaxCount, Settled: now.Add(-settledFor)}
	if limits.MaxAge > 0 {
		cut.Before = now.Add(-limits.MaxAge)
	}
	for after := ""; ; {
		begun := time.Now()
		page, err := k.store.DeletePage(ctx, kind, cut, after, pageSize)
		if err != nil {
			return err
		}
		for what, rows := range page.Deleted {
			if rows > 0 {
				deleted[what] += rows
				k.opts.Metrics.Deleted(ctx, what, rows)
			}
		}
		if page.Next == "" {
			return nil
		}
		after = page.Next
		if !pause.For(ctx, max(pauseLeast, time.Since(begun))) {
			return ctx.Err()
		}
	}
}
