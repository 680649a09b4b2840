package events

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/sealed"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
)

const (
	// earlierPage is the number of earlier events that are read at once: their data may be large.
	earlierPage = 100
	// earlierFuel is the compute after which the search for earlier events ends: a few seconds at most.
	earlierFuel = 40_000_000
)

// retryOwner is the delay after which a listener is committed again where no dispatcher has begun.
const retryOwner = time.Second

// RunStart is the position after which a run of the table "runs" takes events: that of the event that started it, or
// that of the newest event when it was accepted.
const RunStart = `COALESCE((SELECT d.position FROM deliveries d WHERE d.run_id = runs.id AND d.project = runs.project
AND d.kind = 'start' ORDER BY d.position, d.id LIMIT 1), runs.events_after)`

// errUnlocked: the search has found events, and the dispatcher's row, which their deliveries change, is not locked. It
// cannot be locked after the inbox, because [Deliveries.Park] locks them in the other order.
var errUnlocked = errors.New("the dispatcher's row is not locked")

// lookback is a listener that is being committed, with what was found for it.
type lookback struct {
	event.Listener
	event.Lookback

	spec string
	// from is the position after which the listener takes events, to the one up to which they were looked through.
	from, to int64
	fuel     int64
	matches  []event.Delivery
	// warning is why not all events were looked through; empty if all were.
	warning string
}

// Listen implements [sealed.EventStore].
//
// A listener takes two ranges of events. Those up to the newest event at its commit are looked through here, and get
// deliveries in the transaction of the commit. Those behind it are left to matching, which skips events that are not
// newer than a listener. No event can be accepted between the two, because the transaction locks the inbox.
//
// Most events are looked through before the transaction, so that the lock is short. A shared lock on the run's row
// orders the end of the run, which removes its listeners, before or after it.
func (s *Deliveries) Listen(ctx context.Context, given sealed.Sealed[event.Listener],
	look event.Lookback) (done event.Listening, err error) {
	l := lookback{Listener: given.Value(), Lookback: look}
	spec, err := json.Marshal(l.Spec)
	if err != nil {
		return done, fmt.Errorf("encode the listener %q: %w", l.ID, err)
	}
	if err := sqlrow.Storable("listen", string(spec)); err != nil {
		return done, err
	}
	l.spec = string(spec)
	if l.FromStart {
		fresh := l
		err := s.db.Read(ctx, "look through earlier events", func(ctx context.Context, c sqldb.Conn) error {
			l = fresh
			return s.searchFromStart(ctx, c, &l)
		})
		if err != nil {
			return done, err
		}
	}
	found, lock := l, len(l.matches) > 0
	for {
		err = s.db.Write(ctx, "listen for events", func(ctx context.Context, c sqldb.Conn) (err error) {
			l = found
			l.matches = slices.Clone(found.matches)
			done, err = s.commitListener(ctx, c, &l, lock)
			return err
		})
		if !errors.Is(err, errUnlocked) {
			return done, err
		}
		lock = true
	}
}

// searchFromStart looks through the events since the start of the run. The listeners of a run that the database does
// not have take later events only.
func (s *Deliveries) searchFromStart(ctx context.Context, c sqldb.Conn, l *lookback) error {
	exists, err := sqlrow.Exists(ctx, c, `SELECT 1 FROM listeners WHERE project = $1 AND id = $2`, l.Project, l.ID)
	if err != nil || exists {
		l.FromStart = false
		return err
	}
	known, err := found(c.QueryRowContext(ctx, `SELECT `+RunStart+` FROM runs WHERE id = $1 AND project = $2`, l.RunID,
		l.Project), &l.from)
	if err != nil || !known {
		l.FromStart = false
		return err
	}
	if l.After > l.from {
		l.from = l.After
		l.warning = "the run has taken more events than are recorded one by one"
	}
	if _, err := found(c.QueryRowContext(ctx, `SELECT head FROM inboxes WHERE project = $1`, l.Project),
		&l.to); err != nil {
		return err
	}
	if l.to <= l.from {
		l.to = l.from
		return nil
	}
	var oldest *int64
	if err := c.QueryRowContext(ctx, `SELECT MIN(position) FROM events WHERE project = $1`,
		l.Project).Scan(&oldest); err != nil {
		return err
	}
	if oldest == nil || *oldest > l.from+1 {
		l.warning = "events that were accepted since the run's start are removed, because their retention has passed"
	}
	return s.search(ctx, c, l, l.from, l.to)
}

