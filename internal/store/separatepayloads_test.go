package store_test

import (
	"context"
	"net"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/payload"
	"github.com/signalbox-dev/signalbox/internal/payload/payloadtest"
	"github.com/signalbox-dev/signalbox/internal/store"
	"github.com/signalbox-dev/signalbox/internal/store/storetest"
)

func openSeparate(t *testing.T, dsn string, create bool) *store.SeparatePayloads {
	t.Helper()
	// on a busy machine
	s, err := store.OpenSeparatePayloads(t.Context(),
		store.SeparateOptions{DSN: dsn, Create: create, CallTimeout: time.Minute})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func TestSeparateConformance(t *testing.T) {
	t.Parallel()
	payloadtest.Run(t, func(t *testing.T) payloadtest.Open {
		dsn := storetest.Postgres(t)
		return func() payload.Store { return openSeparate(t, dsn, true) }
	})
}

// Several servers start at once on an empty database.
func TestTableIsCreatedOnce(t *testing.T) {
	t.Parallel()
	dsn := storetest.Postgres(t)
	var group sync.WaitGroup
	failures, made := make(chan error, 8), make(chan bool, 8)
	for range cap(failures) {
		s := openSeparate(t, dsn, true)
		group.Go(func() {
			created, err := s.Create(context.WithoutCancel(t.Context()))
			failures <- err
			made <- created
		})
	}
	group.Wait()
	close(failures)
	close(made)
	created := 0
	for err := range failures {
		require.NoError(t, err)
	}
	for one := range made {
		if one {
			created++
		}
	}
	require.Equal(t, 1, created)
}

// A role that serves must not create tables: the owner does.
func TestMissingTableNamesTheCommand(t *testing.T) {
	t.Parallel()
	dsn := storetest.Postgres(t)
	s := openSeparate(t, dsn, false)
	_, _, getErr := s.Get(t.Context(), "r1", "d1")
	for _, err := range []error{s.Put(t.Context(), "r1", "d1", nil), getErr, s.Writable(t.Context())} {
		require.ErrorContains(t, err, "the database of payloads, postgres at 127.0.0.1:")
		require.ErrorContains(t, err, `has no table payloads: run "signalbox migrate up"`)
		require.True(t, apperror.Is(err, apperror.StoreUnavailable))
	}
	created, err := s.Create(t.Context())
	require.NoError(t, err)
	require.True(t, created)
	require.NoError(t, s.Put(t.Context(), "r1", "d1", []byte("value")), "no restart is needed")
}

// The three rights of the role that serves are sufficient; see docs/least-privilege.md.
func TestThreeRightsAreSufficient(t *testing.T) {
	t.Parallel()
	dsn := storetest.Postgres(t)
	_, err := openSeparate(t, dsn, true).Create(t.Context())
	require.NoError(t, err)
	admin, err := pgx.Connect(t.Context(), dsn)
	require.NoError(t, err)
	t.Cleanup(func() { _ = admin.Close(context.WithoutCancel(t.Context())) })
	u, err := url.Parse(dsn)
	require.NoError(t, err)
	role := "role_" + u.Path[1:]
	for _, statement := range []string{
		"CREATE ROLE " + role + " LOGIN", "GRANT SELECT, INSERT, DELETE ON payloads TO " + role} {
		_, err := admin.Exec(t.Context(), statement)
		require.NoError(t, err)
	}
	t.Cleanup(func() {
		for _, statement := range []string{"DROP OWNED BY " + role, "DROP ROLE " + role} {
			_, err := admin.Exec(context.WithoutCancel(t.Context()), statement)
			require.NoError(t, err)
		}
	})
	u.User = url.User(role)
	s := openSeparate(t, u.String(), false)
	require.NoError(t, s.Writable(t.Context()))
	require.NoError(t, s.Put(t.Context(), "r1", "d1", []byte("value")))
	_, found, err := s.Get(t.Context(), "r1", "d1")
	require.NoError(t, err)
	require.True(t, found)
	deleted, err := s.DeleteRun(t.Context(), "r1")
	require.NoError(t, err)
	require.EqualValues(t, 1, deleted)
}

// A server starts while the database of payloads is unavailable, and says which one it is.
func TestUnavailableDatabaseIsNamed(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := l.Addr().String()
	require.NoError(t, l.Close())
	s := openSeparate(t, "postgres://signalbox@"+address+"/values?sslmode=disable", true)
	err = s.Writable(t.Context())
	require.ErrorContains(t, err, "the store: does not answer")
	require.ErrorContains(t, err, "store "+address+` database "values"`)
	require.True(t, apperror.Is(err, apperror.StoreUnavailable))
}
