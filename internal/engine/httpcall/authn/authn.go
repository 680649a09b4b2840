// Package authn proves to an origin who calls: basic, bearer and digest authentication, and tokens of an OAuth 2 or OpenID Connect
// authority.
//
//	method, err := tokens.Method(project, scheme, properties)
//	err = method.Authorize(ctx, req)             // sets the header, after asking for a token where it takes one
//	header, again := method.Answer(req, res)     // the answer to a challenge: send the request once more with it
//
// What it holds in memory are tokens, as long as they are valid. Its errors name authorities and error codes, never a credential.
package authn

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
)

// Properties are the properties of a policy, as the language names them; each scheme uses its own.
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
	// RefreshToken is for the grant of that name; only a secret can have it, the language has no place for it.
	RefreshToken string `json:"refresh_token"`
}

// Endpoints are paths below the authority.
type Endpoints struct {
	Token string `json:"token"`
}

// Client is the client of an authority that asks for tokens.
type Client struct {
	ID             string `json:"id"`
	Secret         string `json:"secret"`
	Authentication string `json:"authentication"`
}

// Token is the token of a party, for the exchange of tokens.
type Token struct {
	Token string `json:"token"`
	Type  string `json:"type"`
}

// Method authenticates one request.
type Method interface {
	// Authorize gives the request its credentials.
	Authorize(ctx context.Context, req *http.Request) error
	// Answer gives the header Authorization that the response asks for, if it is a challenge that can be answered.
	Answer(req *http.Request, res *http.Response) (string, bool)
	// Credentials are the texts that must not be shown: those of the policy, and what was made of them or fetched.
	Credentials() []string
}

// Method makes the method of a scheme from its properties, a JSON object.
func (t *Tokens) Method(project, scheme string, properties json.RawMessage) (Method, error) {
	var p Properties
	if err := json.Unmarshal(properties, &p); err != nil {
		// What the decoder says would quote a value.
		return nil, fmt.Errorf("the properties of the authentication %s are not what it takes", scheme)
	}
	switch scheme {
	case "basic":
		if p.Username == "" {
			return nil, lacking(scheme, "username")
		}
		pair := base64.StdEncoding.EncodeToString([]byte(p.Username + ":" + p.Password))
		return fixed{"Basic " + pair, []string{pair, p.Password}}, nil
	case "bearer":
		if p.Token == "" {
			return nil, lacking(scheme, "token")
		}
		return fixed{"Bearer " + p.Token, []string{p.Token}}, nil
	case "digest":
		if p.Username == "" {
			return nil, lacking(scheme, "username")
		}
		return digest{p.Username, p.Password}, nil
	case "oauth2", "oidc":
		switch {
		case p.Authority == "":
			return nil, lacking(scheme, "authority")
		case p.Grant == "":
			return nil, lacking(scheme, "grant")
		}
		return &granted{tokens: t, key: cacheKey(project, scheme, properties), p: p, discover: scheme == "oidc"}, nil
	}
	return nil, fmt.Errorf("there is no authentication %q", scheme)
}

func lacking(scheme, property string) error {
	return fmt.Errorf("the authentication %s lacks a %s", scheme, property)
}

// fixed is a header that is known beforehand.
type fixed struct {
	header      string
	credentials []string
}

func (f fixed) Authorize(_ context.Context, req *http.Request) error {
	req.Header.Set("Authorization", f.header)
	return nil
}

func (fixed) Answer(*http.Request, *http.Response) (string, bool) { return "", false }

func (f fixed) Credentials() []string { return f.credentials }

// RefusedError is an authority that gave no token: it answered, with an error.
type RefusedError struct {
	What string
}

func (e *RefusedError) Error() string { return e.What }

// errNoToken is an answer of an authority that holds no token.
var errNoToken = errors.New("its answer holds no access_token")
