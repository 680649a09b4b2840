package storetest

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/session"
	"github.com/signalbox-dev/signalbox/internal/token"
)

// testSessionCounts refuses a session for each number of sessions of its token.
func testSessionCounts(t *testing.T, kept session.Store, made func(id string, n int) session.Session) {
	t.Helper()
	refusal := errors.New("refused")
	count := func(n int) (counts session.Counts) {
		t.Helper()
		err := kept.CreateSession(t.Context(), made("d", n), nil, entry(audit.SessionSignIn, "", "d"),
			func(c session.Counts) error {
				counts = c
				return refusal
			})
		require.ErrorIs(t, err, refusal)
		return counts
	}
	require.Equal(t, session.Counts{Open: 3, LastMinute: 3}, count(3))
	require.Equal(t, session.Counts{Open: 3, LastMinute: 2}, count(61))
	require.Equal(t, session.Counts{Open: 2}, count(101), "one was not used for too long")
}

// testSessions follows sessions from their creation to their deletion.
func testSessions(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	kept := s.Sessions()
	hash := []byte("0123456789abcdef0123456789abcdef")
	ci := token.Token{ID: "t", Name: "ci", Roles: map[string]auth.Role{"shop": auth.Operator}, Creator: "ada",
		CreatedAt: at(0), ExpiresAt: at(900)}
	require.NoError(t, s.Tokens().CreateToken(ctx, ci, []byte("fedcba9876543210fedcba9876543210"),
		entry(audit.TokenCreate, "", "t"), nil))
	made := func(id string, n int) session.Session {
		return session.Session{ID: id, Token: ci, CreatedAt: at(n), LastUsedAt: at(n), Idle: at(100).Sub(at(0)),
			ExpiresAt: at(n + 500)}
	}
	for _, one := range []session.Session{made("a", 1), made("b", 2), made("c", 2)} {
		require.NoError(t, kept.CreateSession(ctx, one, hash, entry(audit.SessionSignIn, "", one.ID),
			func(session.Counts) error {
				return nil
			}))
		got, gotHash, err := kept.GetSession(ctx, one.ID)
		require.NoError(t, err)
		require.Equal(t, one, got)
		require.Equal(t, hash, gotHash)
	}
	_, _, err := kept.GetSession(ctx, "d")
	requireError(t, err, apperror.NotFound, apperror.SessionNotFound, "d")

	testSessionCounts(t, kept, made)
	stored, err := kept.GetSessions(ctx, []string{"a", "d", "c"})
	require.NoError(t, err)
	require.Equal(t, map[string]session.Stored{
		"a": {Session: made("a", 1), Hash: hash}, "c": {Session: made("c", 2), Hash: hash}}, stored)

	every := at(10).Sub(at(0))
	for _, use := range []struct{ said, want time.Time }{
		{at(10), at(1)}, {at(11), at(11)}, {at(5), at(11)}, {at(20), at(11)}, {at(90), at(90)}} {
		require.NoError(t, kept.TouchSession(ctx, "a", use.said, every))
		got, _, err := kept.GetSession(ctx, "a")
		require.NoError(t, err)
		require.Equal(t, use.want, got.LastUsedAt)
	}

	list := func(now time.Time) (ids []string) {
		var after *session.Cursor
		for {
			page, err := kept.ListSessions(ctx, now, after, 1)
			require.NoError(t, err)
			if len(page) == 0 {
				return ids
			}
			ids, after = append(ids, page[0].ID), &session.Cursor{CreatedAt: page[0].CreatedAt, ID: page[0].ID}
		}
	}
	require.Equal(t, []string{"c", "b", "a"}, list(at(100)), "newest first")
	require.Equal(t, []string{"a"}, list(at(102)), "the others were not used")
	require.Empty(t, list(at(190)))

	closed, err := kept.EndSession(ctx, "b", at(50), entry(audit.SessionRevoke, "", "b"))
	require.NoError(t, err)
	require.Equal(t, at(50), closed.EndedAt)
	closed, err = kept.EndSession(ctx, "b", at(60), entry(audit.SessionRevoke, "", "b"))
	require.NoError(t, err)
	require.Equal(t, at(50), closed.EndedAt, "once is for good")
	_, err = kept.EndSession(ctx, "d", at(60), entry(audit.SessionRevoke, "", "d"))
	requireError(t, err, apperror.NotFound, apperror.SessionNotFound, "d")
	entries, err := s.ListAudit(ctx, audit.Filter{Action: audit.SessionRevoke, Limit: 10})
	require.NoError(t, err)
	require.Len(t, entries, 1)
	require.Equal(t, []string{"c", "a"}, list(at(60)))

	for _, step := range []struct {
		before time.Time
		limit  int
		want   int64
	}{{at(50), 10, 0}, {at(51), 10, 1}, {at(102), 10, 0}, {at(103), 10, 1}, {at(190), 10, 0}, {at(191), 0, 1}} {
		if step.limit == 0 {
			step.limit = 1
		}
		deleted, err := kept.DeleteSessions(ctx, step.before, step.limit)
		require.NoError(t, err)
		require.Equal(t, step.want, deleted, step.before)
	}
	for _, id := range []string{"a", "b", "c"} {
		_, _, err := kept.GetSession(ctx, id)
		requireError(t, err, apperror.NotFound, apperror.SessionNotFound, id)
	}
}
