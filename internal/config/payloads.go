package config

import (
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/signalbox-dev/signalbox/internal/config/schema"
)

// Stores of payloads.
const (
	PayloadsDatabase = "database"
	PayloadsFolder   = "folder"
	PayloadsS3       = "s3"
	PayloadsPostgres = "postgres"
)

// Payloads selects the store of large values.
type Payloads struct {
	Store  string `yaml:"store" default:"database" doc:"database (that of store.dsn), folder (one machine), s3 or postgres (another database). New values go there; values of the database are still read. Use the same store for all processes."`
	Folder string `yaml:"folder" default:"" kind:"file" doc:"Folder of the values, for store folder. It must exist; only the user of the servers should have access."`
	S3     S3     `yaml:"s3" doc:"The bucket of the values, for store s3. Any service that is compatible with S3 can be used."`
	DSN    Secret `yaml:"dsn" default:"" doc:"The Postgres database of the values, for store postgres: another one than store.dsn, with the same forms. Its table is created at start where store.auto_migrate is true, and by \"signalbox migrate up\"."`
}

// S3 names a bucket and the credentials.
type S3 struct {
	Endpoint      string `yaml:"endpoint" default:"" doc:"URL of the service, for example https://s3.eu-central-1.amazonaws.com. http:// uses no TLS."`
	Region        string `yaml:"region" default:"us-east-1" doc:"Region of the bucket. Services that have no regions accept any."`
	Bucket        string `yaml:"bucket" default:"" doc:"Name of the bucket. It must exist."`
	Prefix        string `yaml:"prefix" default:"" doc:"Prefix of the names of all objects, for example signalbox/. Platforms that share a bucket need different prefixes."`
	PathStyle     bool   `yaml:"path_style" default:"false" doc:"Request ENDPOINT/BUCKET instead of BUCKET.ENDPOINT. Most services of your own need it."`
	AccessKeyFile string `yaml:"access_key_file" default:"" kind:"secretfile" doc:"File that holds the ID of the access key. Read again after a minute, so a rotated one needs no restart."`
	SecretKeyFile string `yaml:"secret_key_file" default:"" kind:"secretfile" doc:"File that holds the secret access key. Read again after a minute."`
	CAFile        string `yaml:"ca_file" default:"" kind:"file" doc:"Authorities to trust, PEM. Empty: the system's."`
}

// Validate reports an unknown store, and settings that are missing or belong to another store.
func (p Payloads) Validate() Violations {
	var ps found
	stores := []string{PayloadsDatabase, PayloadsFolder, PayloadsS3, PayloadsPostgres}
	if !slices.Contains(stores, p.Store) {
		ps.add("store", "%q is not a store of payloads%s; the stores are database, folder, s3 and postgres", p.Store,
			schema.DidYouMean(p.Store, stores))
		return Violations(ps)
	}
	switch {
	case p.Store == PayloadsFolder && p.Folder == "":
		ps.add("folder", "is empty while payloads.store is folder; name a folder that exists")
	case p.Store != PayloadsFolder && p.Folder != "":
		ps.add("folder", "is set while payloads.store is %s; set payloads.store to folder, or leave it out", p.Store)
	}
	switch {
	case p.Store == PayloadsPostgres && !IsPostgresDSN(p.DSN.Reveal()):
		ps.add("dsn", "is not a Postgres DSN; write postgres://user:${file:/path/of/password}@host/database")
	case p.Store != PayloadsPostgres && p.DSN != "":
		ps.add("dsn", "is set while payloads.store is %s; set payloads.store to postgres, or leave it out", p.Store)
	}
	all := Violations(ps)
	if p.Store == PayloadsS3 {
		return append(all, p.S3.Validate().under("s3")...)
	}
	if p.S3.Bucket != "" || p.S3.Endpoint != "" {
		ps.add("s3.bucket", "is set while payloads.store is %s; set payloads.store to s3, or leave it out", p.Store)
	}
	return Violations(ps)
}

// Validate reports a bucket that cannot be requested.
func (s S3) Validate() Violations {
	var ps found
	u, err := url.Parse(s.Endpoint)
	switch {
	case s.Endpoint == "":
		ps.add("endpoint", "is empty; write the URL of the service, for example https://s3.eu-central-1.amazonaws.com")
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || strings.Trim(u.Path, "/") != "" ||
		u.RawQuery != "" || u.User != nil:
		ps.add("endpoint", "%q is not the URL of a service; write https://HOST or https://HOST:PORT, with the bucket in "+
			"payloads.s3.bucket", s.Endpoint)
	case u.Scheme == "http" && s.CAFile != "":
		ps.add("ca_file", "is set while payloads.s3.endpoint uses no TLS; write https://")
	}
	if s.Region == "" {
		ps.add("region", "is empty; write us-east-1 if the service has no regions")
	}
	if !regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`).MatchString(s.Bucket) {
		ps.add("bucket", "%q is not the name of a bucket: 3 to 63 lower-case letters, digits, dots and hyphens", s.Bucket)
	}
	if !regexp.MustCompile(`^([A-Za-z0-9_.-]+/)*$`).MatchString(s.Prefix) || len(s.Prefix) > maxPrefix ||
		strings.Contains("/"+s.Prefix, "/.") {
		ps.add("prefix", "%q is not a prefix: up to %d letters, digits, hyphens, underscores and dots, with a / at the "+
			"end, for example signalbox/", s.Prefix, maxPrefix)
	}
	for _, key := range []struct{ path, file string }{
		{"access_key_file", s.AccessKeyFile}, {"secret_key_file", s.SecretKeyFile}} {
		if key.file == "" {
			ps.add(key.path, "is empty; name the file that holds the key")
		}
	}
	return Violations(ps)
}

// maxPrefix is the longest prefix: names of objects have at most 1024 bytes.
const maxPrefix = 200
