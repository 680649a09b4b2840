package session_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/project"
	"github.com/signalbox-dev/signalbox/internal/session"
	"github.com/signalbox-dev/signalbox/internal/store"
	"github.com/signalbox-dev/signalbox/internal/store/storetest"
	"github.com/signalbox-dev/signalbox/internal/token"
)

// setup is the service over a real store, with a clock that advances only by pass.
type setup struct {
	*session.Service

	t      *testing.T
	store  *store.Store
	tokens *token.Service
	admin  context.Context

	mu  sync.Mutex
	now time.Time
}

func (s *setup) clock() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

func (s *setup) pass(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = s.now.Add(d)
}

const (
	idle = 30 * time.Minute
	most = 12 * time.Hour
)

func start(t *testing.T) *setup {
	t.Helper()
	kept, err := store.Open(t.Context(),
		store.Options{Driver: store.SQLite, DSN: storetest.SQLite(t), AutoMigrate: true, CallTimeout: time.Minute})
	require.NoError(t, err)
	require.NoError(t, kept.Start(t.Context()))
	ctx := context.WithoutCancel(t.Context())
	t.Cleanup(func() { require.NoError(t, kept.Stop(ctx)) })
	s := &setup{t: t, store: kept, now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC),
		admin: auth.WithActor(t.Context(), auth.Local())}
	s.tokens = token.NewService(kept.Tokens(), kept, token.Options{Now: s.clock, Log: slog.New(slog.DiscardHandler)})
	s.Service = session.NewService(kept.Sessions(), s.tokens,
		session.Options{Idle: idle, Max: most, Now: s.clock, Log: slog.New(slog.DiscardHandler)})
	for _, name := range []string{"shop", "lab"} {
		_, err := project.NewService(kept, s.clock).Create(s.admin, name, "")
		require.NoError(t, err)
	}
	return s
}

// token creates a token that is valid for a time, or without end.
func (s *setup) token(name string, valid time.Duration, roles map[string]auth.Role) token.Token {
	s.t.Helper()
	r := token.Request{Name: name, Roles: roles}
	if valid > 0 {
		r.ExpiresAt = s.clock().Add(valid)
	}
	made, _, err := s.tokens.Create(s.admin, r)
	require.NoError(s.t, err)
	return made
}

func (s *setup) open(tokenID, previous string) (session.Session, string) {
	s.t.Helper()
	opened, secret, err := s.Open(s.t.Context(), tokenID, previous)
	require.NoError(s.t, err)
	return opened, secret
}

func (s *setup) refused(secret, reason, text string) {
	s.t.Helper()
	_, err := s.Authenticate(s.t.Context(), secret)
	f, ok := apperror.From(err)
	require.True(s.t, ok, "%v", err)
	require.Equal(s.t, apperror.Unauthenticated, f.Class)
	require.Equal(s.t, reason, f.Reason)
	require.Contains(s.t, f.Message, text)
}

func (s *setup) actions() (list []string) {
	s.t.Helper()
	entries, err := s.store.ListAudit(s.t.Context(), audit.Filter{Limit: 100, OldestFirst: true})
	require.NoError(s.t, err)
	for _, e := range entries {
		if strings.HasPrefix(e.Action, "session.") {
			list = append(list, e.Action+" "+e.Actor.Name+" "+e.Project+" "+e.Reason)
		}
	}
	return list
}

func operator() map[string]auth.Role { return map[string]auth.Role{"shop": auth.Operator} }

func TestSessionHasTheRolesOfItsToken(t *testing.T) {
	t.Parallel()
	s := start(t)
	ada := s.token("ada", 0, operator())
	opened, secret := s.open(ada.ID, "")
	actor, err := s.Authenticate(t.Context(), secret)
	require.NoError(t, err)
	require.Equal(t, auth.Actor{Kind: auth.KindToken, Name: "ada", ID: ada.ID, Session: opened.ID, Roles: operator()},
		actor)
	require.Equal(t, opened.ID, s.ID(secret))
	require.Equal(t, s.clock().Add(idle), opened.IdleExpiresAt())
	require.Equal(t, s.clock().Add(most), opened.ExpiresAt)
	require.Equal(t, []string{"session.sign_in ada shop "}, s.actions())
	_, hash, err := s.store.Sessions().GetSession(t.Context(), opened.ID)
	require.NoError(t, err)
	require.NotContains(t, string(hash), secret)
	require.Len(t, hash, 32)
}

func TestWrongSecretsAreRefused(t *testing.T) {
	t.Parallel()
	s := start(t)
	ada := s.token("ada", 0, operator())
	opened, secret := s.open(ada.ID, "")
	_, other := s.open(ada.ID, "")
	_, random, _ := strings.Cut(secret, ".")
	_, otherRandom, _ := strings.Cut(other, ".")
	for _, wrong := range []string{
		"", opened.ID, opened.ID + ".", random, opened.ID + "." + otherRandom, secret[:len(secret)-2], secret +
			"AA", strings.ToUpper(opened.ID) + "." + random,
		"sbx_x", "aaaaaaaaaaaaaaaa." + random, "\xff." + random,
	} {
		s.refused(wrong, apperror.Unidentified, "unknown session")
	}
	_, err := s.Authenticate(t.Context(), secret)
	require.NoError(t, err)
}