// search adds deliveries for the matching events after from, up to to: for the first one only, if one event ends the
// task.
func (s *Deliveries) search(ctx context.Context, c sqldb.Conn, l *lookback, from, to int64) error {
	types := l.Spec.Types()
	if types == nil {
		types = []string{""} // of any type
	}
	for _, typ := range sqlrow.Distinct(types) {
		if err := s.searchType(ctx, c, l, typ, from, to); err != nil {
			return err
		}
	}
	slices.SortFunc(l.matches, func(a, b event.Delivery) int {
		return cmp.Or(cmp.Compare(a.Position, b.Position), cmp.Compare(a.ID, b.ID))
	})
	l.matches = slices.CompactFunc(l.matches, func(a, b event.Delivery) bool { return a.ID == b.ID })
	if l.Single && len(l.matches) > 1 {
		l.matches = l.matches[:1]
	}
	return nil
}

func (s *Deliveries) searchType(ctx context.Context, c sqldb.Conn, l *lookback, typ string, from, to int64) error {
	at, err := s.newest(ctx, c, l, typ, from, to)
	if err != nil {
		return err
	}
	for at < to {
		args := []any{l.Project, at, to, l.RunID}
		condition := ""
		if typ != "" {
			args, condition = append(args, typ), ` AND e.type = $5`
		}
		page, err := sqlrow.Collect(ctx, c, selectPending()+`
WHERE e.project = $1 AND e.position > $2 AND e.position <= $3`+condition+`
AND NOT EXISTS (SELECT 1 FROM taken_events t WHERE t.run_id = $4 AND t.position = e.position)
ORDER BY e.position`+sqlrow.Limit(earlierPage), args, scanPending)
		if err != nil || len(page) == 0 {
			return err
		}
		at = page[len(page)-1].Position
		page = slices.DeleteFunc(page, func(e event.Event) bool { return slices.Contains(l.Taken, e.Position) })
		matches, fuel := l.Match(page)
		l.matches = append(l.matches, matches...)
		if l.Single && len(matches) > 0 {
			return nil
		}
		if l.fuel += fuel; l.fuel > earlierFuel {
			l.warning = "the filters of a listen task take too much compute"
			return nil
		}
	}
	return nil
}

// newest returns the position after which the newest events of a type are as many as may be looked through.
func (s *Deliveries) newest(ctx context.Context, c sqldb.Conn, l *lookback, typ string, from, to int64) (int64, error) {
	limit := int64(l.Limit)
	if to-from <= limit {
		return from, nil
	}
	at := to - limit
	if typ != "" {
		more, err := found(c.QueryRowContext(ctx,
			`SELECT position FROM events WHERE project = $1 AND type = $2 AND position > $3 AND position <= $4
ORDER BY position DESC LIMIT 1 OFFSET $5`, l.Project, typ, from, to, limit), &at)
		if err != nil || !more {
			return from, err
		}
	}
	l.warning = fmt.Sprintf("only the newest %d events of a type are looked through (events.max_lookback)", limit)
	return at, nil
}

// commitListener commits a listener with the deliveries of the earlier events that it takes.
func (s *Deliveries) commitListener(ctx context.Context, c sqldb.Conn, l *lookback,
	lock bool) (done event.Listening, err error) {
	var status run.Status
	known, err := found(c.QueryRowContext(ctx,
		`SELECT status FROM runs WHERE id = $1 AND project = $2`+s.db.Dialect().ShareRows,
		l.RunID, l.Project), &status)
	if err != nil {
		return done, err
	}
	if known && status.Terminal() {
		return done, apperror.New(apperror.Refused, apperror.RunEnded, "run %q has ended (%s), so it listens for nothing",
			l.RunID, status)
	}
	var t dispatcherRow
	if lock {
		if t, err = s.lockAny(ctx, c, l.Project); err != nil {
			return done, err
		}
	}
	in, err := s.events.Lock(ctx, c, l.Project, s.db.Dialect().ShareRows)
	if err != nil {
		return done, err
	}
	if l.FromStart && (!l.Single || len(l.matches) == 0) {
		if err := s.search(ctx, c, l, l.to, in.Head); err != nil {
			return done, err
		}
	}
	if len(l.matches) > 0 && !lock {
		return done, errUnlocked
	}
	made, err := s.subscriptions.add(ctx, c, l.Listener, in.Head, l.spec)
	if err != nil || !made {
		return done, err
	}
	_, err = sqlrow.InsertMany(ctx, c, s.db.Dialect(), "taken_events", ` ON CONFLICT DO NOTHING`, l.Taken,
		func(position int64) sqlrow.Fields {
			return sqlrow.Row("run_id", l.RunID, "position", position)
		})
	if err != nil {
		return done, err
	}
	if l.warning != "" && known {
		_, err = c.ExecContext(ctx,
			`INSERT INTO run_warnings (run_id, code, detail, at) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING`,
			l.RunID, run.WarningEventsNotSearched, l.warning, in.Now)
		if err != nil {
			return done, err
		}
	}
	if len(l.matches) == 0 {
		return done, nil
	}
	return event.Listening{Delivers: true, Parked: in.Parked}, s.deliverEarlier(ctx, c, t, l.matches)
}

