package httpcall_test

import (
	"crypto/md5"
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"
)

// validDigest checks the response to a challenge as a server does.
func validDigest(header, method, username, password string) bool {
	field := map[string]string{}
	for _, m := range regexp.MustCompile(`(\w+)=(?:"((?:[^"\\]|\\.)*)"|([^",\s]+))`).FindAllStringSubmatch(header, -1) {
		field[m[1]] = strings.ReplaceAll(m[2]+m[3], `\"`, `"`)
	}
	sum := func(parts ...string) string {
		text := []byte(strings.Join(parts, ":"))
		if strings.HasPrefix(field["algorithm"], "SHA-256") {
			s := sha256.Sum256(text)
			return hex.EncodeToString(s[:])
		}
		s := md5.Sum(text)
		return hex.EncodeToString(s[:])
	}
	a1 := sum(username, field["realm"], password)
	if strings.HasSuffix(field["algorithm"], "-SESS") || strings.HasSuffix(field["algorithm"], "-sess") {
		a1 = sum(a1, field["nonce"], field["cnonce"])
	}
	a2 := sum(method, field["uri"])
	want := sum(a1, field["nonce"], a2)
	if field["qop"] != "" {
		want = sum(a1, field["nonce"], field["nc"], field["cnonce"], field["qop"], a2)
	}
	return field["username"] == username && field["response"] == want
}
