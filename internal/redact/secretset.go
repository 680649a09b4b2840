package redact

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// maxSecretBytes bounds the total size of the texts of one set.
const maxSecretBytes = 256 << 10

// SecretSet is the set of texts found at sensitive locations of a run, which must not be visible anywhere else in it.
// The zero value is ready to use.
type SecretSet struct {
	values map[string]bool
	texts  []string // by their index in the finder
	size   int
	finder Finder
}

// Any reports whether the set has any text.
func (s *SecretSet) Any() bool { return s != nil && s.finder.Any() }

// Add adds texts, and returns those that are new and long enough. Of a text with a space, such as an authorization
// ("Bearer …"), it also adds the part after the first space. It ignores texts beyond [maxSecretBytes].
func (s *SecretSet) Add(texts ...string) (added []string) {
	for _, text := range texts {
		_, credentials, _ := strings.Cut(text, " ")
		for _, value := range []string{text, credentials} {
			if len(value) < shortest || s.values[value] || s.size+len(value) > maxSecretBytes || strings.Contains(Mark, value) {
				continue
			}
			if s.values == nil {
				s.values = map[string]bool{}
			}
			s.values[value] = true
			s.size += len(value)
			added = append(added, value)
		}
	}
	s.finder.Add(added...)
	s.texts = append(s.texts, added...)
	return added
}

// Texts returns all texts, sorted.
func (s *SecretSet) Texts() []string { return slices.Sorted(maps.Keys(s.values)) }

// Text replaces the secrets in a text by marks, and reports whether there were any.
func (s *SecretSet) Text(text string) (string, bool) {
	if s == nil {
		return text, false
	}
	return s.finder.Replace(text)
}

// In returns the secrets that occur in JSON values, sorted. A receiver of these values alone requires them to hide the
// same secrets.
func (s *SecretSet) In(values ...json.RawMessage) []string {
	if !s.Any() {
		return nil
	}
	found := map[string]bool{}
	note := func(index int) { found[s.texts[index]] = true }
	for _, value := range values {
		w := walker{in: value}
		for w.space() < len(value) && !w.bad {
			start := w.pos
			switch w.peek() {
			case '"':
				w.text()
				s.finder.Texts(unquote(value[start:w.pos]), note)
			case '{', '}', '[', ']', ',', ':':
				w.pos++
			default:
				if w.scalar(); s.values[string(value[start:w.pos])] {
					found[string(value[start:w.pos])] = true
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// maxName is the number of bytes at the end of a name that are checked.
const maxName = 48

// Named reports whether a name is a usual one for secrets: password, token, secret, authorization, api_key and the
// like, in any spelling and after any prefix (db_password, X-Api-Key, accessToken).
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
		return ends(plain, "token", "authorization") &&
			!ends(plain, "pagetoken", "nexttoken", "continuationtoken", "synctoken")
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
	for _, suffix := range suffixes {
		if len(name) >= len(suffix) && string(name[len(name)-len(suffix):]) == suffix {
			return true
		}
	}
	return false
}
