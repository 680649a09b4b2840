package config

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/signalbox-dev/signalbox/internal/config/schema"
)

// Redis modes.
const (
	RedisStandalone = "standalone"
	RedisSentinel   = "sentinel"
	RedisCluster    = "cluster"
)

// Redis holds the settings of the store of leases and heartbeats, which all processes of a platform share.
type Redis struct {
	URL          Secret        `yaml:"url" default:"" doc:"redis://user@host:port/database, or rediss:// for TLS. Give a password by password_file, by reference as in store.dsn, or with the whole URL through its variable. Either this or addresses."`
	Addresses    []string      `yaml:"addresses" default:"" doc:"host:port of the server, of the sentinels, or of some nodes of the cluster. Either this or url."`
	Mode         string        `yaml:"mode" default:"standalone" doc:"standalone, sentinel or cluster."`
	MasterName   string        `yaml:"master_name" default:"" doc:"Name of the master in the sentinels. Requires mode sentinel."`
	Username     string        `yaml:"username" default:"" doc:"User name, if it is not the default user."`
	PasswordFile string        `yaml:"password_file" default:"" kind:"secretfile" doc:"File that holds the password. Read again for every connection, so a rotated one needs no restart."`
	TLS          RedisTLS      `yaml:"tls" doc:"TLS for connections to Redis. It is enabled if any of these keys is set, or with a rediss:// URL."`
	Prefix       string        `yaml:"prefix" default:"signalbox:" doc:"Prefix of every key. Platforms that share a Redis need different prefixes."`
	Timeout      time.Duration `yaml:"timeout" default:"1s" doc:"Timeout of a connection attempt, and of one request."`
}

// RedisTLS names the files of a TLS connection to Redis.
type RedisTLS struct {
	Enabled    bool   `yaml:"enabled" default:"false" doc:"Use TLS, with the system's authorities if ca_file is empty."`
	CAFile     string `yaml:"ca_file" default:"" kind:"file" doc:"Authorities to trust, PEM."`
	CertFile   string `yaml:"cert_file" default:"" kind:"file" doc:"Client certificate, PEM. Needs key_file. Read again for every handshake."`
	KeyFile    string `yaml:"key_file" default:"" kind:"secretfile" doc:"Private key of the client certificate, PEM. Needs cert_file. Read again for every handshake."`
	ServerName string `yaml:"server_name" default:"" doc:"Name expected in the server's certificate. Empty: the host of the address."`
}

// Used reports whether Redis is configured. Without it, leases are in memory, which works for one process on SQLite.
func (r Redis) Used() bool { return r.URL != "" || len(r.Addresses) > 0 }

// TLSEnabled reports whether the connection to Redis uses TLS.
func (r Redis) TLSEnabled() bool {
	return r.TLS != (RedisTLS{}) || strings.HasPrefix(r.URL.Reveal(), "rediss://")
}

// Validate reports a missing, duplicate or invalid address of Redis.
func (r Redis) Validate() Violations {
	var ps found
	r.validateMode(&ps)
	if r.URL != "" {
		r.validateURL(&ps)
	}
	for _, a := range r.Addresses {
		if violation := DialViolation(a); violation != "" {
			ps.add("addresses", "%q is not host:port: %s", a, violation)
		}
	}
	if !regexp.MustCompile(`^[!-~]{1,64}$`).MatchString(r.Prefix) {
		ps.add("prefix", "%q is not a prefix: 1 to 64 printable characters without spaces, for example \"signalbox:\"",
			r.Prefix)
	} else if strings.ContainsAny(r.Prefix, `{}*?[]\`) {
		ps.add("prefix", "%q holds a character that means something to Redis: leave out { } * ? [ ] and \\", r.Prefix)
	}
	atLeast(&ps, "timeout", r.Timeout, shortest)
	return append(Violations(ps), r.TLS.Validate().under("tls")...)
}

func (r Redis) validateMode(ps *found) {
	modes := []string{RedisStandalone, RedisSentinel, RedisCluster}
	if !slices.Contains(modes, r.Mode) {
		ps.add("mode", "%q is not a mode%s; the modes are standalone, sentinel and cluster", r.Mode,
			schema.DidYouMean(r.Mode, modes))
		return
	}
	switch {
	case r.URL != "" && len(r.Addresses) > 0:
		ps.add("addresses", "are given beside redis.url; keep one of the two")
	case r.Mode == RedisSentinel && r.URL != "":
		ps.add("url", "names one server while redis.mode is sentinel; name the sentinels in redis.addresses")
	case r.Mode != RedisStandalone && !r.Used():
		ps.add("addresses", "are empty while redis.mode is %s; name some servers as host:port", r.Mode)
	case r.Mode == RedisStandalone && len(r.Addresses) > 1:
		ps.add("addresses", "name %d servers while redis.mode is standalone; keep one, or set redis.mode to sentinel or "+
			"cluster", len(r.Addresses))
	}
	if r.Mode == RedisSentinel && r.MasterName == "" {
		ps.add("master_name", "is empty while redis.mode is sentinel; give the name under which the sentinels know the "+
			"master")
	}
	if r.Mode != RedisSentinel && r.MasterName != "" {
		ps.add("master_name", "is set while redis.mode is %s; only sentinels know masters by name", r.Mode)
	}
}

// validateURL never shows the URL, which may contain a password.
func (r Redis) validateURL(ps *found) {
	const form = "write redis://host:port or redis://user@host:port/database"
	u, err := url.Parse(r.URL.Reveal())
	if err != nil {
		ps.add("url", "is not a URL; %s", form)
		return
	}
	password, hasPassword := u.User.Password()
	switch {
	case u.Scheme != "redis" && u.Scheme != "rediss":
		ps.add("url", "begins with %q; %s, or rediss:// for TLS", u.Scheme+"://", form)
	case u.Hostname() == "":
		ps.add("url", "names no host; %s", form)
	case u.RawQuery != "" || u.Fragment != "":
		ps.add("url", "has parameters; set the keys below redis instead")
	case !regexp.MustCompile(`^/?([0-9]{1,5})?$`).MatchString(u.Path):
		ps.add("url", "names the database %q, which is not a number; %s", u.Path, form)
	case r.Mode == RedisCluster && strings.Trim(u.Path, "/0") != "":
		ps.add("url", "names database %s while redis.mode is cluster, and a cluster has number 0 only; leave it out",
			strings.Trim(u.Path, "/"))
	}
	if u.User.Username() != "" && r.Username != "" {
		ps.add("username", "is given beside a user in redis.url; keep one of the two")
	}
	if hasPassword && password != "" && r.PasswordFile != "" {
		ps.add("password_file", "is given beside a password in redis.url; keep one of the two")
	}
}

// validateRenewal reports a timeout of Redis so long that an owner can lose its lease by one failed renewal.
func (c *Config) validateRenewal(ps *found) {
	left := c.Dispatch.TTL - ownerMargin - c.Dispatch.Renew
	if c.Redis.Used() && left > 0 && c.Redis.Timeout > left {
		ps.add("redis.timeout", "%v is too long: with dispatch.ttl %v and dispatch.renew %v, a renewal has to succeed "+
			"within %v; lower it or raise dispatch.ttl",
			c.Redis.Timeout, c.Dispatch.TTL, c.Dispatch.Renew, left)
	}
}

// Validate reports half a key pair.
func (t RedisTLS) Validate() Violations {
	return TLS{CertFile: t.CertFile, KeyFile: t.KeyFile}.Validate()
}
