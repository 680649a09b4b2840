package clientconfig

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"time"

	"github.com/signalbox-dev/signalbox/internal/config"
)

// RedisLayer checks that Redis is configured where it is needed, and the files of its credentials; now is the clock for
// the validity of certificates. Commands that run dispatchers use it: a migration of the database needs no Redis.
func RedisLayer(now func() time.Time) config.Layer {
	return config.Layer{Check: func(cfg *config.Config) config.Violations {
		return append(redisNeeded(cfg), checkRedis(cfg.Redis, now())...)
	}}
}

// redisNeeded reports leases in memory where several processes share a database: each would own every dispatcher.
func redisNeeded(cfg *config.Config) config.Violations {
	if cfg.Store.Driver != config.DriverPostgres || cfg.Redis.Used() {
		return nil
	}
	return config.Violations{{
		Path: "redis.url",
		Message: "is empty while store.driver is postgres: without Redis, leases are in memory, which is for one process " +
			"on SQLite; set redis.url, or redis.addresses",
	}}
}

// checkRedis reads the files and reports everything that is wrong with them at once. A client certificate outside its
// validity may heal, by a rotation or with time. Files that are missing are reported by package config.
func checkRedis(r config.Redis, now time.Time) config.Violations {
	var violations config.Violations
	add := func(path string, heals bool, format string, args ...any) {
		violations = append(violations, config.Violation{Path: path, Message: fmt.Sprintf(format, args...), Heals: heals})
	}
	if r.PasswordFile != "" {
		if _, err := readPassword(r.PasswordFile); err != nil {
			add("redis.password_file", false, "the password cannot be used: %v; write it into the file", err)
		}
	}
	if r.TLS.CAFile != "" {
		pem, err := os.ReadFile(r.TLS.CAFile)
		if err != nil || !x509.NewCertPool().AppendCertsFromPEM(pem) {
			add("redis.tls.ca_file", false,
				"the authorities hold no certificate in PEM form; give the certificates of those that sign Redis's")
		}
	}
	if r.TLS.CertFile == "" || r.TLS.KeyFile == "" {
		return violations // half a pair is reported by the keys' own validation
	}
	pair, err := tls.LoadX509KeyPair(r.TLS.CertFile, r.TLS.KeyFile)
	if err != nil {
		add("redis.tls.cert_file", false, "the client certificate and its key cannot be used: %v; give a certificate and "+
			"the key that it was made for, in PEM form", err)
		return violations
	}
	const advice = "(a server starts with it, and connects once the file holds a valid one)"
	switch leaf := pair.Leaf; {
	case now.After(leaf.NotAfter):
		add("redis.tls.cert_file", true, "the client certificate expired at %s; renew it %s",
			leaf.NotAfter.UTC().Format(time.DateTime), advice)
	case now.Before(leaf.NotBefore):
		add("redis.tls.cert_file", true, "the client certificate is not valid before %s; check the clock, or wait %s",
			leaf.NotBefore.UTC().Format(time.DateTime), advice)
	}
	return violations
}
