// Package provider gives the values of secrets: from files, from variables of the environment, and from a program of the operator's.
// [New] puts them together as the configuration says; the first that knows a secret gives it, and what it gave is kept for a few
// seconds, so that a secret that is rotated needs no restart.
package provider

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/signalbox-dev/signalbox/internal/secret"
)

// Options say where secrets are. What is empty is not asked.
type Options struct {
	// Dir is a folder with a folder of each project, in which each file is a secret.
	Dir string
	// Prefix begins the variables: PREFIX + PROJECT + "__" + NAME.
	Prefix string
	// Lookup finds a variable, as os.LookupEnv does.
	Lookup func(name string) (string, bool)
	// Command is a program and its first arguments; project and name follow.
	Command []string
	// Timeout bounds the program.
	Timeout time.Duration
	// Keep is how long a value is used before it is asked for again; zero asks every time.
	Keep time.Duration
	Now  func() time.Time
}

// New returns the providers that are configured, as one.
func New(o Options) secret.Provider {
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
	return &cache{from: chain, keep: o.Keep, now: o.Now, held: map[place]held{}}
}

// chain asks one provider after another until one knows the secret.
type chain []secret.Provider

func (c chain) Resolve(ctx context.Context, project, name string) (secret.Value, error) {
	asked := make([]string, 0, len(c))
	for _, p := range c {
		value, err := p.Resolve(ctx, project, name)
		switch {
		case err == nil && len(value) > secret.MaxBytes:
			return nil, fmt.Errorf("the secret %q is over the limit of %d bytes", name, secret.MaxBytes)
		case err == nil:
			return value, nil
		case !errors.Is(err, secret.ErrMissing):
			return nil, err
		}
		asked = append(asked, fmt.Sprint(p))
	}
	if len(asked) == 0 {
		return nil, fmt.Errorf("the secret %q: %w: no provider of secrets is set up (secrets.dir, secrets.env_prefix, secrets.command)", name, secret.ErrMissing)
	}
	return nil, fmt.Errorf("the secret %q: %w by %s", name, secret.ErrMissing, strings.Join(asked, ", "))
}

type place struct{ project, name string }

type held struct {
	value secret.Value
	until time.Time
}

// maxHeld bounds the memory of a cache: over it, it begins anew.
const maxHeld = 10_000

// cache keeps what was found. What is missing is asked for every time, so that it can be used as soon as it is there.
type cache struct {
	from secret.Provider
	keep time.Duration
	now  func() time.Time

	mu   sync.Mutex
	held map[place]held
}

func (c *cache) Resolve(ctx context.Context, project, name string) (secret.Value, error) {
	if c.keep <= 0 {
		return c.from.Resolve(ctx, project, name)
	}
	at := place{project, name}
	c.mu.Lock()
	kept, ok := c.held[at]
	c.mu.Unlock()
	if ok && c.now().Before(kept.until) {
		return kept.value, nil
	}
	asked := c.now()
	value, err := c.from.Resolve(ctx, project, name)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		delete(c.held, at)
		return nil, err
	}
	if len(c.held) >= maxHeld {
		clear(c.held)
	}
	c.held[at] = held{value, asked.Add(c.keep)}
	return value, nil
}
