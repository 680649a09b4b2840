package httpmessage

import (
	"encoding/json"
	"fmt"
)

// Credentials are the properties of an authentication, as named by the language. Each scheme uses its own.
type Credentials struct {
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
	Subject   Party    `json:"subject"`
	Actor     Party    `json:"actor"`
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

// Party is the token of a party in a token exchange.
type Party struct {
	Token string `json:"token"`
	Type  string `json:"type"`
}

// ParseCredentials returns the properties of a scheme, a JSON object that has what the scheme requires. Its errors quote
// no value.
func ParseCredentials(scheme string, properties []byte) (*Credentials, error) {
	var p Credentials
	if err := json.Unmarshal(properties, &p); err != nil {
		return nil, fmt.Errorf("invalid properties of the authentication %s", scheme)
	}
	missing := ""
	switch scheme {
	case "basic", "digest":
		if p.Username == "" {
			missing = "username"
		}
	case "bearer":
		if p.Token == "" {
			missing = "token"
		}
	case "oauth2", "oidc":
		switch {
		case p.Authority == "":
			missing = "authority"
		case p.Grant == "":
			missing = "grant"
		}
	default:
		return nil, fmt.Errorf("unknown authentication %q", scheme)
	}
	if missing != "" {
		return nil, fmt.Errorf("the authentication %s lacks a %s", scheme, missing)
	}
	return &p, nil
}
