package store

import (
	"context"
	"slices"
	"time"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/store/ledger"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
	"github.com/signalbox-dev/signalbox/internal/token"
)

// Tokens stores the tokens of the API. It stores only hashes: the text of a token is known to its owner alone. It is
// safe for concurrent use.
type Tokens struct{ db *sqldb.DB }

var _ token.Store = (*Tokens)(nil)

// storedToken is one row.
type storedToken struct {
	token token.Token
	hash  []byte
}

func tokenFields(k *storedToken) sqlrow.Fields {
	t := &k.token
	return sqlrow.Row(
		"id", &t.ID, "name", &t.Name, "hash", sqlrow.HexInto(&k.hash), "roles", sqlrow.JSONInto(&t.Roles),
		"creator", &t.Creator, "created_at", sqlrow.TimeInto(&t.CreatedAt), "expires_at", sqlrow.TimeInto(&t.ExpiresAt),
		"last_used_at", sqlrow.TimeInto(&t.LastUsedAt), "revoked_at", sqlrow.TimeInto(&t.RevokedAt),
	)
}

func selectTokens() string { return `SELECT ` + sqlrow.Columns(tokenFields) + ` FROM tokens` }

// CreateToken implements [token.Store].
func (s *Tokens) CreateToken(ctx context.Context, t token.Token, hash []byte, e audit.Entry,
	check func(token.Token) error) error {
	return s.db.Write(ctx, "create token", func(ctx context.Context, c sqldb.Conn) error {
		if err := s.db.Serialize(ctx, c, "create token "+t.Name); err != nil {
			return err
		}
		if err := checkTokenName(ctx, c, t); err != nil {
			return err
		}
		if err := checkTokens(ctx, c, check); err != nil {
			return err
		}
		t.LastUsedAt, t.RevokedAt = time.Time{}, time.Time{}
		_, err := sqlrow.Insert(ctx, c, "tokens", tokenFields(&storedToken{t, hash}), "")
		if err != nil {
			return err
		}
		return ledger.Add(ctx, c, e)
	})
}

// checkTokenName refuses the name of a token that is not revoked and has a project in common with t.
func checkTokenName(ctx context.Context, c sqldb.Conn, t token.Token) error {
	named, err := sqlrow.Collect(ctx, c, selectTokens()+` WHERE name = $1 AND revoked_at IS NULL`, []any{t.Name},
		sqlrow.Scan(tokenFields))
	if err != nil {
		return err
	}
	for _, k := range named {
		if k.token.Overlaps(t) {
			return apperror.New(apperror.Exists, apperror.TokenExists,
				"a token with the name %q has a role in the same projects; choose another one, so that they differ in the audit "+
					"log, or revoke that one first", t.Name)
		}
	}
	return nil
}

// checkTokens calls check for each existing token. In SQLite no other process adds one meanwhile; in Postgres, calls
// are serialised.
func checkTokens(ctx context.Context, c sqldb.Conn, check func(token.Token) error) error {
	if check == nil {
		return nil
	}
	there, err := sqlrow.Collect(ctx, c, selectTokens()+` ORDER BY created_at`, nil, sqlrow.Scan(tokenFields))
	for _, k := range there {
		if err == nil {
			err = check(k.token)
		}
	}
	return err
}

// GetToken implements [token.Store].
func (s *Tokens) GetToken(ctx context.Context, id string) (token.Token, []byte, error) {
	var k storedToken
	err := s.db.Read(ctx, "get token", func(ctx context.Context, c sqldb.Conn) (err error) {
		k, err = getToken(ctx, c, id, "")
		return err
	})
	return k.token, k.hash, err
}

// GetTokens implements [token.Store].
func (s *Tokens) GetTokens(ctx context.Context, ids []string) (map[string]token.Stored, error) {
	found := map[string]token.Stored{}
	var w sqlrow.Where
	sqlrow.OneOf(&w, "id", paddedIDs(ids))
	err := s.db.Read(ctx, "get tokens", func(ctx context.Context, c sqldb.Conn) error {
		list, err := sqlrow.Collect(ctx, c, selectTokens()+w.String(), w.Args, sqlrow.Scan(tokenFields))
		for _, k := range list {
			found[k.token.ID] = token.Stored{Token: k.token, Hash: k.hash}
		}
		return err
	})
	return found, err
}

// paddedIDs repeats the last ID up to the next power of two: each number of arguments is a statement of its own, which is
// prepared and kept.
func paddedIDs(ids []string) []string {
	all := slices.Clone(ids)
	for len(all)&(len(all)-1) != 0 {
		all = append(all, all[len(all)-1])
	}
	return all
}

func getToken(ctx context.Context, c sqldb.Conn, id, lock string) (storedToken, error) {
	return sqlrow.One(ctx, c, selectTokens()+` WHERE id = $1`+lock, []any{id}, sqlrow.Scan(tokenFields), func() error {
		return apperror.New(apperror.NotFound, apperror.TokenNotFound, "there is no token %q", id)
	})
}

// ListTokens implements [token.Store].
func (s *Tokens) ListTokens(ctx context.Context, after *token.Cursor, limit int) (list []token.Token, err error) {
	var w sqlrow.Where
	if after != nil {
		at, id := w.Arg(after.CreatedAt.UnixMicro()), w.Arg(after.ID)
		w.Conditions = append(w.Conditions, "(created_at, id) < ("+at+", "+id+")")
	}
	query := selectTokens() + w.String() + ` ORDER BY created_at DESC, id DESC` + sqlrow.Limit(limit)
	err = s.db.Read(ctx, "list tokens", func(ctx context.Context, c sqldb.Conn) (err error) {
		found, err := sqlrow.Collect(ctx, c, query, w.Args, sqlrow.Scan(tokenFields))
		list = nil
		for _, k := range found {
			list = append(list, k.token)
		}
		return err
	})
	return list, err
}

// RevokeToken implements [token.Store].
func (s *Tokens) RevokeToken(ctx context.Context, id string, at time.Time, e audit.Entry) (t token.Token, err error) {
	err = s.db.Write(ctx, "revoke token", func(ctx context.Context, c sqldb.Conn) error {
		k, err := getToken(ctx, c, id, s.db.Dialect().LockRows)
		if t = k.token; err != nil || !t.RevokedAt.IsZero() {
			return err
		}
		if _, err := c.ExecContext(ctx, `UPDATE tokens SET revoked_at = $1 WHERE id = $2`, at.UnixMicro(), id); err != nil {
			return err
		}
		t.RevokedAt = sqlrow.Kept(at)
		return ledger.Add(ctx, c, e)
	})
	return t, err
}

// TouchToken implements [token.Store]. A time before the stored one, of a process with a slow clock, changes
// nothing.
func (s *Tokens) TouchToken(ctx context.Context, id string, at time.Time) error {
	return s.db.Exec(ctx, "note the use of a token", func(ctx context.Context, c sqldb.Conn) error {
		_, err := c.ExecContext(ctx,
			`UPDATE tokens SET last_used_at = $1 WHERE id = $2 AND (last_used_at IS NULL OR last_used_at < $1)`, at.UnixMicro(),
			id)
		return err
	})
}
