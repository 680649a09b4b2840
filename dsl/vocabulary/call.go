package vocabulary

func callTypes() []Type {
	types := []Type{
		{Name: "call kind", Form: Text, Words: []string{"http"}, Target: TargetFunctions},
		{Name: "function name", Form: Text, Target: TargetFunctions},
		{Name: "http arguments", Form: Structure, Keys: []Key{
			{"method", typeText, true, "Method, such as `get` or `post`."},
			{"endpoint", typeEndpoint, true, "URI, URI template over the input, or expression; or `{uri, authentication}`."},
			{"headers", typeTextOrMap, false, "Headers: an object of texts, or an expression."},
			{"query", typeTextOrMap, false, "Query parameters: an object of texts, or an expression."},
			{"body", typeAny, false, "Body: a value with expressions in it, sent as JSON by default."},
			{"output", "call output", false, "`content` (default): the body. `raw`: the body in base64. `response`: with status and headers."},
			{"redirect", typeBoolean, false, "Whether a status of 300 to 399 is a response and no error. Default: `false`."},
		}},
		{Name: "call output", Form: Text, Words: []string{"content", "raw", "response"}},
		{Name: typeEndpoint, Form: Choice, Options: []string{typeURI, "endpoint object"}},
		{Name: "endpoint object", Form: Structure, Keys: []Key{
			{"uri", typeURI, true, "URI, URI template, or expression."},
			{"authentication", typeAuth, false, "How requests are authenticated: a policy, or `{use: NAME}`."},
		}},
		{Name: typeAuth, Form: Variant, Options: []string{"authentication policy", "authentication reference"}},
		{Name: "authentication reference", Form: Structure, Keys: []Key{
			{"use", "authentication name", true, "Name of a policy under `use.authentications`."},
		}},
		{Name: "authentication name", Form: Text, Target: TargetAuthentications},
		{Name: "authentication policy", Form: Structure,
			OneOf: []string{"basic", "bearer", "digest", "oauth2", "oidc"}, Keys: []Key{
				{"basic", "basic", false, "User name and password, with each request."},
				{"bearer", "bearer", false, "A token."},
				{"digest", "digest", false, "User name and password, which are not sent."},
				{"oauth2", "oauth2", false, "A token of an OAuth2 authority."},
				{"oidc", "oidc", false, "A token of an OpenID Connect authority."},
			}},
		{Name: "secret reference", Form: Structure, Keys: []Key{
			{"use", "secret name", true, "Name of the secret that holds the properties."},
		}},
		{Name: "secret name", Form: Text, Target: TargetSecrets},
		{Name: "grant", Form: Choice, Options: []string{"grant word", typeWrapped}},
		{Name: "grant word", Form: Text, Words: []string{"client_credentials", "password", "refresh_token",
			"urn:ietf:params:oauth:grant-type:token-exchange"}},
		{Name: "oauth client", Form: Structure, Keys: []Key{
			{"id", typeText, false, "ID of the client."},
			{"secret", typeText, false, "Secret of the client."},
			{"assertion", typeText, false, "Signed assertion of the client."},
			{"authentication", "client authentication", false, "How the client authenticates. Default: `client_secret_post`."},
		}},
		{Name: "client authentication", Form: Text, Words: []string{"client_secret_basic", "client_secret_post",
			"client_secret_jwt", "private_key_jwt", "none"}},
		{Name: "token request", Form: Structure, Keys: []Key{
			{"encoding", "token encoding", false, "Encoding of the request for a token."},
		}},
		{Name: "token encoding", Form: Text, Words: []string{"application/x-www-form-urlencoded", "application/json"}},
		{Name: "oauth endpoints", Form: Structure, Keys: []Key{
			{"token", typeText, false, "Path of tokens. Default: `/oauth2/token`."},
			{"revocation", typeText, false, "Path of revocations."},
			{"introspection", typeText, false, "Path of introspections."},
		}},
		{Name: "oauth token", Form: Structure, Keys: []Key{
			{"token", typeText, true, "The token."},
			{"type", typeText, true, "Type of the token."},
		}},
	}
	password := []Key{
		{"username", typeText, true, "User name."},
		{"password", typeText, true, "Password."},
	}
	oauth := []Key{
		{"authority", typeText, true, "URI of the authority."},
		{"grant", "grant", true, "Kind of the grant, such as `client_credentials`."},
		{"client", "oauth client", false, "The client."},
		{"request", "token request", false, "The request for a token."},
		{"issuers", typeTexts, false, "Issuers whose tokens are accepted."},
		{"scopes", typeTexts, false, "Scopes of the token."},
		{"audiences", typeTexts, false, "Audiences of the token."},
		{"username", typeText, false, "User name, for the grant `password`."},
		{"password", typeText, false, "Password, for the grant `password`."},
		{"subject", "oauth token", false, "Token of the party on whose behalf it is."},
		{"actor", "oauth token", false, "Token of the acting party."},
	}
	endpoints := Key{"endpoints", "oauth endpoints", false, "Paths below the authority."}
	for _, scheme := range []struct {
		name string
		keys []Key
	}{
		{"basic", password}, {"digest", password},
		{"bearer", []Key{{"token", typeText, true, "The token."}}},
		{"oidc", oauth}, {"oauth2", append([]Key{endpoints}, oauth...)},
	} {
		types = append(types,
			Type{Name: scheme.name, Form: Variant, Options: []string{scheme.name + " properties", "secret reference"}},
			Type{Name: scheme.name + " properties", Form: Structure, Keys: scheme.keys})
	}
	return types
}
