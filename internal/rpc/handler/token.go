package handler

import (
	"context"

	"connectrpc.com/connect"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/rpc/message"
	"github.com/signalbox-dev/signalbox/internal/token"
)

// TokenService is the domain's service of tokens.
type TokenService interface {
	// Create returns the token and its text, which is not stored.
	Create(ctx context.Context, r token.Request) (token.Token, string, error)
	// List returns the tokens visible to the actor of ctx, newest first.
	List(ctx context.Context, after *token.Cursor, limit int) ([]token.Token, error)
	Revoke(ctx context.Context, id, reason string) (token.Token, error)
}

// Tokens implements signalbox.v1.TokenService.
type Tokens struct{ service TokenService }

// CreateToken creates a token.
func (h *Tokens) CreateToken(
	ctx context.Context, req *connect.Request[signalboxv1.CreateTokenRequest],
) (*connect.Response[signalboxv1.CreateTokenResponse], error) {
	expires, err := message.Time("expireTime", req.Msg.GetExpireTime())
	if err != nil {
		return nil, err
	}
	roles := map[string]auth.Role{}
	for project, role := range req.Msg.GetRoles() {
		roles[project] = auth.Role(role)
	}
	t, secret, err := h.service.Create(ctx, token.Request{Name: req.Msg.GetName(), Roles: roles, ExpiresAt: expires})
	return message.Reply(&signalboxv1.CreateTokenResponse{Token: tokenMessage(t), Secret: secret}, err)
}

// ListTokens lists tokens, newest first.
func (h *Tokens) ListTokens(
	ctx context.Context, req *connect.Request[signalboxv1.ListTokensRequest],
) (*connect.Response[signalboxv1.ListTokensResponse], error) {
	tokens, next, err := listPage(req.Msg, pageDefault, pageMost,
		func(after *token.Cursor, limit int) ([]token.Token, error) { return h.service.List(ctx, after, limit) },
		func(t token.Token) token.Cursor { return token.Cursor{CreatedAt: t.CreatedAt, ID: t.ID} })
	res := &signalboxv1.ListTokensResponse{NextPageToken: next}
	for _, t := range tokens {
		res.Tokens = append(res.Tokens, tokenMessage(t))
	}
	return message.Reply(res, err)
}

// RevokeToken invalidates a token permanently.
func (h *Tokens) RevokeToken(
	ctx context.Context, req *connect.Request[signalboxv1.RevokeTokenRequest],
) (*connect.Response[signalboxv1.RevokeTokenResponse], error) {
	t, err := h.service.Revoke(ctx, req.Msg.GetId(), req.Msg.GetReason())
	return message.Reply(&signalboxv1.RevokeTokenResponse{Token: tokenMessage(t)}, err)
}

// WhoAmI returns the caller's identity.
func (h *Tokens) WhoAmI(
	ctx context.Context, _ *connect.Request[signalboxv1.WhoAmIRequest],
) (*connect.Response[signalboxv1.WhoAmIResponse], error) {
	a, _ := auth.ActorFrom(ctx)
	return connect.NewResponse(&signalboxv1.WhoAmIResponse{Kind: a.Kind, Name: a.Name, Roles: rolesMessage(a.Roles)}), nil
}

func tokenMessage(t token.Token) *signalboxv1.Token {
	return &signalboxv1.Token{
		Id: t.ID, Name: t.Name, Roles: rolesMessage(t.Roles), Creator: t.Creator, CreateTime: message.Timestamp(t.CreatedAt),
		ExpireTime: message.Timestamp(t.ExpiresAt), LastUsedTime: message.Timestamp(t.LastUsedAt),
		RevokeTime: message.Timestamp(t.RevokedAt),
	}
}

func rolesMessage(roles map[string]auth.Role) map[string]string {
	out := make(map[string]string, len(roles))
	for project, role := range roles {
		out[project] = string(role)
	}
	return out
}
