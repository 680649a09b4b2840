package redact

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strings"
)

const (
	// shortest is the shortest text that is looked for elsewhere: shorter ones would be found where they mean nothing.
	shortest = 8
	// mostTaint bounds what is looked for, in bytes, over all texts of a run.
	mostTaint = 256 << 10
)

// Taint is what has stood at sensitive places of a run, and is to be found nowhere else in it. The zero value is ready to use.
type Taint struct {
	values   map[string]bool
	size     int
	replacer *strings.Replacer
}

// Any tells whether there is anything.
func (t *Taint) Any() bool { return t != nil && t.replacer != nil }

// Add adds texts, and returns those that are new and long enough. Of an authorization ("Bearer …"), what follows the scheme counts too.
func (t *Taint) Add(texts ...string) (added []string) {
	for _, text := range texts {
		_, credentials, _ := strings.Cut(text, " ")
		for _, value := range []string{text, credentials} {
			if len(value) < shortest || t.values[value] || t.size+len(value) > mostTaint || value == Mark {
				continue
			}
			if t.values == nil {
				t.values = map[string]bool{}
			}
			t.values[value] = true
			t.size += len(value)
			added = append(added, value)
		}
	}
	if len(added) > 0 {
		t.build()
	}
	return added
}

// Texts returns all of them.
func (t *Taint) Texts() []string { return slices.Sorted(maps.Keys(t.values)) }

// build makes the replacer. A longer text goes before one that it contains.
func (t *Taint) build() {
	all := map[string]bool{}
	for value := range t.values {
		for _, v := range variants(value) {
			all[v] = true
		}
	}
	ordered := slices.SortedFunc(maps.Keys(all), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(b), len(a)), strings.Compare(a, b))
	})
	pairs := make([]string, 0, 2*len(ordered))
	for _, v := range ordered {
		pairs = append(pairs, v, Mark)
	}
	t.replacer = strings.NewReplacer(pairs...)
}

// variants are the forms in which a text is looked for.
func variants(value string) []string {
	quoted := quote(value)
	return []string{
		value, url.QueryEscape(value), url.PathEscape(value), quoted[1 : len(quoted)-1],
		base64.StdEncoding.EncodeToString([]byte(value)), base64.RawURLEncoding.EncodeToString([]byte(value)),
	}
}

// Text puts marks into a text, and tells whether it had to.
func (t *Taint) Text(text string) (string, bool) {
	if !t.Any() || len(text) < shortest {
		return text, false
	}
	clean := t.replacer.Replace(text)
	return clean, clean != text
}

// In returns those of the texts that come up in JSON values, sorted: what somebody must know who gets the values and nothing else.
func (t *Taint) In(values ...json.RawMessage) []string {
	if !t.Any() {
		return nil
	}
	found := map[string]bool{}
	for _, value := range values {
		decoder := json.NewDecoder(bytes.NewReader(value))
		decoder.UseNumber()
		for token, err := decoder.Token(); err == nil; token, err = decoder.Token() {
			switch token := token.(type) {
			case string:
				t.find(token, found)
			case json.Number:
				if t.values[token.String()] {
					found[token.String()] = true
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// find notes which texts come up in another one.
func (t *Taint) find(text string, found map[string]bool) {
	if _, known := t.Text(text); !known {
		return
	}
	for value := range t.values {
		if !found[value] && slices.ContainsFunc(variants(value), func(v string) bool { return strings.Contains(text, v) }) {
			found[value] = true
		}
	}
}

// maxName is the longest name whose beginning matters; of longer ones only the end is looked at.
const maxName = 48

// Named tells whether a name is one under which secrets usually stand: password, token, secret, authorization, api_key and the like, in
// any spelling and behind any prefix (db_password, X-Api-Key, accessToken).
func Named(name []byte) bool {
	if len(name) > maxName {
		name = name[len(name)-maxName:]
	}
	var buffer [maxName]byte
	n := 0
	for _, c := range name {
		switch {
		case c >= 'A' && c <= 'Z':
			c += 'a' - 'A'
		case c >= 'a' && c <= 'z' || c >= '0' && c <= '9':
		default:
			continue
		}
		buffer[n] = c
		n++
	}
	if n < len("pwd") {
		return false
	}
	plain := buffer[:n]
	switch plain[n-1] { //nolint:gosec // n is at least 3
	case 'd':
		return ends(plain, "password", "passwd", "pwd")
	case 's':
		return ends(plain, "passwords", "secrets", "credentials")
	case 't':
		return ends(plain, "secret")
	case 'n':
		return ends(plain, "token", "authorization") && !ends(plain, "pagetoken", "nexttoken", "continuationtoken", "synctoken")
	case 'y':
		return ends(plain, "apikey", "privatekey", "secretkey", "accesskey", "signingkey", "encryptionkey")
	case 'e':
		return ends(plain, "passphrase", "cookie")
	case 'l':
		return ends(plain, "credential")
	}
	return false
}

func ends(name []byte, suffixes ...string) bool {
	for _, s := range suffixes {
		if len(name) >= len(s) && string(name[len(name)-len(s):]) == s {
			return true
		}
	}
	return false
}
