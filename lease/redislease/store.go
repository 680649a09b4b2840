package redislease

import (
	"context"
	_ "embed" // the scripts
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/signalbox-dev/signalbox/lease"
)

// The Lua scripts. shared.lua is prepended to each of the others.
var (
	//go:embed scripts/shared.lua
	sharedLua string
	//go:embed scripts/acquire.lua
	acquireLua string
	//go:embed scripts/renew.lua
	renewLua string
	//go:embed scripts/resign.lua
	resignLua string
	//go:embed scripts/delete.lua
	deleteLua string
	//go:embed scripts/read.lua
	readLua string
	// checkLua uses none of shared.lua.
	//go:embed scripts/check.lua
	checkLua string
)

// Store stores leases in Redis.
type Store struct {
	client     redis.UniversalClient
	ownsClient bool // whether closing the store closes the client
	prefix     string

	acquire, renew, resign, remove, read script
	check                                *redis.Script
}

// script is a Lua script, as text and with its hash.
type script struct {
	text string
	*redis.Script
}

var _ lease.Store = (*Store)(nil)

// New returns a store that uses the caller's client: [Store.Close] does not close it. The client should observe the
// deadlines of contexts (ContextTimeoutEnabled), and must not be a Ring, which moves keys to another server when one is
// unavailable.
func New(client redis.UniversalClient, prefix string) (*Store, error) {
	if err := lease.CheckKey(prefix); err != nil {
		return nil, fmt.Errorf("redis: prefix %q: %w", prefix, err)
	}
	if _, ring := client.(*redis.Ring); ring {
		return nil, errors.New("redis: a ring is not supported, because it grants a lease again when one of its servers is " +
			"unavailable")
	}
	load := func(text string) script {
		text = sharedLua + text
		return script{text: text, Script: redis.NewScript(text)}
	}
	return &Store{
		client: client, prefix: prefix,
		acquire: load(acquireLua), renew: load(renewLua), resign: load(resignLua), remove: load(deleteLua),
		read:  load(readLua),
		check: redis.NewScript(checkLua),
	}, nil
}

// Close closes the client that [Open] made.
func (s *Store) Close() error {
	if !s.ownsClient {
		return nil
	}
	return s.client.Close()
}

// Acquire implements [lease.Store.Acquire].
func (s *Store) Acquire(ctx context.Context, key, holder string, value []byte,
	lifetime lease.Lifetime) (lease.Entry, *lease.Entry, error) {
	if err := lease.CheckAcquire(key, holder, value, lifetime); err != nil {
		return lease.Entry{}, nil, err
	}
	attempted := lease.Entry{Key: key, Holder: holder, Token: lease.NewToken()}
	answer, err := s.run(ctx, s.acquire, key, holder, attempted.Token, value, microseconds(lifetime.TTL),
		milliseconds(lifetime.Retention), s.channel(), key)
	if err != nil {
		return attempted, nil, fmt.Errorf("acquire lease %q: %w", key, err)
	}
	got, err := answer.entry(key)
	if err != nil {
		return attempted, nil, fmt.Errorf("acquire lease %q: %w", key, err)
	}
	if answer.is("held") {
		return lease.Entry{}, nil, &lease.HeldError{Entry: got}
	}
	before, err := answer.before(got)
	if err != nil {
		return attempted, nil, fmt.Errorf("acquire lease %q: %w", key, err)
	}
	return got, before, nil
}

// Renew implements [lease.Store.Renew].
func (s *Store) Renew(ctx context.Context, key, token string, value []byte,
	lifetime lease.Lifetime) (lease.Entry, error) {
	if err := lease.CheckRenew(key, value, lifetime); err != nil {
		return lease.Entry{}, err
	}
	replace := 0
	if value != nil {
		replace = 1
	}
	answer, err := s.run(ctx, s.renew, key, token, replace, value, microseconds(lifetime.TTL),
		milliseconds(lifetime.Retention))
	if err != nil {
		return lease.Entry{}, fmt.Errorf("renew lease %q: %w", key, err)
	}
	if answer.is("lost") {
		return lease.Entry{}, lease.ErrLost
	}
	got, err := answer.entry(key)
	if err != nil {
		return lease.Entry{}, fmt.Errorf("renew lease %q: %w", key, err)
	}
	return got, nil
}

