// Package session manages sessions of browsers. A user signs in with an API token, and the browser stores the session's
// secret in a cookie, so that no script has a credential.
//
//	sessions := session.NewService(store, tokens, session.Options{Idle: 30 * time.Minute, Max: 12 * time.Hour, Now: time.Now, Log: log})
//	s, secret, err := sessions.Open(ctx, tokenID, "")
//	actor, err := sessions.Authenticate(ctx, secret)
//	err = sessions.Close(ctx)
//
// A session has no permissions of its own: each request has the roles that its token has at that moment, and a session
// ends when its token is revoked or expires, when it was not used for a while, and at a fixed time after the sign-in.
// The store holds the SHA-256 of the secret, which has 256 random bits (package token gives the reason why that
// suffices), and is read at each request: a session that any process ends is refused at once by all.
//
// The CSRF token of a session is derived from its secret. A page of another origin can make a browser send the cookie,
// but can read neither the cookie nor the response that contains the CSRF token.
package session

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/base64"
	"strings"
	"time"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/token"
)

// Session is a session without its secret.
type Session struct {
	ID string
	// Token is the token with which it was opened.
	Token     token.Token
	CreatedAt time.Time
	// LastUsedAt has the precision of a minute.
	LastUsedAt time.Time
	// Idle is how long after the last use the session ends.
	Idle time.Duration
	// ExpiresAt is when it ends in any case.
	ExpiresAt time.Time
	// EndedAt is when its user or an admin ended it; zero: not.
	EndedAt time.Time
}

// Stored is a session with the hash of its secret.
type Stored struct {
	Session Session
	Hash    []byte
}

// Counts are the numbers of sessions of one token.
type Counts struct {
	// Open is how many are open, LastMinute how many were opened within the last minute.
	Open, LastMinute int
}

const (
	// mostOpen and mostPerMinute bound the sessions of one token, and so the rows and audit entries that its owner can
	// cause.
	mostOpen      = 100
	mostPerMinute = 20
)

// check returns an error if no further session may be opened.
func (c Counts) check() error {
	switch {
	case c.Open >= mostOpen:
		return apperror.New(apperror.Exhausted, apperror.TooManySessions,
			"the token has %d open sessions, the maximum; sign out elsewhere, or let an admin end some: `signalbox token "+
				"sessions` lists them", mostOpen)
	case c.LastMinute >= mostPerMinute:
		return apperror.New(apperror.Exhausted, apperror.RateLimited,
			"the token opened %d sessions within a minute, the maximum; retry later", mostPerMinute).WithRetry(time.Minute)
	}
	return nil
}

// IdleExpiresAt returns when the session ends if it is not used again.
func (s Session) IdleExpiresAt() time.Time { return s.LastUsedAt.Add(s.Idle) }

// refusal returns the reason why the session has ended; nil for an open one. It does not check the token.
func (s Session) refusal(now time.Time) error {
	switch {
	case !s.EndedAt.IsZero():
		return ended("the session was ended at %s; sign in again", s.EndedAt.UTC().Format(time.RFC3339))
	case !now.Before(s.ExpiresAt):
		return ended("the session expired at %s; sign in again", s.ExpiresAt.UTC().Format(time.RFC3339))
	case !now.Before(s.IdleExpiresAt()):
		return ended("the session was not used for %s; sign in again", s.Idle)
	}
	return nil
}

func ended(format string, args ...any) error {
	return apperror.New(apperror.Unauthenticated, apperror.SessionEnded, format, args...)
}

// Cursor is a position in the list, newest first.
type Cursor struct {
	CreatedAt time.Time `json:"t"`
	ID        string    `json:"id"`
}

// Store stores sessions.
type Store interface {
	// CreateSession adds s with the hash of its secret. Before that, in the same transaction, it calls check with the
	// numbers of sessions of its token, while no other session of that token is added; an error of check is returned.
	CreateSession(ctx context.Context, s Session, hash []byte, e audit.Entry, check func(Counts) error) error
	// GetSession returns [apperror.SessionNotFound] for an unknown ID.
	GetSession(ctx context.Context, id string) (s Session, hash []byte, err error)
	// GetSessions returns those of the given sessions that exist, by ID.
	GetSessions(ctx context.Context, ids []string) (map[string]Stored, error)
	// ListSessions returns up to limit sessions that are open at the given time, as far as their token allows it, newest
	// first, from the first one after the cursor.
	ListSessions(ctx context.Context, at time.Time, after *Cursor, limit int) ([]Session, error)
	// TouchSession records a use, if the last recorded one is at least every ago.
	TouchSession(ctx context.Context, id string, at time.Time, every time.Duration) error
	// EndSession marks a session as ended, unless it is already, and returns it.
	EndSession(ctx context.Context, id string, at time.Time, e audit.Entry) (Session, error)
}

const (
	idBytes     = 10
	secretBytes = 32
	// separator is between the ID and the random part of a secret.
	separator = "."
)

// generate returns a new ID and the secret that contains it.
func generate() (id, secret string) {
	random := make([]byte, idBytes+secretBytes)
	_, _ = rand.Read(random) // it never fails: the program crashes where no randomness is available
	id = strings.ToLower(base32.StdEncoding.EncodeToString(random[:idBytes]))
	return id, id + separator + base64.RawURLEncoding.EncodeToString(random[idBytes:])
}

// idOf returns the ID in a secret, whether or not such a session exists; empty for text that is not a secret.
func idOf(secret string) string {
	id, random, _ := strings.Cut(secret, separator)
	rawID, err := base32.StdEncoding.DecodeString(strings.ToUpper(id))
	if err != nil || len(rawID) != idBytes || id != strings.ToLower(id) {
		return ""
	}
	if raw, err := base64.RawURLEncoding.DecodeString(random); err != nil || len(raw) != secretBytes {
		return ""
	}
	return id
}

func hashOf(secret string) []byte {
	sum := sha256.Sum256([]byte(secret))
	return sum[:]
}

// CSRFToken returns the CSRF token of the session with this secret.
func CSRFToken(secret string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte("signalbox csrf"))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}
