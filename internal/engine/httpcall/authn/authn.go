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
	"fmt"
	"net/http"
)

// Properties are the properties of a policy, as named by the language. Each scheme uses its own.
type Properties struct {
	Username string `json:"username"`
	Password string `json:"password"`
	Token    string `json:"token"`

	Authority string    `json:"authority"`
	Grant     string    `json:"grant"`
	Endpoints Endpoints `json:"endpoints"`
	Client    Client    `json:"client"`
	Request   struct {
		Encoding string `json:"encoding"`
	} `json:"request"`
	Issuers   []string `json:"issuers"`
	Scopes    []string `json:"scopes"`
	Audiences []string `json:"audiences"`
	Subject   Token    `json:"subject"`
	Actor     Token    `json:"actor"`
	// RefreshToken is for the grant of that name. Only a secret can hold it: the language does not define it.
	RefreshToken string `json:"refresh_token"`
}

// Endpoints are paths relative to the authority.
type Endpoints struct {
	Token string `json:"token"`
}

// Client is the client of an authority that requests tokens.
type Client struct {
	ID             string `json:"id"`
	Secret         string `json:"secret"`
	Assertion      string `json:"assertion"`
	Authentication string `json:"authentication"`
}

// Token is the token of a party in a token exchange.
type Token struct {
	Token string `json:"token"`
	Type  string `json:"type"`
}

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
	var p Properties
	if err := json.Unmarshal(properties, &p); err != nil {
		// The decoder's error would quote a value.
		return nil, fmt.Errorf("invalid properties of the authentication %s", scheme)
	}
	switch scheme {
	case "basic":
		if p.Username == "" {
			return nil, missingProperty(scheme, "username")
		}
		pair := base64.StdEncoding.EncodeToString([]byte(p.Username + ":" + p.Password))
		return fixed{"Basic " + pair, []string{pair, p.Password}}, nil
	case "bearer":
		if p.Token == "" {
			return nil, missingProperty(scheme, "token")
		}
		return fixed{"Bearer " + p.Token, []string{p.Token}}, nil
	case "digest":
		if p.Username == "" {
			return nil, missingProperty(scheme, "username")
		}
		return digest{p.Username, p.Password}, nil
	case "oauth2", "oidc":
		switch {
		case p.Authority == "":
			return nil, missingProperty(scheme, "authority")
		case p.Grant == "":
			return nil, missingProperty(scheme, "grant")
		}
		return &granted{tokens: t, key: cacheKey(project, scheme, properties), p: p, discover: scheme == "oidc"}, nil
	}
	return nil, fmt.Errorf("unknown authentication %q", scheme)
}

func missingProperty(scheme, property string) error {
	return fmt.Errorf("the authentication %s lacks a %s", scheme, property)
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
