package lease_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/signalbox-dev/signalbox/lease"
)

// One process acquires a lease and keeps it while it works. A second process acquires it after the first one has
// resigned.
func Example() {
	ctx := context.Background()
	store := lease.NewMemory() // several processes share a redislease.Store instead
	lifetime := lease.Lifetime{TTL: 15 * time.Second, Retention: 10 * time.Minute}

	sent := time.Now()
	got, _, err := store.Acquire(ctx, "reports", "server-1", nil, lifetime)
	if err != nil {
		fmt.Println(err)
		return
	}
	hold := lease.Keep(ctx, store, got, sent, lease.KeepOptions{Interval: 5 * time.Second, Lifetime: lifetime})
	fmt.Println("server-1 holds the lease:", hold.Valid())
	if err := hold.Resign(ctx); err != nil {
		fmt.Println(err)
		return
	}
	<-hold.Done()
	fmt.Println("server-1:", hold.Err())

	next, before, err := store.Acquire(ctx, "reports", "server-2", nil, lifetime)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(next.Holder, "holds the lease, after", before.Holder, "has", before.State)
	// Output:
	// server-1 holds the lease: true
	// server-1: the lease was resigned
	// server-2 holds the lease, after server-1 has resigned
}

// HeldError has the entry of the lease in force: its holder, its value, and when to try again.
func ExampleHeldError() {
	ctx := context.Background()
	store := lease.NewMemory()
	lifetime := lease.Lifetime{TTL: 15 * time.Second, Retention: 10 * time.Minute}
	if _, _, err := store.Acquire(ctx, "reports", "server-1", []byte("10.0.0.1:7000"), lifetime); err != nil {
		fmt.Println(err)
		return
	}

	_, _, err := store.Acquire(ctx, "reports", "server-2", nil, lifetime)
	if held, ok := errors.AsType[*lease.HeldError](err); ok {
		fmt.Printf("%s at %s\n", held.Entry.Holder, held.Entry.Value)
		fmt.Println("try again within 15 s:", held.Entry.Remaining() <= lifetime.TTL)
	}
	// Output:
	// server-1 at 10.0.0.1:7000
	// try again within 15 s: true
}

// After an acquisition without an answer the outcome is unknown. The token of the attempt identifies the caller's own
// lease.
func ExampleKeep_lostAnswer() {
	ctx := context.Background()
	store := lease.NewMemory()
	lifetime := lease.Lifetime{TTL: 15 * time.Second, Retention: 10 * time.Minute}
	attempt, _, _ := store.Acquire(ctx, "reports", "server-1", nil, lifetime) // suppose that the answer was lost

	sent := time.Now()
	_, _, err := store.Acquire(ctx, "reports", "server-1", nil, lifetime)
	if held, ok := errors.AsType[*lease.HeldError](err); ok && held.Entry.Token == attempt.Token {
		hold := lease.Keep(ctx, store, held.Entry, sent, lease.KeepOptions{Interval: 5 * time.Second, Lifetime: lifetime})
		fmt.Println("kept:", hold.Valid())
		fmt.Println("resigned:", hold.Resign(ctx) == nil)
	}
	// Output:
	// kept: true
	// resigned: true
}

// Watch reports changed keys, so that another process can react before its next poll. Keys are hints and may be
// missing.
func ExampleMemory_Watch() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	store := lease.NewMemory()
	keys, err := store.Watch(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	lifetime := lease.Lifetime{TTL: 15 * time.Second, Retention: 10 * time.Minute}
	got, _, err := store.Acquire(ctx, "reports", "server-1", nil, lifetime)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("changed:", <-keys)
	if err := store.Resign(ctx, "reports", got.Token); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("changed:", <-keys)
	e, err := store.Get(ctx, "reports")
	fmt.Println(e.State, err)
	// Output:
	// changed: reports
	// changed: reports
	// resigned <nil>
}