func TestSessionsOfATokenAreBounded(t *testing.T) {
	t.Parallel()
	s := start(t)
	ada, ben := s.token("ada", 0, operator()), s.token("ben", 0, operator())
	refused := func(reason, says string) {
		t.Helper()
		_, _, err := s.Open(t.Context(), ada.ID, "")
		require.True(t, apperror.Is(err, reason), "%v", err)
		require.ErrorContains(t, err, says)
	}
	const perMinute, open = 20, 100
	first, _ := s.open(ada.ID, "")
	for n := 1; n < open; n++ {
		if n%perMinute == 0 {
			refused(apperror.RateLimited, "20 sessions within a minute")
			s.pass(time.Minute)
		}
		s.open(ada.ID, "")
	}
	s.pass(time.Minute)
	entries := len(s.actions())
	refused(apperror.TooManySessions, "100 open sessions")
	require.Len(t, s.actions(), entries, "a refused sign-in leaves no audit entry")
	s.open(ben.ID, "")
	_, err := s.Revoke(s.admin, first.ID, "")
	require.NoError(t, err)
	s.open(ada.ID, "")
	refused(apperror.TooManySessions, "100 open sessions")
	s.pass(idle)
	s.open(ada.ID, "")
}

func TestUnusedSessionEnds(t *testing.T) {
	t.Parallel()
	s := start(t)
	_, secret := s.open(s.token("ada", 0, operator()).ID, "")
	for range 4 {
		s.pass(idle - time.Second)
		_, err := s.Authenticate(t.Context(), secret)
		require.NoError(t, err, "each use extends it")
	}
	opened, err := s.Get(t.Context(), s.ID(secret))
	require.NoError(t, err)
	require.Equal(t, s.clock(), opened.LastUsedAt)
	s.pass(30 * time.Second)
	_, err = s.Authenticate(t.Context(), secret)
	require.NoError(t, err)
	again, err := s.Get(t.Context(), opened.ID)
	require.NoError(t, err)
	require.Equal(t, opened.LastUsedAt, again.LastUsedAt, "a use is written once a minute")
	s.pass(idle - 31*time.Second)
	require.NoError(t, s.CheckValid(t.Context(), opened.ID))
	s.pass(time.Second)
	require.Error(t, s.CheckValid(t.Context(), opened.ID), "a check is not a use")
	s.pass(time.Second)
	s.refused(secret, apperror.SessionEnded, "was not used for 30m0s")
}

func TestSessionEndsAtItsMaximum(t *testing.T) {
	t.Parallel()
	s := start(t)
	_, secret := s.open(s.token("ada", 0, operator()).ID, "")
	for range int(most/idle)*2 - 1 {
		s.pass(idle / 2)
		_, err := s.Authenticate(t.Context(), secret)
		require.NoError(t, err)
	}
	s.pass(idle / 2)
	s.refused(secret, apperror.SessionEnded, "expired at 2026-03-02T00:00:00Z")
}

func TestSessionEndsWithItsToken(t *testing.T) {
	t.Parallel()
	s := start(t)
	short := s.token("short", 10*time.Minute, operator())
	opened, secret := s.open(short.ID, "")
	require.Equal(t, short.ExpiresAt, opened.ExpiresAt)
	s.pass(10 * time.Minute)
	s.refused(secret, apperror.SessionEnded, "expired")
	_, _, err := s.Open(t.Context(), short.ID, "")
	require.True(t, apperror.Is(err, apperror.TokenExpired), "%v", err)

	long := s.token("long", 0, operator())
	opened, secret = s.open(long.ID, "")
	require.NoError(t, s.CheckValid(t.Context(), opened.ID))
	_, err = s.tokens.Revoke(s.admin, long.ID, "lost")
	require.NoError(t, err)
	s.refused(secret, apperror.TokenRevoked, "was revoked")
	require.True(t, apperror.Is(s.CheckValid(t.Context(), opened.ID), apperror.TokenRevoked))
	require.Empty(t, s.listed(s.admin), "a session without a valid token is not open")
	_, _, err = s.Open(t.Context(), long.ID, "")
	require.True(t, apperror.Is(err, apperror.TokenRevoked), "%v", err)
	_, _, err = s.Open(t.Context(), "none", "")
	require.True(t, apperror.Is(err, apperror.Unidentified), "%v", err)
}

func (s *setup) listed(ctx context.Context) (ids []string) {
	s.t.Helper()
	list, err := s.List(ctx, nil, 10)
	require.NoError(s.t, err)
	for _, one := range list {
		ids = append(ids, one.ID)
	}
	return ids
}

