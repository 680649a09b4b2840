package config

import (
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/signalbox-dev/signalbox/internal/keyring"
)

// Encryption names the keys that encrypt values in the database and in Temporal.
type Encryption struct {
	Keys          []string `yaml:"keys" default:"" kind:"pairs" doc:"The keys that seal sensitive values in the database, and all run data in Temporal: ID and file of each, written ID=FILE, in the file as a mapping. A file holds 32 random bytes in base64, as \"head -c 32 /dev/urandom | base64\" prints them. A server needs at least one, the same in all processes. Keep inactive keys here for as long as values sealed with them must be read."`
	Active        string   `yaml:"active" default:"" doc:"ID of the key that seals; the others only open. Required if there are several."`
	Sealing       bool     `yaml:"sealing" default:"true" doc:"Seal new values. Set to false only while servers without keys still use the same database and Temporal: sealed values are opened, and nothing new is sealed."`
	RequireSealed bool     `yaml:"require_sealed" default:"false" doc:"Refuse unsealed data in Temporal: payloads from before keys were introduced, and signals that other programs send. A run with such a payload makes no progress, and its verdict says why."`
	CodecEndpoint bool     `yaml:"codec_endpoint" default:"false" doc:"Serve /codec/NAMESPACE/decode, where Temporal's UI can open payloads for administrators. Each use is audited."`
	CodecOrigins  []string `yaml:"codec_origins" default:"" doc:"Origins of the UIs that may use it from a browser, for example http://127.0.0.1:8233."`
}

// KeyFiles returns the keys; it leaves out invalid pairs, which Validate reports.
func (e Encryption) KeyFiles() []keyring.KeyFile {
	files := make([]keyring.KeyFile, 0, len(e.Keys))
	for _, pair := range e.Keys {
		if id, file, ok := strings.Cut(pair, "="); ok {
			files = append(files, keyring.KeyFile{ID: strings.TrimSpace(id), File: strings.TrimSpace(file)})
		}
	}
	return files
}

// Validate reports duplicate keys, and an active key that is none of them. It does not read the files; Ring
// does.
func (e Encryption) Validate() Violations {
	var ps found
	var ids []string
	for _, pair := range e.Keys {
		id, file, ok := strings.Cut(pair, "=")
		id, file = strings.TrimSpace(id), strings.TrimSpace(file)
		switch {
		case !ok || file == "":
			ps.add("keys", "%q names no file; write ID=FILE, for example 2026-11=/etc/signalbox/2026-11.key", pair)
		case !regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`).MatchString(id):
			ps.add("keys", "%q is not an ID: letters, digits, dots, hyphens and underscores, at most 64", id)
		case slices.Contains(ids, id):
			ps.add("keys", "%q is there twice; a key and its ID belong together for ever, so give a new key a new ID", id)
		}
		ids = append(ids, id)
	}
	switch {
	case len(ps) > 0: // reported above; the active key is one of them
	case e.Active == "" && len(ids) > 1:
		ps.add("active", "is empty while there are %d keys; name the one that seals from now on", len(ids))
	case e.Active != "" && !slices.Contains(ids, e.Active):
		ps.add("active", "%q is not one of encryption.keys (%s)", e.Active, strings.Join(ids, ", "))
	}
	if e.RequireSealed && !e.Sealing {
		ps.add("require_sealed", "is true while encryption.sealing is false; this process would refuse what it writes itself")
	}
	for _, origin := range e.CodecOrigins {
		if u, err := url.Parse(origin); err != nil || u.Host == "" || u.Scheme+"://"+u.Host != origin {
			ps.add("codec_origins", "%q is not an origin; write scheme, host and port, for example http://127.0.0.1:8233",
				origin)
		}
	}
	if !e.CodecEndpoint && len(e.CodecOrigins) > 0 {
		ps.add("codec_origins", "are given while encryption.codec_endpoint is false; set it to true, or leave them out")
	}
	return Violations(ps)
}