// lockAny reads and locks a dispatcher's row until the transaction ends, with any owner. An unowned project has none:
// its runs have no worker, or it has just begun.
func (s *Deliveries) lockAny(ctx context.Context, c sqldb.Conn, project string) (dispatcherRow, error) {
	t := dispatcherRow{project: project}
	known, err := found(c.QueryRowContext(ctx,
		`SELECT epoch, routed, pending, `+s.db.Dialect().Now+` FROM dispatchers WHERE project = $1`+
			s.db.Dialect().LockRows, project), &t.epoch, &t.routed, &t.pending, &t.now)
	if err == nil && !known {
		err = apperror.New(apperror.Unavailable, apperror.StoreUnavailable,
			"project %q has no dispatcher yet, which delivers the events of its runs", project).WithRetry(retryOwner)
	}
	return t, err
}

// deliverEarlier adds the deliveries of earlier events. Events that are routed already are not unmatched any more.
func (s *Deliveries) deliverEarlier(ctx context.Context, c sqldb.Conn, t dispatcherRow, list []event.Delivery) error {
	if err := s.insertDeliveries(ctx, c, &t, list); err != nil {
		return err
	}
	if err := s.markRouted(ctx, c, t, list); err != nil {
		return err
	}
	_, err := c.ExecContext(ctx, `UPDATE dispatchers SET pending = $2 WHERE project = $1`, t.project, t.pending)
	return err
}

// markRouted changes the outcome of events from unmatched to routed. An event that is not routed yet is not changed:
// the outcome that [Deliveries.CommitRouting] writes considers its deliveries.
func (s *Deliveries) markRouted(ctx context.Context, c sqldb.Conn, t dispatcherRow, list []event.Delivery) error {
	ranges, err := sqlrow.Collect(ctx, c, `SELECT first, last, status, reason FROM routings
WHERE project = $1 AND status = 'unmatched' AND last >= $2 AND first <= $3 ORDER BY last`,
		[]any{t.project, list[0].Position, list[len(list)-1].Position}, func(row sqlrow.Scanner) (v outcomeRange, err error) {
			err = row.Scan(&v.first, &v.last, &v.status, &v.reason)
			return v, err
		})
	if err != nil {
		return err
	}
	var replaced []int64
	var parts []outcomeRange
	for _, v := range ranges {
		split := v.split(list)
		if len(split) > 0 {
			replaced, parts = append(replaced, v.last), append(parts, split...)
		}
	}
	for part := range sqlrow.Chunks(replaced) {
		args := []any{t.project}
		for _, last := range part {
			args = append(args, last)
		}
		_, err := c.ExecContext(ctx,
			`DELETE FROM routings WHERE project = $1 AND last IN `+sqlrow.Tuples(s.db.Dialect(), 1, 1, len(part)), args...)
		if err != nil {
			return err
		}
	}
	return s.insertRanges(ctx, c, t.project, parts)
}

// split returns the ranges that replace an unmatched one in which events have deliveries; nil if none has.
func (v outcomeRange) split(list []event.Delivery) (parts []outcomeRange) {
	next := v.first
	for _, d := range list {
		if d.Position < next || d.Position > v.last {
			continue
		}
		if d.Position > next {
			parts = append(parts, outcomeRange{next, d.Position - 1, v.status, v.reason})
		}
		if n := len(parts); n > 0 && parts[n-1].status == event.Routed && parts[n-1].last == d.Position-1 {
			parts[n-1].last = d.Position
		} else {
			parts = append(parts, outcomeRange{d.Position, d.Position, event.Routed, ""})
		}
		next = d.Position + 1
	}
	if len(parts) > 0 && next <= v.last {
		parts = append(parts, outcomeRange{next, v.last, v.status, v.reason})
	}
	return parts
}
