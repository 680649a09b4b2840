package redislease

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// Options configure a store. Either URL or Addresses is required; zero fields have the defaults given.
type Options struct {
	// URL is redis://user:password@host:port/database, or rediss:// for TLS. It has no parameters.
	URL string
	// Addresses are host:port of the server, of sentinels, or of some nodes of a cluster.
	Addresses []string
	// MasterName, where set, is the sentinels' name of the master; Addresses are then those of sentinels.
	MasterName string
	// Cluster: Addresses are nodes of a cluster.
	Cluster bool
	// Username and Password, where set, take precedence over those of the URL. Password is called for each connection.
	Username string
	Password func() (string, error)
	// TLS, where set, is used for servers and sentinels. A rediss:// URL uses TLS without it.
	TLS *tls.Config
	// Timeout limits each dial and each request; 1 s.
	Timeout time.Duration
	// Prefix is the prefix of every key; [DefaultPrefix].
	Prefix string
}

// DefaultPrefix is the default of Options.Prefix.
const DefaultPrefix = "signalbox:"

const defaultTimeout = time.Second

// Open returns a store with its own client, which connects when it is first used.
func Open(o Options) (*Store, error) {
	settings, err := o.client()
	if err != nil {
		return nil, err
	}
	client := redis.NewUniversalClient(settings)
	store, err := New(client, cmp.Or(o.Prefix, DefaultPrefix))
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	store.ownsClient = true
	return store, nil
}

// client returns the options of the Redis client.
func (o Options) client() (*redis.UniversalOptions, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	timeout := cmp.Or(o.Timeout, defaultTimeout)
	settings := &redis.UniversalOptions{
		Addrs: o.Addresses, MasterName: o.MasterName, IsClusterMode: o.Cluster, Username: o.Username, TLSConfig: o.TLS,
		DialTimeout: timeout, ReadTimeout: timeout, WriteTimeout: timeout, ContextTimeoutEnabled: true,
		// lease.Hold repeats renewals by itself. One retry here covers a connection that broke while it was idle.
		MaxRetries: 1, DialerRetries: 1,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
	var password string
	if o.URL != "" {
		u, err := redis.ParseURL(o.URL)
		if err != nil {
			return nil, fmt.Errorf("read the URL of Redis: %w", withoutURL(err))
		}
		settings.Addrs, settings.DB = []string{u.Addr}, u.DB
		settings.Username, password = cmp.Or(o.Username, u.Username), u.Password
		if u.TLSConfig != nil && o.TLS == nil {
			// Without a server name, so that each node of a cluster is verified by its own.
			settings.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12}
		}
	}
	settings.CredentialsProviderContext = func(context.Context) (string, string, error) {
		if o.Password == nil {
			return settings.Username, password, nil
		}
		current, err := o.Password()
		if err != nil {
			return "", "", fmt.Errorf("password of Redis: %w", err)
		}
		return settings.Username, current, nil
	}
	return settings, nil
}

// validate returns an error that contains every violation.
func (o Options) validate() error {
	var violations []error
	add := func(format string, args ...any) {
		violations = append(violations, fmt.Errorf("redis: "+format, args...))
	}
	switch {
	case o.URL == "" && len(o.Addresses) == 0:
		add("neither a URL nor addresses are given")
	case o.URL != "" && len(o.Addresses) > 0:
		add("both a URL and addresses are given; give one of them")
	case o.URL != "" && !strings.HasPrefix(o.URL, "redis://") && !strings.HasPrefix(o.URL, "rediss://"):
		add("the URL begins neither with redis:// nor with rediss://")
	case strings.Contains(o.URL, "?"):
		add("the URL has parameters; use options instead")
	case len(o.Addresses) > 1 && o.MasterName == "" && !o.Cluster:
		add("%d addresses are given; set either the sentinels' master name or the cluster option", len(o.Addresses))
	}
	if o.MasterName != "" && (o.Cluster || o.URL != "") {
		add("the sentinels' master name %q requires addresses of sentinels, without a URL or the cluster option",
			o.MasterName)
	}
	if o.Timeout < 0 {
		add("the timeout of %s is negative", o.Timeout)
	}
	return errors.Join(violations...)
}

// withoutURL removes the URL from an error, since it may contain the password.
func withoutURL(err error) error {
	if parsing, ok := errors.AsType[*url.Error](err); ok {
		return parsing.Err
	}
	return err
}
