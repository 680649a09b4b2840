package sqldb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/signalbox-dev/signalbox/internal/apperror"
)

// retryAfter is the delay that callers receive if the database is unavailable: longer than the first moments of a
// restart, short enough that a user waits for it.
const retryAfter = 2 * time.Second

// location is the location of the database.
type location struct{ file, server, database string }

func (p location) String() string {
	if p.file != "" {
		return strconv.Quote(p.file)
	}
	return p.server + " database " + strconv.Quote(p.database)
}

// plain returns the location without quotes.
func (p location) plain() string {
	if p.file != "" {
		return p.file
	}
	return p.server + " database " + p.database
}

// retryable reports whether the database aborted the transaction in favour of another one.
func retryable(err error) bool {
	pe, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (pe.Code == "40001" || pe.Code == "40P01")
}

// Explain converts a driver's error to one that a caller can act on; caller is the context that was passed to the work.
func (d *DB) Explain(caller context.Context, doing string, err error) error {
	if _, ok := apperror.From(err); ok {
		return err
	}
	if end := caller.Err(); end != nil {
		if cause := context.Cause(caller); !errors.Is(cause, end) {
			return fmt.Errorf("%s: %w: %w", doing, end, cause)
		}
		return fmt.Errorf("%s: %w", doing, end)
	}
	if bad, ok := invalidText(err); ok {
		return apperror.New(apperror.Invalid, apperror.InvalidArgument,
			"%s: %s: remove the character, which databases cannot keep in text", doing, bad).WithCause(err)
	}
	if why := d.databaseError(err); why != "" {
		return apperror.New(apperror.Unavailable, apperror.StoreUnavailable, "%s: the store: %s", doing, why).
			WithDetail("store %s: %v", d.location, err).WithCause(err).WithRetry(retryAfter)
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// explainOpen explains the error of the first connection to the operator.
func (d *DB) explainOpen(err error) error {
	why := d.databaseError(err)
	var pe *pgconn.PgError
	switch {
	case errors.As(err, &pe):
		why = openHint(pe)
	case d.location.server != "":
		// The driver's error contains every address that it tried and the result of each.
		return apperror.New(apperror.Unavailable, apperror.StoreUnavailable,
			"open store: postgres at %s does not answer: check that it runs and that the dsn is right (%s)",
			d.location, firstLine(err)).WithCause(err).WithRetry(retryAfter)
	case why == "":
		return fmt.Errorf("open store %s: %w", d.location, err)
	}
	return apperror.New(apperror.Unavailable, apperror.StoreUnavailable, "open store %s: %s", d.location, why).
		WithCause(err).WithRetry(retryAfter)
}

func openHint(pe *pgconn.PgError) string {
	switch pe.Code {
	case "28P01", "28000":
		return pe.Message + ": check user and password in the dsn"
	case "3D000":
		return pe.Message + ": create it first (CREATE DATABASE …)"
	case "53300":
		return pe.Message + ": raise max_connections or lower the number of connections"
	}
	return pe.Message
}

// databaseError returns what is wrong with the database itself; empty if the error concerns the statement.
func (d *DB) databaseError(err error) string {
	if pe, ok := errors.AsType[*pgconn.PgError](err); ok {
		why := postgresError(pe)
		if _, atTheDoor := errors.AsType[*pgconn.ConnectError](err); atTheDoor && why == "" {
			return pe.Message // no statement was run that could be the cause
		}
		return why
	}
	if se, ok := errors.AsType[*sqlite.Error](err); ok {
		return sqliteError(se.Code())
	}
	var ne net.Error
	var ce *pgconn.ConnectError
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Sprintf("did not answer within %s", d.timeout)
	case errors.As(err, &ce), errors.As(err, &ne), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF),
		errors.Is(err, net.ErrClosed), errors.Is(err, driver.ErrBadConn), errors.Is(err, sql.ErrConnDone),
		pgconn.SafeToRetry(err):
		return "does not answer"
	case errors.Is(err, sql.ErrTxDone):
		// The transaction was ended during the work: by the deadline or by a lost connection.
		return "the transaction was cut off"
	}
	return ""
}

// insufficientPrivilege is Postgres' code for a missing right.
const insufficientPrivilege = "42501"

// MissingRight returns Postgres' message if the error is that the user lacks a right.
func MissingRight(err error) (message string, missing bool) {
	pe, ok := errors.AsType[*pgconn.PgError](err)
	if !ok || pe.Code != insufficientPrivilege {
		return "", false
	}
	return pe.Message, true
}

func postgresError(pe *pgconn.PgError) string {
	switch pe.Code {
	case "53100":
		return "its disk is full: free space where Postgres keeps its data (" + pe.Message + ")"
	case "25006":
		return "it is read-only: it may be a standby, point the dsn at the primary"
	case "40001", "40P01":
		return "too many writers at once on the same rows"
	case insufficientPrivilege:
		return pe.Message + ": grant it to the user of the dsn: run grants.sql of this release as the owner of the tables"
	}
	switch pe.Code[:min(2, len(pe.Code))] {
	case "08", "28", "3D", "53", "57", "58":
		// The error classes: connection, password, database, resources, operator intervention, system error.
		return pe.Message
	}
	return ""
}

func sqliteError(code int) string {
	switch code & 0xff {
	case sqlite3.SQLITE_FULL:
		return "the disk is full: free space there; nothing was half-written"
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return "another process keeps it locked: end that one"
	case sqlite3.SQLITE_READONLY:
		return "it cannot be written: check the rights on the file and its folder"
	case sqlite3.SQLITE_CANTOPEN:
		return "it cannot be opened: check that the file and its folder exist and may be written"
	case sqlite3.SQLITE_IOERR:
		return "reading or writing the file failed: check the disk"
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return "it is not a sound SQLite database: restore it from a backup, or move it away to start anew"
	case sqlite3.SQLITE_INTERRUPT:
		return "the work was cut off by its deadline"
	}
	return ""
}

// invalidText recognises text that Postgres cannot store.
func invalidText(err error) (string, bool) {
	if pe, ok := errors.AsType[*pgconn.PgError](err); ok && (pe.Code == "22021" || pe.Code == "22P05") {
		return pe.Message, true
	}
	return "", false
}

func firstLine(err error) string {
	text := err.Error()
	if ce, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		text = ce.Unwrap().Error()
	}
	for i, c := range text {
		if c == '\n' {
			return text[:i]
		}
	}
	return text
}
