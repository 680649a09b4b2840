package session

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/token"
)

// usedEvery is the precision of the time of the last use.
const usedEvery = time.Minute

// Tokens are the API's tokens.
type Tokens interface {
	// Valid returns the token with this ID and records its use, or an [apperror.Unauthenticated] with the reason why it is
	// not valid.
	Valid(ctx context.Context, id string) (token.Token, error)
}

// Options are the settings and the dependencies of the service.
type Options struct {
	// Idle is how long after its last use a session ends, Max how long after the sign-in.
	Idle, Max time.Duration
	Now       func() time.Time
	Log       *slog.Logger
}

// Service opens, checks and ends sessions.
type Service struct {
	store  Store
	tokens Tokens
	opts   Options
	// lookups reads sessions by the IDs in secrets.
	lookups *token.Lookup[string, Stored]
}

// NewService returns a service over a store.
func NewService(store Store, tokens Tokens, opts Options) *Service {
	return &Service{store: store, tokens: tokens, opts: opts, lookups: token.NewLookup(store.GetSessions)}
}

// Open opens a session for the token with this ID, which the caller has authenticated, and returns it with its secret,
// which is not stored. The session of the previous secret, if there is one, ends: the browser replaces its cookie.
func (s *Service) Open(ctx context.Context, tokenID, previous string) (Session, string, error) {
	t, err := s.tokens.Valid(ctx, tokenID)
	if err != nil {
		return Session{}, "", err
	}
	ctx = auth.WithActor(ctx, t.Actor())
	now := s.opts.Now()
	id, secret := generate()
	opened := Session{ID: id, Token: t, CreatedAt: now, LastUsedAt: now, Idle: s.opts.Idle, ExpiresAt: now.Add(s.opts.Max)}
	if !t.ExpiresAt.IsZero() && t.ExpiresAt.Before(opened.ExpiresAt) {
		opened.ExpiresAt = t.ExpiresAt
	}
	entry, err := s.entry(ctx, audit.SessionSignIn, opened, "")
	if err != nil {
		return Session{}, "", err
	}
	if err := s.store.CreateSession(ctx, opened, hashOf(secret), entry, Counts.check); err != nil {
		return Session{}, "", err
	}
	if old, err := s.find(ctx, previous); err == nil && old.EndedAt.IsZero() {
		if _, err := s.end(auth.WithActor(ctx, old.Token.Actor()), audit.SessionSignOut, old,
			"replaced by another sign-in"); err != nil {
			s.opts.Log.WarnContext(ctx, "The session that another sign-in replaced could not be ended", "session", old.ID,
				"error", err)
		}
	}
	return opened, secret, nil
}

// Authenticate returns the actor of the session with this secret, or an [apperror.Unauthenticated] with the reason.
func (s *Service) Authenticate(ctx context.Context, secret string) (auth.Actor, error) {
	found, err := s.find(ctx, secret)
	if err != nil {
		return auth.Actor{}, err
	}
	now := s.opts.Now()
	if err := found.refusal(now); err != nil {
		return auth.Actor{}, err
	}
	t, err := s.tokens.Valid(ctx, found.Token.ID)
	if err != nil {
		return auth.Actor{}, err
	}
	if now.Sub(found.LastUsedAt) >= usedEvery {
		if err := s.store.TouchSession(ctx, found.ID, now, usedEvery); err != nil && ctx.Err() == nil {
			s.opts.Log.WarnContext(ctx, "The last use of a session could not be written", "session", found.ID, "error", err)
		}
	}
	actor := t.Actor()
	actor.Session = found.ID
	return actor, nil
}

// CheckValid returns an error when the session of this ID has ended. It is for calls of long duration, and does not
// count as a use.
func (s *Service) CheckValid(ctx context.Context, id string) error {
	found, err := s.Get(ctx, id)
	if err != nil {
		return err
	}
	if err := found.refusal(s.opts.Now()); err != nil {
		return err
	}
	_, err = s.tokens.Valid(ctx, found.Token.ID)
	return err
}

// ID returns the ID in a secret, whether or not such a session exists; empty for text that is not a secret.
func (s *Service) ID(secret string) string { return idOf(secret) }

