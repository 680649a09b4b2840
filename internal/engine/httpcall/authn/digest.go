package authn

import (
	"context"
	"crypto/md5" //nolint:gosec // RFC 7616 requires it; SHA-256 is used if the server supports it
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// digest answers challenges according to RFC 7616, with the quality of protection auth.
type digest struct{ username, password string }

func (digest) Authorize(context.Context, *http.Request) error { return nil }

func (d digest) Credentials() []string { return []string{d.password} }

func (d digest) Answer(_ context.Context, req *http.Request, res *http.Response) (string, bool, error) {
	if !rejected(req, res) {
		return "", false, nil
	}
	best, strength := map[string]string(nil), 0
	for _, header := range res.Header.Values("WWW-Authenticate") {
		for _, challenge := range challenges(header) {
			if s := strengthOf(challenge); s > strength {
				best, strength = challenge, s
			}
		}
	}
	if best == nil {
		return "", false, nil
	}
	return d.header(best, res.Request.Method, res.Request.URL.RequestURI(), rand.Text()), true, nil
}

// rejected reports whether a response rejects the credentials of a request. That to a redirected one is the response of
// another origin, which must not get them.
func rejected(req *http.Request, res *http.Response) bool {
	return res.StatusCode == http.StatusUnauthorized && res.Request.URL.String() == req.URL.String()
}

// strengthOf orders the challenges that can be answered. 0: it cannot be answered.
func strengthOf(c map[string]string) int {
	qops := strings.FieldsFunc(c["qop"], func(r rune) bool { return r == ',' || r == ' ' })
	if c["nonce"] == "" || len(qops) > 0 && !slices.Contains(qops, "auth") {
		return 0
	}
	switch strings.ToUpper(c["algorithm"]) {
	case "SHA-256", "SHA-256-SESS":
		return 2
	case "", "MD5", "MD5-SESS":
		return 1
	}
	return 0
}

func (d digest) header(c map[string]string, method, uri, cnonce string) string {
	algorithm := strings.ToUpper(c["algorithm"])
	sum := func(text string) string {
		if strings.HasPrefix(algorithm, "SHA-256") {
			s := sha256.Sum256([]byte(text))
			return hex.EncodeToString(s[:])
		}
		s := md5.Sum([]byte(text)) //nolint:gosec // see above
		return hex.EncodeToString(s[:])
	}
	const count = "00000001"
	a1 := sum(d.username + ":" + c["realm"] + ":" + d.password)
	if strings.HasSuffix(algorithm, "-SESS") {
		a1 = sum(a1 + ":" + c["nonce"] + ":" + cnonce)
	}
	a2 := sum(method + ":" + uri)
	fields := []string{
		fmt.Sprintf(`username=%s`, quoted(d.username)), `realm=` + quoted(c["realm"]), `nonce=` + quoted(c["nonce"]), `uri=` +
			quoted(uri),
	}
	response := sum(a1 + ":" + c["nonce"] + ":" + a2)
	if c["qop"] != "" {
		response = sum(strings.Join([]string{a1, c["nonce"], count, cnonce, "auth", a2}, ":"))
		fields = append(fields, "qop=auth", "nc="+count, "cnonce="+quoted(cnonce))
	}
	fields = append(fields, "response="+quoted(response))
	if c["algorithm"] != "" {
		fields = append(fields, "algorithm="+c["algorithm"])
	}
	if opaque, ok := c["opaque"]; ok {
		fields = append(fields, "opaque="+quoted(opaque))
	}
	return "Digest " + strings.Join(fields, ", ")
}

func quoted(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

// challenges parses the digest challenges of a header, which may contain other schemes before and after them.
func challenges(header string) []map[string]string {
	var (
		out     []map[string]string
		current map[string]string
	)
	for _, part := range split(header) {
		name, value, isPair := strings.Cut(part, "=")
		if scheme, first, ok := strings.Cut(strings.TrimSpace(name), " "); ok || !isPair {
			current = nil
			if strings.EqualFold(scheme, "Digest") {
				current = map[string]string{}
				out = append(out, current)
			}
			name = first
		}
		if current != nil && isPair {
			current[strings.ToLower(strings.TrimSpace(name))] = unquoted(strings.TrimSpace(value))
		}
	}
	return out
}

// split splits at commas outside of quotes.
func split(header string) []string {
	var parts []string
	inside, escaped, start := false, false, 0
	for i, c := range []byte(header) {
		switch {
		case escaped:
			escaped = false
		case c == '\\' && inside:
			escaped = true
		case c == '"':
			inside = !inside
		case c == ',' && !inside:
			parts = append(parts, strings.TrimSpace(header[start:i]))
			start = i + 1
		}
	}
	return append(parts, strings.TrimSpace(header[start:]))
}

func unquoted(s string) string {
	if len(s) < 2 || s[0] != '"' || s[len(s)-1] != '"' {
		return s
	}
	return strings.NewReplacer(`\\`, `\`, `\"`, `"`).Replace(s[1 : len(s)-1])
}
