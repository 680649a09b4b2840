// Package token manages API tokens: an admin creates them, they are shown once, and programs and people use them to
// call the API.
//
//	tokens := token.NewService(store, projects, token.Options{Now: time.Now, Log: log})
//	made, secret, err := tokens.Create(ctx, token.Request{Name: "ci", Roles: map[string]auth.Role{"shop": auth.Operator}})
//	actor, err := tokens.Authenticate(ctx, secret, 0)
//	_, err = tokens.Revoke(ctx, made.ID, "the laptop is lost")
//
// A token is "sbx_", its ID, "_", a secret of 256 random bits, and a checksum. With the checksum, secret scanners
// distinguish a token from similar text, and a mistyped token is refused without reading the store. The store holds the
// SHA-256 of the whole text. A slow hash would bring no protection: slow hashes make guessing expensive where the
// possible secrets are few, as with passwords. 256 random bits cannot be guessed at any speed of the hash, and a slow
// hash would delay each call of the API.
//
// Tokens are cached for a second, so a token that another process revokes is refused within two seconds; one that this
// process revokes, at once. When the store is unavailable, every call is refused, except calls with a grace period (see
// [Service.Authenticate]). The time of the last use is written in the background, at most once a minute.
package token

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"time"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/project"
)

// Token is a token without its secret.
type Token struct {
	ID   string
	Name string
	// Roles by project; [auth.Everywhere] means all projects.
	Roles   map[string]auth.Role
	Creator string
	// Zero times mean never.
	CreatedAt  time.Time
	ExpiresAt  time.Time
	LastUsedAt time.Time
	RevokedAt  time.Time
}

// Overlaps reports whether both tokens have a role in one project. Such tokens need different names, so that the audit
// log of that project distinguishes them; the names of other tokens are no business of its admins.
func (t Token) Overlaps(other Token) bool {
	if _, everywhere := t.Roles[auth.Everywhere]; everywhere {
		return true
	}
	for name := range other.Roles {
		if _, both := t.Roles[name]; both || name == auth.Everywhere {
			return true
		}
	}
	return false
}

// Stored is a token with the hash of its text.
type Stored struct {
	Token Token
	Hash  []byte
}

// Actor returns the actor of calls with the token.
func (t Token) Actor() auth.Actor {
	return auth.Actor{Kind: auth.KindToken, Name: t.Name, ID: t.ID, Roles: t.Roles}
}

// Cursor is a position in the list, newest first.
type Cursor struct {
	CreatedAt time.Time `json:"t"`
	ID        string    `json:"id"`
}

// Store stores tokens.
type Store interface {
	// CreateToken adds t with the hash of its text, or returns [apperror.TokenExists] when another token that is not
	// revoked has the name and overlaps with t. Before it adds t, in the same transaction, it calls beside, unless nil,
	// with each existing token; an error of beside is returned.
	CreateToken(ctx context.Context, t Token, hash []byte, e audit.Entry, beside func(there Token) error) error
	// GetToken returns [apperror.TokenNotFound] for an unknown ID.
	GetToken(ctx context.Context, id string) (t Token, hash []byte, err error)
	// GetTokens returns those of the given tokens that exist, by ID.
	GetTokens(ctx context.Context, ids []string) (map[string]Stored, error)
	// ListTokens returns up to limit tokens, newest first, from the first one after the cursor.
	ListTokens(ctx context.Context, after *Cursor, limit int) ([]Token, error)
	// RevokeToken marks a token as revoked, unless it is already, and returns it.
	RevokeToken(ctx context.Context, id string, at time.Time, e audit.Entry) (Token, error)
	// TouchToken records a use.
	TouchToken(ctx context.Context, id string, at time.Time) error
}

// Projects finds projects.
type Projects interface {
	GetProject(ctx context.Context, name string) (project.Project, error)
}

// Request describes a new token.
type Request struct {
	Name  string
	Roles map[string]auth.Role
	// ExpiresAt is zero for one that does not expire.
	ExpiresAt time.Time
}

// maxRoles bounds the projects that one token names.
const maxRoles = 100

