package store

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
)

const (
	// separateConns limits the connections to another database. Operations on large payloads are few, and each of them
	// occupies a processor.
	separateConns = 8
	// createPayloads makes the table as the schema of Signalbox's own database has it.
	createPayloads = `CREATE TABLE payloads (
    run_id     TEXT COLLATE "C" NOT NULL,
    digest     TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    value      BYTEA NOT NULL,
    PRIMARY KEY (run_id, digest)
)`
	// uncompressedPayloads is for sealed values, which do not compress.
	uncompressedPayloads = `ALTER TABLE payloads ALTER COLUMN value SET STORAGE EXTERNAL`
)

// SeparateOptions configure a database apart from Signalbox's own.
type SeparateOptions struct {
	// DSN is a Postgres URL or keyword string.
	DSN string
	// Create allows to create the table.
	Create bool
	// CallTimeout limits each call; 0 means 5 s.
	CallTimeout time.Duration
}

// SeparatePayloads is a store in another Postgres database than Signalbox's own.
type SeparatePayloads struct {
	*Payloads

	create bool
	mu     sync.Mutex
	exists bool
}

// OpenSeparatePayloads returns the store in a database. It does not connect: a server starts while this database is
// unavailable.
func OpenSeparatePayloads(ctx context.Context, o SeparateOptions) (*SeparatePayloads, error) {
	db, err := sqldb.Open(ctx,
		sqldb.Options{Driver: sqldb.Postgres, DSN: o.DSN, MaxConns: separateConns, CallTimeout: o.CallTimeout,
			Unchecked: true})
	if err != nil {
		return nil, err
	}
	s := &SeparatePayloads{create: o.Create}
	s.Payloads = &Payloads{db: db, name: "the database of payloads, postgres at " + db.Location(), ready: s.ensure}
	return s, nil
}

// Create creates the table if it is missing, and reports whether it was.
func (s *SeparatePayloads) Create(ctx context.Context) (created bool, err error) {
	err = s.db.Write(ctx, "create the table of payloads", func(ctx context.Context, c sqldb.Conn) error {
		// The lock keeps processes that start at once from creating it twice, which would fail in all but one.
		if _, err := c.ExecContext(ctx, `SELECT pg_advisory_xact_lock(hashtext('signalbox payloads'))`); err != nil {
			return err
		}
		found, err := payloadsExist(ctx, c)
		if created = !found; err != nil || found {
			return err
		}
		for _, statement := range []string{createPayloads, uncompressedPayloads} {
			if _, err := c.ExecContext(ctx, statement); err != nil {
				return err
			}
		}
		return nil
	})
	return created && err == nil, err
}

// payloadsExist reports whether the table exists. It reads the catalog as a table: to_regclass may answer from a cache of the
// connection.
func payloadsExist(ctx context.Context, c sqldb.Conn) (found bool, err error) {
	err = c.QueryRowContext(ctx,
		`SELECT EXISTS (SELECT 1 FROM pg_tables WHERE tablename = 'payloads' AND schemaname = ANY (current_schemas(false)))`).
		Scan(&found)
	return found, err
}

// ensure returns an error while the table does not exist. It creates it where that is allowed.
func (s *SeparatePayloads) ensure(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.exists {
		return nil
	}
	err := s.db.Read(ctx, "find the table of payloads", func(ctx context.Context, c sqldb.Conn) (err error) {
		s.exists, err = payloadsExist(ctx, c)
		return err
	})
	switch {
	case err != nil || s.exists:
		return err
	case !s.create:
		return apperror.New(apperror.Unavailable, apperror.StoreUnavailable,
			"the database of payloads has no table payloads: run \"signalbox migrate up\" as its owner, with the same "+
				"payloads.store").
			WithDetail("%s", s)
	}
	if _, err := s.Create(ctx); err != nil {
		return fmt.Errorf("%s: %w", s, err)
	}
	s.exists = true
	return nil
}

// Ping returns an error if the database does not answer.
func (s *SeparatePayloads) Ping(ctx context.Context) error { return s.db.Ping(ctx) }

// Close closes all connections after the calls that use them have ended.
func (s *SeparatePayloads) Close() error { return s.db.Close() }
