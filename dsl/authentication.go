package dsl

import (
	"slices"
	"strings"

	"github.com/signalbox-dev/signalbox/dsl/internal/tree"
)

// AuthScheme is a way to authenticate.
type AuthScheme string

// The schemes of authentication.
const (
	AuthBasic  AuthScheme = "basic"
	AuthBearer AuthScheme = "bearer"
	AuthDigest AuthScheme = "digest"
	AuthOAuth2 AuthScheme = "oauth2"
	AuthOIDC   AuthScheme = "oidc"
)

// HTTP returns the scheme name that the call's Authorization header uses.
func (s AuthScheme) HTTP() string {
	switch s {
	case AuthBasic:
		return "Basic"
	case AuthDigest:
		return "Digest"
	case AuthBearer, AuthOAuth2, AuthOIDC:
	}
	return "Bearer"
}

// Authentication is how a call authenticates: by Scheme, with the properties that the specification defines for it.
// They are given inline, as an object of expressions, or by a secret that is a JSON object of them.
type Authentication struct {
	Scheme     AuthScheme
	Secret     string    // the secret that holds the properties; empty: they are inline
	Properties *Template // username and password, token, …; nil with Secret
}

// authentication reads the authentication of an endpoint: a policy, or the name of one under use.
func (p *parser) authentication(v value, vars []string) *Authentication {
	if ref, ok := v.member("use"); ok && len(v.node.Members) == 1 {
		if !p.is(ref, tree.String, "the name of an authentication policy") {
			return nil
		}
		def, found := p.lookup(ref, "authentications", "authentication policy")
		if !found {
			return nil
		}
		v = def
	}
	return p.authenticationPolicy(v, vars)
}

// authenticationPolicy reads a policy: an object with its scheme as the only key.
func (p *parser) authenticationPolicy(v value, vars []string) *Authentication {
	var out []*Authentication
	scheme := func(s AuthScheme, required []string, optional ...string) field {
		return field{string(s), false, func(v value) {
			out = append(out, p.authenticationBy(v, s, vars, required, optional))
		}}
	}
	oauth := []string{
		"client", "request", "issuers", "scopes", "audiences", "username", "password", "subject", "actor",
	}
	p.allowSecrets(func() {
		if !p.object(v, "an authentication policy", fields{
			scheme(AuthBasic, []string{"username", "password"}),
			scheme(AuthBearer, []string{"token"}),
			scheme(AuthDigest, []string{"username", "password"}),
			scheme(AuthOAuth2, []string{"authority", "grant"}, append(oauth, "endpoints")...),
			scheme(AuthOIDC, []string{"authority", "grant"}, oauth...),
		}) {
			return
		}
		if len(out) != 1 {
			p.report(CodeValue, v, "keep one of basic, bearer, digest, oauth2, oidc",
				"an authentication policy must have exactly one scheme, got %d", len(out))
		}
	})
	if len(out) == 0 {
		return nil
	}
	return out[0]
}

func (p *parser) authenticationBy(v value, scheme AuthScheme, vars, required, optional []string) *Authentication {
	out := &Authentication{Scheme: scheme}
	what := "the authentication " + string(scheme)
	if use, ok := v.member("use"); ok {
		p.object(v, what, fields{{"use", true, func(v value) { out.Secret = p.text(v, "the name of a secret") }}})
		if use.node.Kind == tree.String {
			p.useSecret(use, "", out.Secret)
		}
		return out
	}
	var fs fields
	for _, key := range required {
		fs = append(fs, field{key, true, func(v value) { p.is(v, tree.String, what+": "+key) }})
	}
	for _, key := range optional {
		fs = append(fs, field{key, false, func(v value) { p.oauthProperty(v, key, what) }})
	}
	if !p.object(v, what, fs) {
		return out
	}
	if grant, ok := v.member("grant"); ok && slices.Contains(required, "grant") && !p.isExpression(grant, vars) {
		if p.oneOf(grant, "the grant", oauthGrants()...) == "authorization_code" {
			p.unsupported(grant, `the grant "authorization_code", which needs a person`)
		}
	}
	out.Properties = p.template(v, vars)
	return out
}

func oauthGrants() []string {
	return []string{
		"authorization_code", "client_credentials", "password", "refresh_token",
		"urn:ietf:params:oauth:grant-type:token-exchange",
	}
}

// oauthProperty checks the shape of one of the many properties of OAuth 2.
func (p *parser) oauthProperty(v value, key, what string) {
	object := func(keys ...string) {
		fs := make(fields, len(keys))
		for i, k := range keys {
			name, required := strings.CutSuffix(k, "!")
			fs[i] = field{name, required, func(v value) { p.is(v, tree.String, what+": "+key+"."+name) }}
		}
		p.object(v, what+": "+key, fs)
	}
	switch key {
	case "client":
		object("id", "secret", "assertion", "authentication")
		if m, ok := v.member("authentication"); ok && m.node.Kind == tree.String {
			p.oneOf(m, "the authentication of a client", "client_secret_basic", "client_secret_post", "client_secret_jwt",
				"private_key_jwt", "none")
		}
	case "request":
		object("encoding")
		if m, ok := v.member("encoding"); ok && m.node.Kind == tree.String {
			p.oneOf(m, "the encoding of a token request", "application/x-www-form-urlencoded", "application/json")
		}
	case "endpoints":
		object("token", "revocation", "introspection")
	case "subject", "actor":
		object("token!", "type!")
	case "issuers", "scopes", "audiences":
		if p.is(v, tree.Array, what+": "+key) {
			for i := range v.node.Items {
				p.is(v.item(i), tree.String, what+": an item of "+key)
			}
		}
	default:
		p.is(v, tree.String, what+": "+key)
	}
}
