package storetest

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/token"
)

// testTokens follows tokens from their creation to their revocation.
func testTokens(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	kept := s.Tokens()
	made := func(id, name string, n int) token.Token {
		return token.Token{ID: id, Name: name, Roles: map[string]auth.Role{"shop": auth.Operator, "*": auth.Viewer},
			Creator: "ada", CreatedAt: at(n)}
	}
	hash := []byte("0123456789abcdef0123456789abcdef")
	first, second := made("a", "ci", 1), made("b", "other", 2)
	second.ExpiresAt = at(9)
	for _, one := range []token.Token{first, second} {
		require.NoError(t, kept.CreateToken(ctx, one, hash, entry(audit.TokenCreate, "", one.ID), nil))
		got, gotHash, err := kept.GetToken(ctx, one.ID)
		require.NoError(t, err)
		require.Equal(t, one, got)
		require.Equal(t, hash, gotHash)
	}
	requireError(t, kept.CreateToken(ctx, made("c", "ci", 3), hash, entry(audit.TokenCreate, "", "c"), nil),
		apperror.Exists, apperror.TokenExists, "ci")
	_, _, err := kept.GetToken(ctx, "c")
	requireError(t, err, apperror.NotFound, apperror.TokenNotFound, "c")

	stored, err := kept.GetTokens(ctx, []string{"a", "c", "b", "x", "y"})
	require.NoError(t, err)
	require.Equal(t, map[string]token.Stored{"a": {Token: first, Hash: hash}, "b": {Token: second, Hash: hash}}, stored)

	var there []string
	refusal := errors.New("there are others")
	err = kept.CreateToken(ctx, made("c", "third", 3), hash, entry(audit.TokenCreate, "", "c"), func(t token.Token) error {
		if there = append(there, t.ID); t.ID == "b" {
			return refusal
		}
		return nil
	})
	require.ErrorIs(t, err, refusal)
	require.Equal(t, []string{"a", "b"}, there)
	_, _, err = kept.GetToken(ctx, "c")
	requireError(t, err, apperror.NotFound, apperror.TokenNotFound, "c")

	for _, use := range []struct{ said, want time.Time }{{at(5), at(5)}, {at(4), at(5)}, {at(6), at(6)}} {
		require.NoError(t, kept.TouchToken(ctx, "a", use.said))
		got, _, err := kept.GetToken(ctx, "a")
		require.NoError(t, err)
		require.Equal(t, use.want, got.LastUsedAt)
	}

	revoked, err := kept.RevokeToken(ctx, "a", at(7), entry(audit.TokenRevoke, "", "a"))
	require.NoError(t, err)
	require.Equal(t, at(7), revoked.RevokedAt)
	revoked, err = kept.RevokeToken(ctx, "a", at(8), entry(audit.TokenRevoke, "", "a"))
	require.NoError(t, err)
	require.Equal(t, at(7), revoked.RevokedAt, "once is for good")
	_, err = kept.RevokeToken(ctx, "c", at(8), entry(audit.TokenRevoke, "", "c"))
	requireError(t, err, apperror.NotFound, apperror.TokenNotFound, "c")
	entries, err := s.ListAudit(ctx, audit.Filter{Action: audit.TokenRevoke, Limit: 10})
	require.NoError(t, err)
	require.Len(t, entries, 1)
	require.NoError(t, kept.CreateToken(ctx, made("c", "ci", 1), hash, entry(audit.TokenCreate, "", "c"), nil),
		"the name is free")

	var ids []string
	var after *token.Cursor
	for {
		page, err := kept.ListTokens(ctx, after, 1)
		require.NoError(t, err)
		if len(page) == 0 {
			break
		}
		ids, after = append(ids, page[0].ID), &token.Cursor{CreatedAt: page[0].CreatedAt, ID: page[0].ID}
	}
	require.Equal(t, []string{"b", "c", "a"}, ids, "newest first")
}