func TestSignInReplacesTheSessionOfTheBrowser(t *testing.T) {
	t.Parallel()
	s := start(t)
	ada, bob := s.token("ada", 0, operator()), s.token("bob", 0, operator())
	first, old := s.open(ada.ID, "")
	second, secret := s.open(bob.ID, old)
	require.NotEqual(t, first.ID, second.ID)
	require.NotEqual(t, old, secret)
	s.refused(old, apperror.SessionEnded, "was ended at")
	_, err := s.Authenticate(t.Context(), secret)
	require.NoError(t, err)
	require.Equal(t, []string{"session.sign_in ada shop ", "session.sign_in bob shop ", "session.sign_out ada shop " +
		"replaced by another sign-in"}, s.actions())
	_, third := s.open(ada.ID, second.ID+".AAAA")
	_, err = s.Authenticate(t.Context(), secret)
	require.NoError(t, err, "an ID without its secret ends nothing")
	require.NotEmpty(t, third)
}

func TestSignOutEndsOnlyTheOwnSession(t *testing.T) {
	t.Parallel()
	s := start(t)
	ada := s.token("ada", 0, operator())
	_, one := s.open(ada.ID, "")
	_, other := s.open(ada.ID, "")
	actor, err := s.Authenticate(t.Context(), one)
	require.NoError(t, err)
	require.NoError(t, s.Close(auth.WithActor(t.Context(), actor)))
	s.refused(one, apperror.SessionEnded, "was ended")
	_, err = s.Authenticate(t.Context(), other)
	require.NoError(t, err)
	err = s.Close(auth.WithActor(t.Context(), ada.Actor()))
	require.True(t, apperror.Is(err, apperror.NoSession), "%v", err)
	require.Contains(t, s.actions(), "session.sign_out ada shop ")
}

func TestAdminsSeeAndRevokeSessions(t *testing.T) {
	t.Parallel()
	s := start(t)
	ada := s.token("ada", 0, operator())
	one, secret := s.open(ada.ID, "")
	s.pass(time.Second)
	two, _ := s.open(s.token("lab", 0, map[string]auth.Role{"lab": auth.Viewer}).ID, "")
	as := func(name string, roles map[string]auth.Role) context.Context {
		return auth.WithActor(t.Context(), auth.Actor{Kind: auth.KindToken, Name: name, ID: name, Roles: roles})
	}
	shopAdmin := as("shop-admin", map[string]auth.Role{"shop": auth.Admin})
	labOperator := as("lab-operator", map[string]auth.Role{"lab": auth.Operator})
	require.Equal(t, []string{two.ID, one.ID}, s.listed(s.admin))
	require.Equal(t, []string{one.ID}, s.listed(shopAdmin))
	require.Empty(t, s.listed(labOperator))
	require.Equal(t, []string{one.ID}, s.listed(auth.WithActor(t.Context(), ada.Actor())), "those of the own token")
	page, err := s.List(s.admin, nil, 1)
	require.NoError(t, err)
	require.Len(t, page, 1)

	for _, id := range []string{two.ID, "none"} {
		_, err = s.Revoke(shopAdmin, id, "")
		require.True(t, apperror.Is(err, apperror.SessionNotFound), "%v", err)
	}
	ended, err := s.Revoke(shopAdmin, one.ID, "left the desk")
	require.NoError(t, err)
	require.Equal(t, s.clock(), ended.EndedAt)
	s.pass(time.Second)
	again, err := s.Revoke(shopAdmin, one.ID, "twice")
	require.NoError(t, err)
	require.Equal(t, ended.EndedAt, again.EndedAt)
	s.refused(secret, apperror.SessionEnded, "was ended at 2026-03-01T12:00:01Z")
	require.True(t, apperror.Is(s.CheckValid(t.Context(), one.ID), apperror.SessionEnded))
	require.Equal(t, "session.revoke shop-admin shop left the desk", s.actions()[2])
	require.Len(t, s.actions(), 3)
}

func TestCSRFTokenBelongsToItsSession(t *testing.T) {
	t.Parallel()
	s := start(t)
	ada := s.token("ada", 0, operator())
	_, one := s.open(ada.ID, "")
	_, other := s.open(ada.ID, "")
	require.Len(t, s.CSRFToken(one), 43)
	require.NotEqual(t, s.CSRFToken(one), s.CSRFToken(other))
	require.NotContains(t, one, s.CSRFToken(one))
}

// away is a store that is unavailable.
type away struct{ session.Store }

var errAway = errors.New("the database is unavailable")

func (away) GetSession(context.Context, string) (session.Session, []byte, error) {
	return session.Session{}, nil, errAway
}

func (away) GetSessions(context.Context, []string) (map[string]session.Stored, error) {
	return nil, errAway
}

func TestSessionsAreRefusedWhileTheStoreIsUnavailable(t *testing.T) {
	t.Parallel()
	s := start(t)
	_, secret := s.open(s.token("ada", 0, operator()).ID, "")
	down := session.NewService(away{}, s.tokens,
		session.Options{Idle: idle, Max: most, Now: s.clock, Log: slog.New(slog.DiscardHandler)})
	_, err := down.Authenticate(t.Context(), secret)
	require.ErrorIs(t, err, errAway)
	_, expected := apperror.From(err)
	require.False(t, expected, "it is no refusal: the session may be valid")
	require.ErrorIs(t, down.CheckValid(t.Context(), s.ID(secret)), errAway)
}
