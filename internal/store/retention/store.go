// Package retention deletes what is over, page by page, in the store's database. It is the part of package store that implements
// [retention.Store]'s DeletePage:
//
//	page, err := retention.New(db).DeletePage(ctx, kind, cut, after, 500)
//
// Each page reads a stretch of an index and deletes of it what may go, in one transaction. What may not go is looked at in
// the same statement, or while what could change it is locked:
//
//   - of runs, those that are open or have ended only just, that have an open parent or open children, to which a delivery or an
//     item of a batch is pending;
//   - of events, those that are not routed, that an open set of a trigger has, with a pending delivery or one to an open run;
//   - the newest owner of a dispatcher.
//
// Rows that belong to a run are in the tables that [OfRuns] lists. Deliveries go with their events, and items with their batches: they name runs
// that may be gone.
package retention

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/signalbox-dev/signalbox/internal/retention"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
)

// Store deletes. It is safe for concurrent use.
type Store struct{ db *sqldb.DB }

// New returns a store on an open database.
func New(db *sqldb.DB) *Store { return &Store{db: db} }

// DeletePage implements [retention.Store].
func (s *Store) DeletePage(ctx context.Context, kind retention.Kind, cut retention.Cut, after string, limit int) (retention.Page, error) {
	at, err := placeOf(after)
	if err != nil {
		return retention.Page{}, err
	}
	deletes := map[retention.Kind]func(context.Context, *page) error{
		retention.Runs: s.runs, retention.Events: s.events, retention.Audit: s.audit, retention.Owners: s.owners, retention.Batches: s.batches,
	}
	var p *page
	err = s.db.Write(ctx, "delete "+string(kind), func(ctx context.Context, c sqldb.Conn) error {
		p = &page{c: c, cut: cut, at: at, limit: limit, deleted: map[string]int64{}}
		return deletes[kind](ctx, p)
	})
	if err != nil {
		return retention.Page{}, err
	}
	next, err := p.next.String()
	return retention.Page{Deleted: p.deleted, Next: next}, err
}

// place is where the next page begins.
type place struct {
	// ByCount tells that what goes for its age has gone, and End is the newest that goes for its number.
	ByCount bool  `json:"byCount,omitempty"`
	End     *spot `json:"end,omitempty"`
	After   spot  `json:"after"`
}

// spot is one row of an index.
type spot struct {
	At int64  `json:"at,omitempty"`
	ID string `json:"id,omitempty"`
}

func placeOf(text string) (p place, err error) {
	if text == "" {
		return p, nil
	}
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return p, fmt.Errorf("read where to go on deleting, %q: %w", text, err)
	}
	return p, nil
}

func (p *place) String() (string, error) {
	if p == nil {
		return "", nil
	}
	text, err := json.Marshal(p)
	return string(text), err
}

// page is one transaction.
type page struct {
	c       sqldb.Conn
	cut     retention.Cut
	at      place
	limit   int
	deleted map[string]int64
	// next is nil when there is no more.
	next *place
}

// before is the time before which things go for their age, in microseconds: earlier than any where none go.
func (p *page) before() int64 {
	if p.cut.Before.IsZero() {
		return time.Time{}.UnixMicro()
	}
	return p.cut.Before.UnixMicro()
}

// remove runs a statement that deletes, and counts what it deleted.
func (p *page) remove(ctx context.Context, what, query string, args ...any) (int64, error) {
	res, err := p.c.ExecContext(ctx, query, args...)
	if err != nil {
		return 0, err
	}
	n, err := res.RowsAffected()
	p.deleted[what] += n
	return n, err
}

// numbers reads one column of numbers.
func (p *page) numbers(ctx context.Context, query string, args ...any) ([]int64, error) {
	return sqlrow.Collect(ctx, p.c, query, args, func(row sqlrow.Scanner) (n int64, err error) {
		err = row.Scan(&n)
		return n, err
	})
}

// first is the number that a query for at most one has; 0 where it has none.
func (p *page) first(ctx context.Context, query string, args ...any) (int64, error) {
	list, err := p.numbers(ctx, query, args...)
	if err != nil || len(list) == 0 {
		return 0, err
	}
	return list[0], nil
}