// CSRFToken returns the CSRF token of the session with this secret.
func (s *Service) CSRFToken(secret string) string { return CSRFToken(secret) }

// Get returns a session, or an [apperror.SessionEnded] if there is none.
func (s *Service) Get(ctx context.Context, id string) (Session, error) {
	found, _, err := s.store.GetSession(ctx, id)
	if apperror.Is(err, apperror.SessionNotFound) {
		return Session{}, ended("the session has ended; sign in again")
	}
	return found, err
}

// find returns the session with this secret.
func (s *Service) find(ctx context.Context, secret string) (Session, error) {
	unknown := apperror.New(apperror.Unauthenticated, apperror.Unidentified, "unknown session; sign in again")
	id := idOf(secret)
	if id == "" {
		return Session{}, unknown
	}
	stored, exists, err := s.lookups.Get(ctx, id)
	switch {
	case err != nil && ctx.Err() != nil:
		return Session{}, context.Cause(ctx)
	case err != nil:
		if f, ok := apperror.From(err); ok && f.Class == apperror.Unavailable {
			return Session{}, err
		}
		return Session{}, errors.Join(errors.New("read a session"), err)
	case !exists || subtle.ConstantTimeCompare(stored.Hash, hashOf(secret)) != 1:
		return Session{}, unknown
	}
	return stored.Session, nil
}

// Close ends the session of the actor of ctx.
func (s *Service) Close(ctx context.Context) error {
	actor, _ := auth.ActorFrom(ctx)
	if actor.Session == "" {
		return apperror.New(apperror.Refused, apperror.NoSession,
			"this request has no session to end; a token is made invalid with `signalbox token revoke`")
	}
	found, err := s.Get(ctx, actor.Session)
	if err != nil {
		return err
	}
	_, err = s.end(ctx, audit.SessionSignOut, found, "")
	return err
}

// List returns up to limit open sessions that the actor of ctx may see, newest first: those of tokens that it may
// revoke.
func (s *Service) List(ctx context.Context, after *Cursor, limit int) ([]Session, error) {
	const size = 200
	var found []Session
	now := s.opts.Now()
	for {
		page, err := s.store.ListSessions(ctx, now, after, size)
		if err != nil {
			return nil, err
		}
		for _, one := range page {
			if one.Token.CheckValid(now) == nil && one.Token.MayRevoke(ctx) {
				found = append(found, one)
			}
			if len(found) == limit {
				return found, nil
			}
			after = &Cursor{CreatedAt: one.CreatedAt, ID: one.ID}
		}
		if len(page) < size {
			return found, nil
		}
	}
}

// Revoke ends a session that the actor of ctx may see. Repeating it changes nothing.
func (s *Service) Revoke(ctx context.Context, id, reason string) (Session, error) {
	missing := apperror.New(apperror.NotFound, apperror.SessionNotFound,
		"session %q not found: `signalbox token sessions` shows the open sessions", id)
	found, _, err := s.store.GetSession(ctx, id)
	if apperror.Is(err, apperror.SessionNotFound) || err == nil && !found.Token.MayRevoke(ctx) {
		return Session{}, missing
	}
	if err != nil {
		return Session{}, err
	}
	return s.end(ctx, audit.SessionRevoke, found, reason)
}

func (s *Service) end(ctx context.Context, action string, which Session, reason string) (Session, error) {
	entry, err := s.entry(ctx, action, which, reason)
	if err != nil {
		return Session{}, err
	}
	return s.store.EndSession(ctx, which.ID, entry.Time, entry)
}

// entry returns the audit entry of an action on a session, in the project of its token.
func (s *Service) entry(ctx context.Context, action string, which Session, reason string) (audit.Entry, error) {
	e := audit.NewEntry(ctx, s.opts.Now(), action, which.Token.AuditProject(), which.ID, reason)
	var err error
	if e.Detail, err = json.Marshal(map[string]string{"token": which.Token.ID, "name": which.Token.Name}); err != nil {
		return audit.Entry{}, fmt.Errorf("describe session %q: %w", which.ID, err)
	}
	return e, nil
}
