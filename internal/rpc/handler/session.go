package handler

import (
	"context"
	"net/http"

	"connectrpc.com/connect"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/rpc/message"
	"github.com/signalbox-dev/signalbox/internal/rpc/permission"
	"github.com/signalbox-dev/signalbox/internal/session"
)

// SessionService is the domain's service of sessions.
type SessionService interface {
	// Open returns the session and its secret, which is not stored. The session of the previous secret ends.
	Open(ctx context.Context, tokenID, previous string) (session.Session, string, error)
	Get(ctx context.Context, id string) (session.Session, error)
	CSRFToken(secret string) string
	// Close ends the session of the actor of ctx.
	Close(ctx context.Context) error
	// List returns the open sessions visible to the actor of ctx, newest first.
	List(ctx context.Context, after *session.Cursor, limit int) ([]session.Session, error)
	Revoke(ctx context.Context, id, reason string) (session.Session, error)
}

// Sessions implements signalbox.v1.SessionService.
type Sessions struct{ opts Options }

// SignIn opens a session and sets its cookie.
func (h *Sessions) SignIn(
	ctx context.Context, req *connect.Request[signalboxv1.SignInRequest],
) (*connect.Response[signalboxv1.SignInResponse], error) {
	actor, err := h.opts.Verify(ctx, req.Peer().Addr, req.Msg.GetToken())
	if err != nil {
		return nil, err
	}
	previous, err := permission.SessionSecret(req.Header(), h.opts.Encrypted)
	if err != nil {
		return nil, err
	}
	opened, secret, err := h.opts.Sessions.Open(ctx, actor.ID, previous)
	if err != nil {
		return nil, err
	}
	actor.Session = opened.ID
	res := connect.NewResponse(&signalboxv1.SignInResponse{Current: h.current(actor, opened, secret)})
	h.setCookie(res.Header(), secret)
	return res, nil
}

// GetSession returns how the request is authenticated.
func (h *Sessions) GetSession(
	ctx context.Context, req *connect.Request[signalboxv1.GetSessionRequest],
) (*connect.Response[signalboxv1.GetSessionResponse], error) {
	actor, _ := auth.ActorFrom(ctx)
	var found session.Session
	secret := ""
	if actor.Session != "" {
		var err error
		if found, err = h.opts.Sessions.Get(ctx, actor.Session); err != nil {
			return nil, err
		}
		if secret, err = permission.SessionSecret(req.Header(), h.opts.Encrypted); err != nil {
			return nil, err
		}
	}
	return connect.NewResponse(&signalboxv1.GetSessionResponse{Current: h.current(actor, found, secret)}), nil
}

// SignOut ends the session of the request and deletes its cookie.
func (h *Sessions) SignOut(
	ctx context.Context, _ *connect.Request[signalboxv1.SignOutRequest],
) (*connect.Response[signalboxv1.SignOutResponse], error) {
	if err := h.opts.Sessions.Close(ctx); err != nil {
		return nil, err
	}
	res := connect.NewResponse(&signalboxv1.SignOutResponse{})
	h.setCookie(res.Header(), "")
	return res, nil
}

// ListSessions lists open sessions, newest first.
func (h *Sessions) ListSessions(
	ctx context.Context, req *connect.Request[signalboxv1.ListSessionsRequest],
) (*connect.Response[signalboxv1.ListSessionsResponse], error) {
	list, next, err := listPage(req.Msg, pageDefault, pageMost,
		func(after *session.Cursor, limit int) ([]session.Session, error) {
			return h.opts.Sessions.List(ctx, after, limit)
		},
		func(s session.Session) session.Cursor { return session.Cursor{CreatedAt: s.CreatedAt, ID: s.ID} })
	res := &signalboxv1.ListSessionsResponse{NextPageToken: next}
	for _, s := range list {
		res.Sessions = append(res.Sessions, sessionMessage(s))
	}
	return message.Reply(res, err)
}

// RevokeSession ends a session.
func (h *Sessions) RevokeSession(
	ctx context.Context, req *connect.Request[signalboxv1.RevokeSessionRequest],
) (*connect.Response[signalboxv1.RevokeSessionResponse], error) {
	s, err := h.opts.Sessions.Revoke(ctx, req.Msg.GetId(), req.Msg.GetReason())
	return message.Reply(&signalboxv1.RevokeSessionResponse{Session: sessionMessage(s)}, err)
}

func (h *Sessions) setCookie(header http.Header, secret string) {
	header.Set("Set-Cookie", permission.SessionCookie(secret, h.opts.Encrypted).String())
}

func (h *Sessions) current(a auth.Actor, s session.Session, secret string) *signalboxv1.CurrentSession {
	current := &signalboxv1.CurrentSession{
		Authentication: "none", ActorKind: a.Kind, ActorName: a.Name, Roles: rolesMessage(a.Roles),
		ServerVersion: h.opts.System.Version,
	}
	switch {
	case a.Session != "":
		current.Authentication, current.Session, current.CsrfToken = "session", sessionMessage(s),
			h.opts.Sessions.CSRFToken(secret)
	case a.ID != "":
		current.Authentication = "token"
	}
	return current
}

func sessionMessage(s session.Session) *signalboxv1.Session {
	return &signalboxv1.Session{
		Id: s.ID, TokenId: s.Token.ID, TokenName: s.Token.Name, CreateTime: message.Timestamp(s.CreatedAt),
		LastUsedTime:   message.Timestamp(s.LastUsedAt),
		IdleExpireTime: message.Timestamp(s.IdleExpiresAt()), ExpireTime: message.Timestamp(s.ExpiresAt),
		EndTime: message.Timestamp(s.EndedAt),
	}
}
