package secret

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jellydator/ttlcache/v3"
)

// ProviderOptions configure the providers. Empty ones are not used.
type ProviderOptions struct {
	// Dir is a folder with a folder for each project, in which each file is a secret.
	Dir string
	// Prefix begins the variables: PREFIX + PROJECT + "__" + NAME.
	Prefix string
	// Lookup returns a variable, as os.LookupEnv does.
	Lookup func(name string) (string, bool)
	// Command is a program and its first arguments; project and name follow.
	Command []string
	// Timeout bounds the program.
	Timeout time.Duration
	// Keep is how long a value is cached; zero disables the cache.
	Keep time.Duration
}

// NewProvider returns the providers that are configured, as one: files, environment variables, and a program of the
// operator; the first that has a secret returns it. Values are cached for a few seconds, so that a rotated secret needs
// no restart.
func NewProvider(o ProviderOptions) Provider {
	var chain chain
	if o.Dir != "" {
		chain = append(chain, files{o.Dir})
	}
	if o.Prefix != "" {
		chain = append(chain, environment{o.Prefix, o.Lookup})
	}
	if len(o.Command) > 0 {
		chain = append(chain, program{o.Command, o.Timeout})
	}
	if o.Keep <= 0 {
		return chain
	}
	return &cache{chain, o.Keep,
		ttlcache.New(ttlcache.WithCapacity[cacheKey, Value](maxHeld),
			ttlcache.WithDisableTouchOnHit[cacheKey, Value]())}
}

// chain calls one provider after another until one has the secret.
type chain []Provider

func (c chain) Resolve(ctx context.Context, project, name string) (Value, error) {
	asked := make([]string, 0, len(c))
	for _, p := range c {
		value, err := p.Resolve(ctx, project, name)
		switch {
		case err == nil && len(value) > MaxBytes:
			return nil, fmt.Errorf("the secret %q is over the limit of %d bytes", name, MaxBytes)
		case err == nil:
			return value, nil
		case !errors.Is(err, ErrMissing):
			return nil, err
		}
		asked = append(asked, fmt.Sprint(p))
	}
	if len(asked) == 0 {
		return nil, fmt.Errorf("the secret %q: %w: no provider of secrets is set up (secrets.dir, secrets.env_prefix, "+
			"secrets.command)", name, ErrMissing)
	}
	return nil, fmt.Errorf("the secret %q: %w by %s", name, ErrMissing, strings.Join(asked, ", "))
}

type cacheKey struct{ project, name string }

// maxHeld bounds the memory of a cache.
const maxHeld = 10_000

// cache holds found values. Missing secrets are not cached, so that they can be used as soon as they exist.
type cache struct {
	from Provider
	keep time.Duration
	held *ttlcache.Cache[cacheKey, Value]
}

func (c *cache) Resolve(ctx context.Context, project, name string) (Value, error) {
	at := cacheKey{project, name}
	if held := c.held.Get(at); held != nil {
		return held.Value(), nil
	}
	asked := time.Now()
	value, err := c.from.Resolve(ctx, project, name)
	if err != nil {
		return nil, err
	}
	if left := c.keep - time.Since(asked); left > 0 {
		c.held.Set(at, value, left)
	}
	return value, nil
}
