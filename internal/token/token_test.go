package token_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/project"
	"github.com/signalbox-dev/signalbox/internal/store"
	"github.com/signalbox-dev/signalbox/internal/store/storetest"
	"github.com/signalbox-dev/signalbox/internal/token"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// clock advances only by pass.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// counted is a store that counts its reads, and can be made unavailable.
type counted struct {
	token.Store

	mu    sync.Mutex
	asked int
	away  error
}

func (c *counted) GetTokens(ctx context.Context, ids []string) (map[string]token.Stored, error) {
	c.mu.Lock()
	c.asked++
	away := c.away
	c.mu.Unlock()
	if away != nil {
		return nil, away
	}
	return c.Store.GetTokens(ctx, ids)
}

func (c *counted) leave(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.away = err
}

func (c *counted) times() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.asked
}

type setup struct {
	*token.Service

	clock *clock
	kept  *store.Store
	store *counted
	admin context.Context
}

func start(t *testing.T) *setup {
	t.Helper()
	kept, err := store.Open(t.Context(),
		store.Options{Driver: store.SQLite, DSN: storetest.SQLite(t), AutoMigrate: true, CallTimeout: time.Minute})
	require.NoError(t, err)
	require.NoError(t, kept.Start(t.Context()))
	s := &setup{clock: &clock{at: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}, kept: kept,
		store: &counted{Store: kept.Tokens()}}
	s.Service = s.another()
	s.admin = auth.WithActor(t.Context(), auth.Local())
	require.NoError(t, s.Start(t.Context()))
	ctx := context.WithoutCancel(t.Context())
	t.Cleanup(func() {
		require.NoError(t, s.Stop(ctx))
		require.NoError(t, kept.Stop(ctx))
	})
	for _, name := range []string{"shop", "lab"} {
		_, err := project.NewService(kept, s.clock.now).Create(s.admin, name, "")
		require.NoError(t, err)
	}
	return s
}

// another returns a service on the same store, as of another process.
func (s *setup) another() *token.Service {
	return token.NewService(s.store, s.kept, token.Options{Now: s.clock.now, Log: slog.New(slog.DiscardHandler)})
}

func (s *setup) create(t *testing.T, name string, roles map[string]auth.Role, expires time.Time) (token.Token, string) {
	t.Helper()
	made, text, err := s.Create(s.admin, token.Request{Name: name, Roles: roles, ExpiresAt: expires})
	require.NoError(t, err)
	return made, text
}

func requireReason(t *testing.T, err error, reason string, parts ...string) {
	t.Helper()
	require.True(t, apperror.Is(err, reason), "%v", err)
	for _, part := range parts {
		require.ErrorContains(t, err, part)
	}
}

func operator(project string) map[string]auth.Role {
	return map[string]auth.Role{project: auth.Operator}
}

func TestTokenLifecycle(t *testing.T) {
	t.Parallel()
	s := start(t)
	made, text := s.create(t, "ci", operator("shop"), s.clock.now().Add(time.Hour))
	require.Regexp(t, `^sbx_[a-z2-7]{16}_[a-z2-7]{59}$`, text)
	require.Contains(t, text, made.ID)

	actor, err := s.Authenticate(t.Context(), text, 0)
	require.NoError(t, err)
	require.Equal(t, auth.Actor{Kind: "token", Name: "ci", ID: made.ID, Roles: operator("shop")}, actor)

	_, hash, err := s.kept.Tokens().GetToken(t.Context(), made.ID)
	require.NoError(t, err)
	require.Len(t, hash, 32)
	require.NotContains(t, text, string(hash))

	s.clock.pass(time.Hour)
	_, err = s.Authenticate(t.Context(), text, 0)
	requireReason(t, err, apperror.TokenExpired, `"ci"`, made.ID, "2026-03-01T13:00:00Z")
	require.NotContains(t, err.Error(), text)

	revoked, err := s.Revoke(s.admin, made.ID, "lost")
	require.NoError(t, err)
	require.Equal(t, s.clock.now(), revoked.RevokedAt)
	_, err = s.Authenticate(t.Context(), text, 0)
	requireReason(t, err, apperror.TokenRevoked, `"ci"`)
	s.clock.pass(time.Minute)
	again, err := s.Revoke(s.admin, made.ID, "again")
	require.NoError(t, err)
	require.Equal(t, revoked.RevokedAt, again.RevokedAt, "the second call changes nothing")

	entries, err := s.kept.ListAudit(t.Context(), audit.Filter{Project: "shop", Subject: made.ID, Limit: 10})
	require.NoError(t, err)
	require.Len(t, entries, 2)
	require.Equal(t, []string{audit.TokenRevoke, "lost", audit.TokenCreate},
		[]string{entries[0].Action, entries[0].Reason, entries[1].Action})
	for _, e := range entries {
		require.NotContains(t, string(e.Detail), text[len(text)-20:])
	}
	s.create(t, "ci", operator("shop"), time.Time{}) // the name is free again
}

