package authn

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/jellydator/ttlcache/v3"

	"github.com/signalbox-dev/signalbox/dsl/httpmessage"
)

const (
	maxAnswer   = 256 << 10
	formType    = "application/x-www-form-urlencoded"
	jsonType    = "application/json"
	defaultPath = "/oauth2/token"
	// maxTokens bounds the cache of tokens.
	maxTokens = 1000
	// expiryMargin is the time before its expiry from which a token is no longer used.
	expiryMargin = 30 * time.Second
	// defaultLifetime is the lifetime of a token without a specified expiry.
	defaultLifetime = time.Minute
)

// Tokens requests tokens from authorities and caches them while they are valid. It is safe for concurrent use.
type Tokens struct {
	client *http.Client
	cached *ttlcache.Cache[[sha256.Size]byte, string]
}

// NewTokens returns an empty cache. client sends the requests to authorities.
func NewTokens(client *http.Client) *Tokens {
	type key = [sha256.Size]byte
	return &Tokens{client, ttlcache.New(ttlcache.WithCapacity[key, string](maxTokens),
		ttlcache.WithDisableTouchOnHit[key, string]())}
}

// cacheKey identifies a token by everything that determines its request.
func cacheKey(project, scheme string, properties []byte) [sha256.Size]byte {
	return sha256.Sum256(slices.Concat([]byte(project+"\x00"+scheme+"\x00"), properties))
}

// granted authenticates with a token of an authority.
type granted struct {
	tokens   *Tokens
	key      [sha256.Size]byte
	p        httpmessage.Credentials
	discover bool     // the authority publishes its endpoints
	asserted []string // the client's assertions in requests for tokens
	sent     []string // the tokens of the request
	fresh    bool     // the last of them was not cached before the request
}

func (g *granted) Credentials() []string {
	given := []string{g.p.Client.Secret, g.p.Password, g.p.RefreshToken, g.p.Subject.Token, g.p.Actor.Token}
	return slices.Concat(given, g.asserted, g.sent)
}

func (g *granted) Authorize(ctx context.Context, req *http.Request) error {
	header, err := g.header(ctx)
	if err == nil {
		req.Header.Set("Authorization", header)
	}
	return err
}

// header returns the Authorization header with a token that is cached or, if there is none, with a fresh one.
func (g *granted) header(ctx context.Context) (string, error) {
	cached := g.tokens.cached.Get(g.key)
	g.fresh = cached == nil
	if g.fresh {
		requested := time.Now()
		token, lifetime, err := g.requestToken(ctx)
		if err != nil {
			return "", err
		}
		cached = g.tokens.cached.Set(g.key, token, max(lifetime-time.Since(requested), 1))
	}
	g.sent = append(g.sent, cached.Value())
	return "Bearer " + cached.Value(), nil
}

// Answer replaces a cached token that was rejected: the authority may have revoked it.
func (g *granted) Answer(ctx context.Context, req *http.Request, res *http.Response) (string, bool, error) {
	if !rejected(req, res) {
		return "", false, nil
	}
	if cached := g.tokens.cached.Get(g.key); cached != nil && cached.Value() == g.sent[len(g.sent)-1] {
		g.tokens.cached.Delete(g.key)
	}
	if g.fresh {
		return "", false, nil
	}
	header, err := g.header(ctx)
	return header, err == nil, err
}

// requestToken requests a token from the authority, and returns the time for which it may be used.
func (g *granted) requestToken(ctx context.Context) (string, time.Duration, error) {
	endpoint, err := g.endpoint(ctx)
	if err != nil {
		return "", 0, err
	}
	req, err := g.request(ctx, endpoint)
	if err != nil {
		return "", 0, err
	}
	var answer struct {
		AccessToken string `json:"access_token"`
		ExpiresIn   int64  `json:"expires_in"`
	}
	if err := g.exchange(req, &answer); err != nil {
		return "", 0, err
	}
	if answer.AccessToken == "" {
		return "", 0, &RefusedError{
			fmt.Sprintf("the authority at %s returned no token: %v", withoutQuery(endpoint), errNoToken)}
	}
	if err := g.checkIssuer(answer.AccessToken); err != nil {
		return "", 0, err
	}
	lifetime := defaultLifetime
	if answer.ExpiresIn > 0 {
		lifetime = time.Duration(min(answer.ExpiresIn, int64((24*time.Hour).Seconds()))) * time.Second
		lifetime -= min(expiryMargin, lifetime/2)
	}
	return answer.AccessToken, lifetime, nil
}