// Resign implements [lease.Store.Resign].
func (s *Store) Resign(ctx context.Context, key, token string) error {
	if err := lease.CheckKey(key); err != nil {
		return err
	}
	answer, err := s.run(ctx, s.resign, key, token, s.channel(), key)
	if err != nil {
		return fmt.Errorf("resign lease %q: %w", key, err)
	}
	if answer.is("lost") {
		return lease.ErrLost
	}
	return nil
}

// Delete implements [lease.Store.Delete].
func (s *Store) Delete(ctx context.Context, key, token string, revision int64) error {
	if err := lease.CheckKey(key); err != nil {
		return err
	}
	answer, err := s.run(ctx, s.remove, key, token, strconv.FormatInt(revision, 10), s.channel(), key)
	switch {
	case err != nil:
		return fmt.Errorf("delete lease entry %q: %w", key, err)
	case answer.is("changed"):
		return lease.ErrChanged
	}
	return answer.absence(key)
}

// Get implements [lease.Store.Get].
func (s *Store) Get(ctx context.Context, key string) (lease.Entry, error) {
	if err := lease.CheckKey(key); err != nil {
		return lease.Entry{}, err
	}
	answer, err := s.run(ctx, s.read, key)
	if err != nil {
		return lease.Entry{}, fmt.Errorf("read lease entry %q: %w", key, err)
	}
	return answer.read(key)
}

// Check returns an error if Redis does not answer, or refuses one of the commands that the store needs, because of the
// user's rights or because it accepts no writes. The error names every refused command. Publishing and subscribing,
// which only give hints, are not checked; of a cluster, one node is.
func (s *Store) Check(ctx context.Context) error {
	// The prefix is the key of no entry: keys of entries are not empty.
	refused, err := s.check.Run(ctx, s.client, []string{s.prefix}).StringSlice()
	if err != nil {
		return unchecked(err)
	}
	if err := s.client.Scan(ctx, 0, escapePattern(s.prefix), 1).Err(); isAnswer(err) {
		refused = append(refused, "scan "+err.Error())
	} else if err != nil {
		return unchecked(err)
	}
	if len(refused) == 0 {
		return nil
	}
	return refusal(refused)
}

// isAnswer reports whether an error is Redis' answer.
func isAnswer(err error) bool {
	_, answer := errors.AsType[redis.Error](err)
	return answer
}

// unchecked returns the error of a check that found out nothing about commands.
func unchecked(err error) error {
	if isAnswer(err) {
		return fmt.Errorf("redis refuses the request: %w", err)
	}
	return fmt.Errorf("redis does not answer: %w", err)
}

// refusal returns the error about refused commands. Each has its name and Redis' reason, which is usually the same for
// all.
func refusal(refused []string) error {
	names, reasons := make([]string, len(refused)), make([]string, 0, len(refused))
	for i, each := range refused {
		name, reason, _ := strings.Cut(each, " ")
		names[i] = name
		if !slices.Contains(reasons, reason) {
			reasons = append(reasons, reason)
		}
	}
	return fmt.Errorf("redis refuses %s on keys of the prefix: %s", strings.Join(names, ", "), strings.Join(reasons, "; "))
}

// run runs a script on the entry of a key: by its hash, or by its text if the server has not cached it yet.
func (s *Store) run(ctx context.Context, run script, key string, args ...any) (answer, error) {
	return run.Run(ctx, s.client, []string{s.prefix + key}, args...).StringSlice()
}

func (s *Store) channel() string { return s.prefix + "changes" }

func microseconds(d time.Duration) int64 { return d.Microseconds() }

// milliseconds rounds up, since no entry may be removed early.
func milliseconds(d time.Duration) int64 { return (d + time.Millisecond - 1).Milliseconds() }
