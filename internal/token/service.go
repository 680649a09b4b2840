package token

import (
	"context"
	"crypto/subtle"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/fault"
)

const (
	// usedEvery is how exact the time of the last use is.
	usedEvery = time.Minute
	// uses is how many wait to be written; more are dropped, and written with the token's next use.
	uses = 256
)

// Options are the service's surroundings.
type Options struct {
	Now func() time.Time
	Log *slog.Logger
}

// Service makes, checks and revokes tokens. Between Start and Stop it writes when they were used.
type Service struct {
	store    Store
	projects Projects
	opts     Options
	known    *cache

	used    chan use
	stop    context.CancelFunc
	writing sync.WaitGroup
}

type use struct {
	id string
	at time.Time
}

// NewService returns a service over a store.
func NewService(store Store, projects Projects, opts Options) *Service {
	return &Service{store: store, projects: projects, opts: opts, known: newCache(), used: make(chan use, uses)}
}

// Start begins to write when tokens were used. ctx gives values alone; Stop ends it.
func (s *Service) Start(ctx context.Context) error {
	ctx, s.stop = context.WithCancel(context.WithoutCancel(ctx))
	s.writing.Go(func() {
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

// Stop ends what Start began.
func (s *Service) Stop(context.Context) error {
	if s.stop != nil {
		s.stop()
	}
	s.writing.Wait()
	return nil
}

// Authenticate returns who acts with the token of this text, or a [fault.Unauthenticated] that says what is wrong with it. grace is how
// old what is known of it may be where the store cannot be asked: 0 for all that reads or changes anything.
func (s *Service) Authenticate(ctx context.Context, text string, grace time.Duration) (auth.Actor, error) {
	id, err := idOf(text)
	if err != nil {
		return auth.Actor{}, err
	}
	k, err := s.lookUp(ctx, id, grace)
	if err != nil {
		return auth.Actor{}, err
	}
	if subtle.ConstantTimeCompare(k.hash, hashOf(text)) != 1 {
		return auth.Actor{}, unknown()
	}
	now := s.opts.Now()
	if err := k.token.refusal(now); err != nil {
		return auth.Actor{}, err
	}
	if k.isUsed(now) {
		select {
		case s.used <- use{id, now}:
		default:
		}
	}
	return k.token.Actor(), nil
}

// Standing returns an error when the token of this ID is valid no more: for calls that go on for long.
func (s *Service) Standing(ctx context.Context, id string) error {
	k, err := s.lookUp(ctx, id, 0)
	if err != nil {
		return err
	}
	return k.token.refusal(s.opts.Now())
}

// Recent tells whether the token of this text was valid a moment ago, without asking anybody.
func (s *Service) Recent(text string) bool {
	id, err := idOf(text)
	if err != nil {
		return false
	}
	k, _ := s.known.get(id, s.opts.Now())
	return k != nil && s.opts.Now().Sub(k.at) < recent && k.token.refusal(s.opts.Now()) == nil && subtle.ConstantTimeCompare(k.hash, hashOf(text)) == 1
}

// ID returns the ID in the text of a token, whether or not there is such a token; empty for a text that cannot be one.
func (s *Service) ID(text string) string {
	id, err := idOf(text)
	if err != nil {
		return ""
	}
	return id
}

// recent is what a moment ago is.
const recent = 10 * time.Minute

// lookUp returns what is known of a token, from the store unless it was asked a moment ago.
func (s *Service) lookUp(ctx context.Context, id string, grace time.Duration) (*known, error) {
	k, fresh := s.known.get(id, s.opts.Now())
	if fresh {
		return k, nil
	}
	epoch := s.known.now()
	t, hash, err := s.store.GetToken(ctx, id)
	switch {
	case err == nil:
		return s.known.put(&known{token: t, hash: hash, at: s.opts.Now(), used: t.LastUsedAt}, epoch), nil
	case fault.Is(err, fault.TokenNotFound):
		return nil, unknown()
	case k != nil && s.opts.Now().Sub(k.at) < grace:
		return k, nil
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	}
	if f, ok := fault.From(err); ok && f.Class == fault.Unavailable {
		return nil, err
	}
	return nil, errors.Join(errors.New("look a token up"), err)
}

func unknown() error {
	return unidentified("the token is not known here; it may be another server's: see `signalbox token list` there")
}

// refusal says why the token is not valid; nil where it is.
func (t Token) refusal(now time.Time) error {
	switch {
	case !t.RevokedAt.IsZero():
		return fault.New(fault.Unauthenticated, fault.TokenRevoked, "token %q (%s) was revoked at %s; ask an admin for another one",
			t.Name, t.ID, t.RevokedAt.UTC().Format(time.RFC3339))
	case !t.ExpiresAt.IsZero() && !now.Before(t.ExpiresAt):
		return fault.New(fault.Unauthenticated, fault.TokenExpired, "token %q (%s) expired at %s; ask an admin for another one",
			t.Name, t.ID, t.ExpiresAt.UTC().Format(time.RFC3339))
	}
	return nil
}
