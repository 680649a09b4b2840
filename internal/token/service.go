package token

import (
	"context"
	"crypto/subtle"
	"errors"
	"log/slog"
	"time"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/loop"
)

const (
	// usedEvery is the precision of the time of the last use.
	usedEvery = time.Minute
	// uses is how many recorded uses wait to be written; more are dropped, and the token's next use is written instead.
	uses = 256
)

// Options are the dependencies of the service.
type Options struct {
	Now func() time.Time
	Log *slog.Logger
}

// Service creates, checks and revokes tokens. Between Start and Stop it writes the times of their use.
type Service struct {
	store    Store
	projects Projects
	opts     Options
	known    *cache
	lookups  *Lookup[string, Stored]

	used    chan use
	writing loop.Runner
}

type use struct {
	id string
	at time.Time
}

// NewService returns a service over a store.
func NewService(store Store, projects Projects, opts Options) *Service {
	return &Service{store: store, projects: projects, opts: opts, known: newCache(), lookups: NewLookup(store.GetTokens),
		used: make(chan use, uses)}
}

// Start begins to write the times of use. It keeps the values of ctx, not its end; Stop ends it.
func (s *Service) Start(ctx context.Context) error {
	s.writing.Start(ctx, func(ctx, _ context.Context) {
		for {
			select {
			case <-ctx.Done():
				return
			case u := <-s.used:
				if err := s.store.TouchToken(ctx, u.id, u.at); err != nil && ctx.Err() == nil {
					s.opts.Log.WarnContext(ctx, "The last use of a token could not be written", "token", u.id, "error", err)
				}
			}
		}
	})
	return nil
}

// Stop ends the writing.
func (s *Service) Stop(ctx context.Context) error {
	s.writing.Stop(ctx)
	return nil
}

// Authenticate returns the actor of the token with this text, or an [apperror.Unauthenticated] with the reason. grace
// is the maximum age of the cached token when the store is unavailable: 0 for all calls that read or change data.
func (s *Service) Authenticate(ctx context.Context, text string, grace time.Duration) (auth.Actor, error) {
	id, err := idOf(text)
	if err != nil {
		return auth.Actor{}, err
	}
	k, err := s.find(ctx, id, grace)
	if err != nil {
		return auth.Actor{}, err
	}
	if subtle.ConstantTimeCompare(k.hash, hashOf(text)) != 1 {
		return auth.Actor{}, unknown()
	}
	if err := s.use(k); err != nil {
		return auth.Actor{}, err
	}
	return k.token.Actor(), nil
}

// Valid returns the token with this ID and records its use, or an [apperror.Unauthenticated] with the reason why it is
// not valid. It is for callers that were authenticated with the token before, such as sessions.
func (s *Service) Valid(ctx context.Context, id string) (Token, error) {
	k, err := s.find(ctx, id, 0)
	if err != nil {
		return Token{}, err
	}
	return k.token, s.use(k)
}

// use checks a token and records its use.
func (s *Service) use(k *known) error {
	now := s.opts.Now()
	if err := k.token.CheckValid(now); err != nil {
		return err
	}
	if k.isUsed(now) {
		select {
		case s.used <- use{k.token.ID, now}:
		default:
		}
	}
	return nil
}

// CheckValid returns an error when the token of this ID is no longer valid. It is for calls of long duration.
func (s *Service) CheckValid(ctx context.Context, id string) error {
	k, err := s.find(ctx, id, 0)
	if err != nil {
		return err
	}
	return k.token.CheckValid(s.opts.Now())
}

// ID returns the ID in the text of a token, whether or not such a token exists; empty for text that is not a token.
func (s *Service) ID(text string) string {
	id, err := idOf(text)
	if err != nil {
		return ""
	}
	return id
}

// find returns a token, from the store unless a fresh answer is cached.
func (s *Service) find(ctx context.Context, id string, grace time.Duration) (*known, error) {
	k, fresh := s.known.get(id, s.opts.Now())
	if fresh {
		return k, nil
	}
	epoch := s.known.now()
	stored, exists, err := s.lookups.Get(ctx, id)
	switch {
	case err == nil && !exists:
		return nil, unknown()
	case err == nil:
		return s.known.put(&known{token: stored.Token, hash: stored.Hash, at: s.opts.Now(), used: stored.Token.LastUsedAt},
			epoch), nil
	case k != nil && s.opts.Now().Sub(k.at) < grace:
		return k, nil
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	}
	if f, ok := apperror.From(err); ok && f.Class == apperror.Unavailable {
		return nil, err
	}
	return nil, errors.Join(errors.New("read a token"), err)
}

func unknown() error {
	return unidentified("unknown token; it may belong to another server: see `signalbox token list` there")
}

// CheckValid returns the reason why the token is not valid; nil for a valid one.
func (t Token) CheckValid(now time.Time) error {
	switch {
	case !t.RevokedAt.IsZero():
		return apperror.New(apperror.Unauthenticated, apperror.TokenRevoked,
			"token %q (%s) was revoked at %s; ask an admin for another one",
			t.Name, t.ID, t.RevokedAt.UTC().Format(time.RFC3339))
	case !t.ExpiresAt.IsZero() && !now.Before(t.ExpiresAt):
		return apperror.New(apperror.Unauthenticated, apperror.TokenExpired,
			"token %q (%s) expired at %s; ask an admin for another one",
			t.Name, t.ID, t.ExpiresAt.UTC().Format(time.RFC3339))
	}
	return nil
}