// endpoint returns the URL of the token endpoint.
func (g *granted) endpoint(ctx context.Context) (string, error) {
	base := strings.TrimRight(g.p.Authority, "/")
	if !g.discover {
		path := g.p.Endpoints.Token
		if path == "" {
			path = defaultPath
		}
		return base + "/" + strings.TrimLeft(path, "/"), nil
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/.well-known/openid-configuration", http.NoBody)
	if err != nil {
		return "", fmt.Errorf("the authority %s is not a URL", withoutQuery(base))
	}
	var found discovery
	if err := g.exchange(req, &found); err != nil {
		return "", err
	}
	if what := found.refusal(base, g.p.Issuers); what != "" {
		return "", &RefusedError{fmt.Sprintf("the authority at %s %s", withoutQuery(base), what)}
	}
	return found.TokenEndpoint, nil
}

// discovery is the document that an OpenID Connect authority publishes.
type discovery struct {
	Issuer        string `json:"issuer"`
	TokenEndpoint string `json:"token_endpoint"`
}

// refusal returns why no credentials are sent to the token endpoint of a document that was fetched from an authority;
// "" if they are. An issuer is the authority itself (OpenID Connect Discovery 1.0, 4.3), or one that the policy names.
func (d discovery) refusal(authority string, issuers []string) string {
	if d.TokenEndpoint == "" {
		return "names no token_endpoint"
	}
	if d.Issuer != "" && strings.TrimRight(d.Issuer, "/") != authority && !slices.Contains(issuers, d.Issuer) {
		return fmt.Sprintf("names the issuer %q, which is neither its address nor named by the policy", d.Issuer)
	}
	if strings.HasPrefix(authority, "https:") {
		if u, err := url.Parse(d.TokenEndpoint); err != nil || u.Scheme != "https" {
			return "names a token_endpoint that is not an https address"
		}
	}
	return ""
}

// request builds the request for a token.
func (g *granted) request(ctx context.Context, endpoint string) (*http.Request, error) {
	form := url.Values{"grant_type": {g.p.Grant}}
	set := func(name, value string) {
		if value != "" {
			form.Set(name, value)
		}
	}
	set("scope", strings.Join(g.p.Scopes, " "))
	for _, audience := range g.p.Audiences {
		form.Add("audience", audience)
	}
	switch g.p.Grant {
	case "client_credentials":
	case "password":
		set("username", g.p.Username)
		set("password", g.p.Password)
	case "refresh_token":
		if g.p.RefreshToken == "" {
			return nil, fmt.Errorf("the grant refresh_token requires a secret with the member refresh_token")
		}
		set("refresh_token", g.p.RefreshToken)
	case "urn:ietf:params:oauth:grant-type:token-exchange":
		set("subject_token", g.p.Subject.Token)
		set("subject_token_type", g.p.Subject.Type)
		set("actor_token", g.p.Actor.Token)
		set("actor_token_type", g.p.Actor.Type)
	default:
		return nil, fmt.Errorf("the grant %q cannot be used by a workflow", g.p.Grant)
	}
	basic := false
	switch g.p.Client.Authentication {
	case "client_secret_basic":
		basic = true
	case "", "client_secret_post":
		set("client_id", g.p.Client.ID)
		set("client_secret", g.p.Client.Secret)
	case "none":
		set("client_id", g.p.Client.ID)
	case secretJWT, keyJWT:
		signed, err := assertion(g.p.Client, endpoint, time.Now())
		if err != nil {
			return nil, err
		}
		g.asserted = append(g.asserted, signed)
		set("client_id", g.p.Client.ID)
		set("client_assertion_type", assertionType)
		set("client_assertion", signed)
	default:
		return nil, fmt.Errorf("the client authentication %q is not supported", g.p.Client.Authentication)
	}
	contentType, body := formType, []byte(form.Encode())
	if g.p.Request.Encoding == jsonType {
		contentType, body = jsonType, asJSON(form)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("the token endpoint %s is not a URL", withoutQuery(endpoint))
	}
	req.Header.Set("Content-Type", contentType)
	if basic {
		req.SetBasicAuth(url.QueryEscape(g.p.Client.ID), url.QueryEscape(g.p.Client.Secret)) // RFC 6749, 2.3.1
	}
	return req, nil
}

// asJSON encodes a form as a JSON object. A repeated field becomes an array.
func asJSON(form url.Values) []byte {
	object := make(map[string]any, len(form))
	for name, values := range form {
		object[name] = values
		if len(values) == 1 {
			object[name] = values[0]
		}
	}
	body, err := json.Marshal(object)
	if err != nil {
		panic(fmt.Sprintf("encode a token request: %v", err)) // strings always have a JSON form
	}
	return body
}

// exchange sends a request to an authority and decodes the JSON object of its response.
func (g *granted) exchange(req *http.Request, into any) error {
	req.Header.Set("Accept", jsonType)
	res, err := g.tokens.client.Do(req)
	if err != nil {
		return fmt.Errorf("the authority at %s: %w", withoutQuery(req.URL.String()), err)
	}
	defer func() { _ = res.Body.Close() }() // the body has been read
	body, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("the authority at %s: %w", withoutQuery(req.URL.String()), err)
	}
	if res.StatusCode != http.StatusOK {
		var failure struct {
			Error string `json:"error"`
		}
		_ = json.Unmarshal(body, &failure) // a response without a JSON object has no error code
		what := fmt.Sprintf("the authority at %s answered %d", withoutQuery(req.URL.String()), res.StatusCode)
		if regexp.MustCompile(`^[a-z_]{1,60}$`).MatchString(failure.Error) {
			what += ": " + failure.Error
		}
		return &RefusedError{what}
	}
	if json.Unmarshal(body, into) != nil {
		return &RefusedError{fmt.Sprintf("the authority at %s did not answer with a JSON object",
			withoutQuery(req.URL.String()))}
	}
	return nil
}

// checkIssuer rejects a token of an issuer that the policy does not name, if the token names its issuer.
func (g *granted) checkIssuer(token string) error {
	parts := strings.Split(token, ".")
	if len(g.p.Issuers) == 0 || len(parts) != 3 {
		return nil
	}
	var claims struct {
		Issuer string `json:"iss"`
	}
	payload, _ := base64.RawURLEncoding.DecodeString(parts[1]) // an opaque token names no issuer
	_ = json.Unmarshal(payload, &claims)                       // as above
	if claims.Issuer == "" || slices.Contains(g.p.Issuers, claims.Issuer) {
		return nil
	}
	return &RefusedError{fmt.Sprintf("the token is from the issuer %q, which the policy does not name", claims.Issuer)}
}

// withoutQuery returns a URL without the parts that may be secret.
func withoutQuery(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return "an invalid URL"
	}
	return u.Scheme + "://" + u.Host + u.EscapedPath()
}