var namePattern = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._@-]{0,61}[A-Za-z0-9])?$`)

// Create creates a token and returns it with its text, which is not stored. The actor of ctx must be an admin of all
// projects of the token: an actor can grant only roles that it has.
func (s *Service) Create(ctx context.Context, r Request) (Token, string, error) {
	for _, name := range slices.Sorted(maps.Keys(r.Roles)) {
		if err := auth.Require(ctx, name, auth.Admin); err != nil {
			return Token{}, "", err
		}
	}
	return s.create(ctx, r, nil, nil)
}

// Bootstrap creates the first token, for an operator with access to the store: "signalbox token create --bootstrap".
// When a valid token with the role admin in all projects exists, it is refused unless forced, which is for when that
// token is lost.
func (s *Service) Bootstrap(ctx context.Context, r Request, force bool) (Token, string, error) {
	beside := func(t Token) error {
		if !force && t.Actor().May(auth.Everywhere, auth.Admin) && t.CheckValid(s.opts.Now()) == nil {
			return apperror.New(apperror.Exists, apperror.TokenExists,
				"an admin token exists already: %q (%s); create others with it, or give --force if it is lost, and revoke it "+
					"then", t.Name, t.ID)
		}
		return nil
	}
	ctx = auth.WithActor(ctx, auth.Local())
	return s.create(ctx, r, map[string]any{"bootstrap": true, "force": force}, beside)
}

func (s *Service) create(ctx context.Context, r Request, detail map[string]any,
	beside func(Token) error) (Token, string, error) {
	now := s.opts.Now()
	if err := s.check(ctx, r, now); err != nil {
		return Token{}, "", err
	}
	id, text := generate()
	actor, _ := auth.ActorFrom(ctx)
	t := Token{ID: id, Name: r.Name, Roles: maps.Clone(r.Roles), Creator: actor.Name, CreatedAt: now,
		ExpiresAt: r.ExpiresAt}
	if detail == nil {
		detail = map[string]any{}
	}
	detail["name"], detail["roles"] = t.Name, t.Roles
	if !t.ExpiresAt.IsZero() {
		detail["expires"] = t.ExpiresAt.UTC().Format(time.RFC3339)
	}
	entry := audit.NewEntry(ctx, now, audit.TokenCreate, t.AuditProject(), id, "")
	var err error
	if entry.Detail, err = json.Marshal(detail); err != nil {
		return Token{}, "", fmt.Errorf("describe token %q: %w", id, err)
	}
	if err := s.store.CreateToken(ctx, t, hashOf(text), entry, beside); err != nil {
		return Token{}, "", err
	}
	return t, text, nil
}

// AuditProject returns the project whose audit log records the token: its only project, or else none.
func (t Token) AuditProject() string {
	for name := range t.Roles {
		if len(t.Roles) == 1 && name != auth.Everywhere {
			return name
		}
	}
	return ""
}

// check returns everything that is wrong with a request.
func (s *Service) check(ctx context.Context, r Request, now time.Time) error {
	var fields []apperror.Field
	add := func(path, format string, args ...any) {
		fields = append(fields, apperror.Field{Path: path, Message: fmt.Sprintf(format, args...)})
	}
	if !namePattern.MatchString(r.Name) {
		add("name", "%q: use 1 to 63 letters, digits, dots, hyphens, underscores and @, with a letter or digit at both ends",
			r.Name)
	}
	switch {
	case len(r.Roles) == 0:
		add("roles", "are missing: give at least one project and a role in it")
	case len(r.Roles) > maxRoles:
		add("roles", "name %d projects, and %d is the most; use %q for all", len(r.Roles), maxRoles, auth.Everywhere)
	}
	for _, name := range slices.Sorted(maps.Keys(r.Roles)) {
		if role := r.Roles[name]; !role.Known() {
			add("roles", "%q is not a role: use viewer, operator, publisher or admin", role)
		}
	}
	if !r.ExpiresAt.IsZero() && !r.ExpiresAt.After(now) {
		add("expireTime", "has passed")
	}
	if len(fields) > 0 {
		f := apperror.New(apperror.Invalid, apperror.InvalidArgument, "token: %s %s", fields[0].Path, fields[0].Message)
		f.Fields = fields
		return f
	}
	for _, name := range slices.Sorted(maps.Keys(r.Roles)) {
		if name == auth.Everywhere {
			continue
		}
		if _, err := s.projects.GetProject(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// List returns up to limit tokens that the actor of ctx may see, newest first: those whose projects all have the actor
// as an admin.
func (s *Service) List(ctx context.Context, after *Cursor, limit int) ([]Token, error) {
	actor, _ := auth.ActorFrom(ctx)
	var found []Token
	for list := s.pagesAfter(ctx, after); len(found) < limit; {
		t, more, err := list()
		if err != nil || !more {
			return found, err
		}
		if mayManage(actor, t) {
			found = append(found, t)
		}
	}
	return found, nil
}

// mayManage reports whether an actor may see and revoke a token.
func mayManage(a auth.Actor, t Token) bool {
	for name := range t.Roles {
		if !a.May(name, auth.Admin) {
			return false
		}
	}
	return true
}

// MayRevoke reports whether the actor of ctx may revoke the token, and see and end its sessions: an admin of all its
// projects, or the token itself.
func (t Token) MayRevoke(ctx context.Context) bool {
	actor, _ := auth.ActorFrom(ctx)
	return actor.Kind == auth.KindToken && actor.ID == t.ID || mayManage(actor, t)
}

// Revoke makes a token invalid permanently. Repeating it changes nothing. A token may revoke itself.
func (s *Service) Revoke(ctx context.Context, id, reason string) (Token, error) {
	missing := apperror.New(apperror.NotFound, apperror.TokenNotFound,
		"token %q not found: `signalbox token list` shows the existing tokens", id)
	t, _, err := s.store.GetToken(ctx, id)
	if apperror.Is(err, apperror.TokenNotFound) {
		return Token{}, missing
	}
	if err != nil {
		return Token{}, err
	}
	if !t.MayRevoke(ctx) {
		return Token{}, missing
	}
	now := s.opts.Now()
	entry := audit.NewEntry(ctx, now, audit.TokenRevoke, t.AuditProject(), id, reason)
	if entry.Detail, err = json.Marshal(map[string]string{"name": t.Name}); err != nil {
		return Token{}, fmt.Errorf("describe token %q: %w", id, err)
	}
	t, err = s.store.RevokeToken(ctx, id, now, entry)
	s.known.forget(id)
	return t, err
}

func (s *Service) pagesAfter(ctx context.Context, after *Cursor) func() (Token, bool, error) {
	const size = 200
	var page []Token
	done := false
	return func() (Token, bool, error) {
		if len(page) == 0 && !done {
			var err error
			if page, err = s.store.ListTokens(ctx, after, size); err != nil {
				return Token{}, false, err
			}
			done = len(page) < size
		}
		if len(page) == 0 {
			return Token{}, false, nil
		}
		t := page[0]
		page, after = page[1:], &Cursor{CreatedAt: t.CreatedAt, ID: t.ID}
		return t, true, nil
	}
}