func TestInvalidTextIsRefusedWithReason(t *testing.T) {
	t.Parallel()
	s := start(t)
	_, text := s.create(t, "ci", operator("shop"), time.Time{})
	_, other := s.create(t, "other", operator("shop"), time.Time{})
	asked := s.store.times()
	for _, wrong := range []string{
		"", "x", "sbx_", text[1:], text + "a", strings.ToUpper(text), text[:len(text)-1] + flipped(text[len(text)-1]), "ghp" +
			text[3:]} {
		_, err := s.Authenticate(t.Context(), wrong, 0)
		requireReason(t, err, apperror.Unidentified)
	}
	require.Equal(t, asked, s.store.times(), "no read of the store")

	_, foreign, err := start(t).Create(s.admin, token.Request{Name: "elsewhere", Roles: operator("shop")})
	require.NoError(t, err)
	_, err = s.Authenticate(t.Context(), foreign, 0)
	requireReason(t, err, apperror.Unidentified, "unknown token")
	_, err = s.Authenticate(t.Context(), other, 0)
	require.NoError(t, err)
}

func flipped(c byte) string {
	if c == 'a' {
		return "b"
	}
	return "a"
}

func TestRevocationTakesEffect(t *testing.T) {
	t.Parallel()
	s := start(t)
	elsewhere := s.another()
	made, text := s.create(t, "ci", operator("shop"), time.Time{})
	for _, service := range []*token.Service{s.Service, elsewhere} {
		_, err := service.Authenticate(t.Context(), text, 0)
		require.NoError(t, err)
		require.NoError(t, service.CheckValid(t.Context(), made.ID))
	}
	asked := s.store.times()
	_, err := s.Authenticate(t.Context(), text, 0)
	require.NoError(t, err)
	require.Equal(t, asked, s.store.times(), "a fresh answer is cached")

	_, err = s.Revoke(s.admin, made.ID, "")
	require.NoError(t, err)
	_, err = s.Authenticate(t.Context(), text, 0)
	requireReason(t, err, apperror.TokenRevoked)
	requireReason(t, s.CheckValid(t.Context(), made.ID), apperror.TokenRevoked)
	s.clock.pass(2 * time.Second)
	_, err = elsewhere.Authenticate(t.Context(), text, 0)
	requireReason(t, err, apperror.TokenRevoked, "revoked at")
}

func TestCallsAreRefusedWhileStoreIsUnavailable(t *testing.T) {
	t.Parallel()
	s := start(t)
	_, text := s.create(t, "ci", operator("shop"), time.Time{})
	_, err := s.Authenticate(t.Context(), text, 0)
	require.NoError(t, err)
	s.store.leave(apperror.New(apperror.Unavailable, apperror.StoreUnavailable, "away"))
	s.clock.pass(3 * time.Second)
	_, err = s.Authenticate(t.Context(), text, 0)
	requireReason(t, err, apperror.StoreUnavailable)
	_, err = s.Authenticate(t.Context(), text, time.Hour)
	require.NoError(t, err, "a call with a grace period is accepted")
	s.clock.pass(time.Hour)
	_, err = s.Authenticate(t.Context(), text, time.Hour)
	requireReason(t, err, apperror.StoreUnavailable)
	s.store.leave(errors.New("broken"))
	_, err = s.Authenticate(t.Context(), text, 0)
	require.ErrorContains(t, err, "broken")
	_, isAppError := apperror.From(err)
	require.False(t, isAppError)
}

