package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/signalbox-dev/signalbox/internal/retention"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
)

// retentionRows deletes finished data, page by page: it implements [retention.Store]'s DeletePage.
//
// Each page reads an index range and deletes the rows that may be deleted, in one transaction. Rows that must be kept
// are checked in the same statement, or while the rows that could change the answer are locked:
//
//   - of runs, those that are open or have ended very recently, that have an open parent or open children, or for which
//     a delivery or an item of a batch is pending;
//   - of events, those that are not routed, that are in an open set of a trigger, or that have a pending delivery or
//     one to an open run;
//   - the newest owner of a dispatcher.
//
// Deliveries are deleted with their events, and items with their batches: they may refer to deleted runs.
type retentionRows struct{ db *sqldb.DB }

// DeletePage implements [retention.Store].
func (s *retentionRows) DeletePage(ctx context.Context, kind retention.Kind, cut retention.Cut, after string,
	limit int) (retention.Page, error) {
	at, err := parseRetentionCursor(after)
	if err != nil {
		return retention.Page{}, err
	}
	deletes := map[retention.Kind]func(context.Context, *retentionPage) error{
		retention.Runs: s.runs, retention.Events: s.events, retention.Audit: s.audit, retention.Owners: s.owners,
		retention.Batches: s.batches,
	}
	var p *retentionPage
	err = s.db.Write(ctx, "delete "+string(kind), func(ctx context.Context, c sqldb.Conn) error {
		p = &retentionPage{c: c, cut: cut, at: at, limit: limit, deleted: map[string]int64{}}
		return deletes[kind](ctx, p)
	})
	if err != nil {
		return retention.Page{}, err
	}
	next, err := p.next.String()
	return retention.Page{Deleted: p.deleted, Next: next}, err
}

// retentionCursor is the beginning of the next page.
type retentionCursor struct {
	// ByCount reports that the deletion by age is complete; End is then the newest run that the count limit deletes.
	ByCount bool      `json:"byCount,omitempty"`
	End     *indexRow `json:"end,omitempty"`
	After   indexRow  `json:"after"`
}

// indexRow is one row of an index.
type indexRow struct {
	At int64  `json:"at,omitempty"`
	ID string `json:"id,omitempty"`
}

func parseRetentionCursor(text string) (p retentionCursor, err error) {
	if text == "" {
		return p, nil
	}
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return p, fmt.Errorf("read where to go on deleting, %q: %w", text, err)
	}
	return p, nil
}

func (p *retentionCursor) String() (string, error) {
	if p == nil {
		return "", nil
	}
	text, err := json.Marshal(p)
	return string(text), err
}

// retentionPage is one transaction.
type retentionPage struct {
	c       sqldb.Conn
	cut     retention.Cut
	at      retentionCursor
	limit   int
	deleted map[string]int64
	// next is nil if there are no more pages.
	next *retentionCursor
}

// before returns the age limit as a time in microseconds: earlier than any row if there is none.
func (p *retentionPage) before() int64 {
	if p.cut.Before.IsZero() {
		return time.Time{}.UnixMicro()
	}
	return p.cut.Before.UnixMicro()
}

// remove runs a DELETE statement, and counts the deleted rows.
func (p *retentionPage) remove(ctx context.Context, what, query string, args ...any) (int64, error) {
	res, err := p.c.ExecContext(ctx, query, args...)
	if err != nil {
		return 0, err
	}
	n, err := res.RowsAffected()
	p.deleted[what] += n
	return n, err
}

// numbers reads one column of numbers.
func (p *retentionPage) numbers(ctx context.Context, query string, args ...any) ([]int64, error) {
	return sqlrow.Collect(ctx, p.c, query, args, sqlrow.ScanNumber)
}

// first returns the number of a query with at most one row; 0 if it has none.
func (p *retentionPage) first(ctx context.Context, query string, args ...any) (int64, error) {
	list, err := p.numbers(ctx, query, args...)
	if err != nil || len(list) == 0 {
		return 0, err
	}
	return list[0], nil
}
