package redact

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// mostTaint bounds what is searched for, in bytes, over all texts of a run.
const mostTaint = 256 << 10

// Taint is what has stood at sensitive places of a run, and is to be found nowhere else in it. The zero value is ready to use.
type Taint struct {
	values map[string]bool
	texts  []string // by their index in the finder
	size   int
	finder Finder
}

// Any tells whether there is anything.
func (t *Taint) Any() bool { return t != nil && t.finder.Any() }

// Add adds texts, and returns those that are new and long enough. Of an authorization ("Bearer …"), what follows the scheme counts too.
func (t *Taint) Add(texts ...string) (added []string) {
	for _, text := range texts {
		_, credentials, _ := strings.Cut(text, " ")
		for _, value := range []string{text, credentials} {
			if len(value) < shortest || t.values[value] || t.size+len(value) > mostTaint || strings.Contains(Mark, value) {
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
	t.finder.Add(added...)
	t.texts = append(t.texts, added...)
	return added
}

// Texts returns all of them.
func (t *Taint) Texts() []string { return slices.Sorted(maps.Keys(t.values)) }

// Text puts marks into a text, and tells whether it had to.
func (t *Taint) Text(text string) (string, bool) {
	if t == nil {
		return text, false
	}
	return t.finder.Replace(text)
}

// In returns those of the texts that come up in JSON values, sorted: what somebody must know who gets the values and nothing else.
func (t *Taint) In(values ...json.RawMessage) []string {
	if !t.Any() {
		return nil
	}
	found := map[string]bool{}
	note := func(index int) { found[t.texts[index]] = true }
	for _, value := range values {
		w := walker{in: value}
		for w.space() < len(value) && !w.bad {
			start := w.pos
			switch w.peek() {
			case '"':
				w.text()
				t.finder.Texts(unquote(value[start:w.pos]), note)
			case '{', '}', '[', ']', ',', ':':
				w.pos++
			default:
				if w.scalar(); t.values[string(value[start:w.pos])] {
					found[string(value[start:w.pos])] = true
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
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
