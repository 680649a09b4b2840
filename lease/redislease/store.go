package redislease

import (
	"context"
	_ "embed" // the scripts
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/signalbox-dev/signalbox/lease"
)

// The scripts. shared.lua comes before each of the others.
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
)

// Store keeps leases in Redis.
type Store struct {
	client redis.UniversalClient
	own    bool // whether closing the store closes the client
	prefix string

	acquire, renew, resign, remove, read script
}

// script is one of the scripts, as text and as what Redis knows it by.
type script struct {
	text string
	*redis.Script
}

var _ lease.Store = (*Store)(nil)

// New makes a store on a client that stays the caller's: [Store.Close] leaves it open. The client should heed the deadlines of contexts
// (ContextTimeoutEnabled), and must not be a Ring, which moves keys to another server when one is away.
func New(client redis.UniversalClient, prefix string) (*Store, error) {
	if err := lease.CheckKey(prefix); err != nil {
		return nil, fmt.Errorf("redis: prefix %q: %w", prefix, err)
	}
	if _, ring := client.(*redis.Ring); ring {
		return nil, errors.New("redis: a ring grants a lease again when one of its servers is away")
	}
	load := func(text string) script {
		text = sharedLua + text
		return script{text: text, Script: redis.NewScript(text)}
	}
	return &Store{
		client: client, prefix: prefix,
		acquire: load(acquireLua), renew: load(renewLua), resign: load(resignLua), remove: load(deleteLua), read: load(readLua),
	}, nil
}

// Close closes the client that [Open] made.
func (s *Store) Close() error {
	if !s.own {
		return nil
	}
	return s.client.Close()
}

// Acquire is [lease.Store.Acquire].
func (s *Store) Acquire(ctx context.Context, key, holder string, value []byte, terms lease.Terms) (lease.Entry, *lease.Entry, error) {
	if err := lease.CheckAcquire(key, holder, value, terms); err != nil {
		return lease.Entry{}, nil, err
	}
	tried := lease.Entry{Key: key, Holder: holder, Token: lease.NewToken()}
	answer, err := s.run(ctx, s.acquire, key, holder, tried.Token, value, microseconds(terms.TTL), milliseconds(terms.Retention), s.channel(), key)
	if err != nil {
		return tried, nil, fmt.Errorf("acquire lease %q: %w", key, err)
	}
	got, err := answer.entry(key)
	if err != nil {
		return tried, nil, fmt.Errorf("acquire lease %q: %w", key, err)
	}
	if answer.is("held") {
		return lease.Entry{}, nil, &lease.HeldError{Entry: got}
	}
	before, err := answer.before(got)
	if err != nil {
		return tried, nil, fmt.Errorf("acquire lease %q: %w", key, err)
	}
	return got, before, nil
}

// Renew is [lease.Store.Renew].
func (s *Store) Renew(ctx context.Context, key, token string, value []byte, terms lease.Terms) (lease.Entry, error) {
	if err := lease.CheckRenew(key, value, terms); err != nil {
		return lease.Entry{}, err
	}
	replace := 0
	if value != nil {
		replace = 1
	}
	answer, err := s.run(ctx, s.renew, key, token, replace, value, microseconds(terms.TTL), milliseconds(terms.Retention))
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

// Resign is [lease.Store.Resign].
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

// Delete is [lease.Store.Delete].
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

// Get is [lease.Store.Get].
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

// run runs a script on the entry of a key: by its hash, and by its text where the server does not know it yet.
func (s *Store) run(ctx context.Context, run script, key string, args ...any) (answer, error) {
	return run.Run(ctx, s.client, []string{s.prefix + key}, args...).StringSlice()
}

func (s *Store) channel() string { return s.prefix + "changes" }

func microseconds(d time.Duration) int64 { return d.Microseconds() }

// milliseconds rounds up, since nothing may vanish early.
func milliseconds(d time.Duration) int64 { return (d + time.Millisecond - 1).Milliseconds() }
