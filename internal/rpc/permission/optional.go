package permission

import (
	"context"
	"net/http"
	"time"

	"github.com/signalbox-dev/signalbox/internal/auth"
)

// optionalTimeout bounds the lookup of a credential that a request does not need: the answer must not wait for a
// database that is down.
const optionalTimeout = time.Second

// May reports whether the caller of a request that needs no token has a role. A request without a valid credential has
// none; a wrong one counts against the limits of its address.
func (m *AuthMiddleware) May(r *http.Request, project string, role auth.Role) bool {
	actor, ok := auth.ActorFrom(r.Context())
	if !ok {
		credential := m.credentialOf(r)
		if credential.missing != nil {
			return false
		}
		ctx, cancel := context.WithTimeout(r.Context(), optionalTimeout)
		defer cancel()
		var err error
		if actor, err = m.admit(ctx, r.RemoteAddr, credential); err != nil {
			return false
		}
	}
	return auth.Require(auth.WithActor(r.Context(), actor), project, role) == nil
}
