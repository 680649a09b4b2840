// Package authn authenticates requests to an origin: basic, bearer and digest authentication, and tokens of an OAuth 2
// or OpenID Connect authority.
//
//	tokens := authn.NewTokens(client)
//	method, err := tokens.Method(project, scheme, properties)
//	err = method.Authorize(ctx, req)             // sets the header, after a request for a token if necessary
//	header, again, err := method.Answer(ctx, req, res) // the answer to a challenge: send the request once more with it
//
// In memory it holds tokens only, while they are valid. Its errors name authorities and error codes, never a
// credential.
package authn

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/signalbox-dev/signalbox/dsl/httpmessage"
)

// Method authenticates one request.
type Method interface {
	// Authorize sets the credentials of the request.
	Authorize(ctx context.Context, req *http.Request) error
	// Answer returns the Authorization header for a response that is a challenge or that rejects a cached token, and
	// whether the request can be sent again with it. An error is that of the request for another token.
	Answer(ctx context.Context, req *http.Request, res *http.Response) (header string, again bool, err error)
	// Credentials returns the texts that must be redacted: those of the policy, and those derived from it or fetched.
	Credentials() []string
}

// Method returns the method of a scheme with its properties, a JSON object.
func (t *Tokens) Method(project, scheme string, properties json.RawMessage) (Method, error) {
	p, err := httpmessage.ParseCredentials(scheme, properties)
	if err != nil {
		return nil, err
	}
	switch scheme {
	case "basic":
		pair := base64.StdEncoding.EncodeToString([]byte(p.Username + ":" + p.Password))
		return fixed{"Basic " + pair, []string{pair, p.Password}}, nil
	case "bearer":
		return fixed{"Bearer " + p.Token, []string{p.Token}}, nil
	case "digest":
		return digest{p.Username, p.Password}, nil
	default:
		return &granted{tokens: t, key: cacheKey(project, scheme, properties), p: *p, discover: scheme == "oidc"}, nil
	}
}

// fixed is a header that does not depend on a request.
type fixed struct {
	header      string
	credentials []string
}

func (f fixed) Authorize(_ context.Context, req *http.Request) error {
	req.Header.Set("Authorization", f.header)
	return nil
}

func (fixed) Answer(context.Context, *http.Request, *http.Response) (string, bool, error) {
	return "", false, nil
}

func (f fixed) Credentials() []string { return f.credentials }

// RefusedError reports that an authority responded without a token.
type RefusedError struct {
	What string
}

func (e *RefusedError) Error() string { return e.What }

// errNoToken reports a response of an authority without a token.
var errNoToken = errors.New("its response holds no access_token")