func TestLastUseIsWrittenOnceAMinute(t *testing.T) {
	t.Parallel()
	s := start(t)
	made, text := s.create(t, "ci", operator("shop"), time.Time{})
	use := func() {
		t.Helper()
		_, err := s.Authenticate(t.Context(), text, 0)
		require.NoError(t, err)
	}
	last := func() time.Time {
		kept, _, err := s.kept.Tokens().GetToken(t.Context(), made.ID)
		require.NoError(t, err)
		return kept.LastUsedAt
	}
	first := s.clock.now()
	use()
	require.Eventually(t, func() bool { return last().Equal(first) }, time.Minute, time.Millisecond)
	s.clock.pass(59 * time.Second)
	use()
	s.clock.pass(time.Second)
	use()
	require.Eventually(t, func() bool { return last().Equal(first.Add(time.Minute)) }, time.Minute, time.Millisecond)
}

func TestActorGrantsOnlyItsOwnRoles(t *testing.T) {
	t.Parallel()
	s := start(t)
	as := func(roles map[string]auth.Role) context.Context {
		return auth.WithActor(t.Context(), auth.Actor{Kind: auth.KindToken, Name: "ada", ID: "someone", Roles: roles})
	}
	shop := as(map[string]auth.Role{"shop": auth.Admin, "lab": auth.Operator})
	made, _, err := s.Create(shop, token.Request{Name: "mine", Roles: map[string]auth.Role{"shop": auth.Admin}})
	require.NoError(t, err)
	require.Equal(t, "ada", made.Creator)
	for reason, roles := range map[string]map[string]auth.Role{
		apperror.PermissionDenied: {"shop": auth.Viewer, "lab": auth.Viewer},
		apperror.ProjectNotFound:  {"default": auth.Viewer},
	} {
		_, _, err := s.Create(shop, token.Request{Name: "more", Roles: roles})
		requireReason(t, err, reason)
	}
	_, _, err = s.Create(shop, token.Request{Name: "all", Roles: map[string]auth.Role{auth.Everywhere: auth.Viewer}})
	requireReason(t, err, apperror.PermissionDenied)

	// The actor cannot see or revoke tokens of other projects.
	theirs, text := s.create(t, "lab", operator("lab"), time.Time{})
	both, _ := s.create(t, "both", map[string]auth.Role{"shop": auth.Viewer, "lab": auth.Viewer}, time.Time{})
	list, err := s.List(shop, nil, 10)
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.Equal(t, "mine", list[0].Name)
	_, unknown := s.Revoke(shop, "nothing", "")
	for _, id := range []string{theirs.ID, both.ID} {
		_, err = s.Revoke(shop, id, "")
		requireReason(t, err, apperror.TokenNotFound)
		require.Equal(t, strings.ReplaceAll(unknown.Error(), "nothing", id), err.Error())
	}
	// A token can revoke itself.
	self, err := s.Authenticate(t.Context(), text, 0)
	require.NoError(t, err)
	_, err = s.Revoke(auth.WithActor(t.Context(), self), theirs.ID, "leaked")
	require.NoError(t, err)

	page, err := s.List(s.admin, nil, 2)
	require.NoError(t, err)
	require.Len(t, page, 2)
	rest, err := s.List(s.admin, &token.Cursor{CreatedAt: page[1].CreatedAt, ID: page[1].ID}, 10)
	require.NoError(t, err)
	require.Len(t, rest, 1)
}

func TestNamesAreUniqueInEachProject(t *testing.T) {
	s := start(t)
	shop := auth.WithActor(t.Context(),
		auth.Actor{Kind: auth.KindToken, Name: "ada", Roles: map[string]auth.Role{"shop": auth.Admin}})
	create := func(ctx context.Context, name string, projects ...string) error {
		roles := map[string]auth.Role{}
		for _, project := range projects {
			roles[project] = auth.Viewer
		}
		_, _, err := s.Create(ctx, token.Request{Name: name, Roles: roles})
		return err
	}
	require.NoError(t, create(s.admin, "ci", "lab"))
	require.NoError(t, create(shop, "ci", "shop"), "an admin of one project learns no names of another")
	for _, projects := range [][]string{{"shop"}, {"shop", "lab"}, {auth.Everywhere}} {
		requireReason(t, create(s.admin, "ci", projects...), apperror.TokenExists, `"ci"`)
	}
	require.NoError(t, create(s.admin, "root", auth.Everywhere))
	requireReason(t, create(shop, "root", "shop"), apperror.TokenExists, `"root"`)
}

func TestNamesCreatedAtTheSameTimeStayUnique(t *testing.T) {
	s := start(t)
	var wg sync.WaitGroup
	var made atomic.Int32
	for _, project := range []string{"shop", auth.Everywhere, "shop", auth.Everywhere} {
		wg.Go(func() {
			_, _, err := s.Create(s.admin, token.Request{Name: "ci", Roles: operator(project)})
			if err == nil {
				made.Add(1)
				return
			}
			requireReason(t, err, apperror.TokenExists, `"ci"`)
		})
	}
	wg.Wait()
	require.EqualValues(t, 1, made.Load())
}

func TestInvalidRequestsAreRefused(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.create(t, "taken", operator("shop"), time.Time{})
	for name, test := range map[string]struct {
		request token.Request
		reason  string
		says    string
	}{
		"no name":  {token.Request{Roles: operator("shop")}, apperror.InvalidArgument, "name"},
		"odd name": {token.Request{Name: "a\nb", Roles: operator("shop")}, apperror.InvalidArgument, "name"},
		"no roles": {token.Request{Name: "a"}, apperror.InvalidArgument, "roles are missing"},
		"odd role": {token.Request{Name: "a", Roles: map[string]auth.Role{"shop": "root"}}, apperror.InvalidArgument,
			`"root" is not a role`},
		"no project": {token.Request{Name: "a", Roles: operator("nowhere")}, apperror.ProjectNotFound, "nowhere"},
		"past": {token.Request{Name: "a", Roles: operator("shop"), ExpiresAt: s.clock.now()}, apperror.InvalidArgument,
			"expireTime has passed"},
		"name taken":  {token.Request{Name: "taken", Roles: operator("shop")}, apperror.TokenExists, "taken"},
		"empty place": {token.Request{Name: "a", Roles: operator("")}, apperror.ProjectNotFound, ""},
	} {
		_, _, err := s.Create(s.admin, test.request)
		require.True(t, apperror.Is(err, test.reason), "%s: %v", name, err)
		require.ErrorContains(t, err, test.says, name)
	}
}

func TestBootstrapWorksOnce(t *testing.T) {
	t.Parallel()
	s := start(t)
	admin := map[string]auth.Role{auth.Everywhere: auth.Admin}
	s.create(t, "no-admin", operator("shop"), time.Time{})
	made, text, err := s.Bootstrap(t.Context(), token.Request{Name: "root", Roles: admin}, false)
	require.NoError(t, err)
	require.Equal(t, "local", made.Creator)
	actor, err := s.Authenticate(t.Context(), text, 0)
	require.NoError(t, err)
	require.True(t, actor.May(auth.Everywhere, auth.Admin))
	_, _, err = s.Bootstrap(t.Context(), token.Request{Name: "second", Roles: admin}, false)
	requireReason(t, err, apperror.TokenExists, `"root"`, made.ID, "--force")
	_, _, err = s.Bootstrap(t.Context(), token.Request{Name: "second", Roles: admin}, true)
	require.NoError(t, err)
	for _, name := range []string{"root", "second"} {
		list, err := s.List(s.admin, nil, 10)
		require.NoError(t, err)
		for _, found := range list {
			if found.Name == name {
				_, err := s.Revoke(s.admin, found.ID, "")
				require.NoError(t, err)
			}
		}
	}
	_, _, err = s.Bootstrap(t.Context(), token.Request{Name: "third", Roles: admin}, false)
	require.NoError(t, err, "revoked ones do not count")
}

// held is a store without tokens whose reads wait until they are released.
type held struct {
	token.Store

	release chan struct{}
	sizes   []int
}

func (h *held) GetTokens(_ context.Context, ids []string) (map[string]token.Stored, error) {
	h.sizes = append(h.sizes, len(ids))
	<-h.release
	return nil, nil
}

func TestUnknownTokensAreReadTogether(t *testing.T) {
	t.Parallel()
	elsewhere := start(t)
	const many = 300
	unknown := make([]string, many)
	for i := range unknown {
		_, unknown[i] = elsewhere.create(t, fmt.Sprint("t", i), operator("shop"), time.Time{})
	}
	synctest.Test(t, func(t *testing.T) {
		store := &held{release: make(chan struct{})}
		service := token.NewService(store, nil, token.Options{Now: time.Now, Log: slog.New(slog.DiscardHandler)})
		var callers sync.WaitGroup
		for _, text := range unknown {
			callers.Go(func() {
				_, err := service.Authenticate(t.Context(), text, 0)
				if !apperror.Is(err, apperror.Unidentified) {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		close(store.release)
		callers.Wait()
		require.Equal(t, many, store.sizes[0]+store.sizes[1])
		require.Len(t, store.sizes, 2, "those that arrive while the first ones are read")
	})
}
