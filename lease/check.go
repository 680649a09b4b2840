package lease

import (
	"crypto/rand"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// maxRetention is the maximum duration: beyond it, sums of times could exceed the numbers that stores calculate with.
const maxRetention = 10 * 365 * 24 * time.Hour

// CheckAcquire validates an acquisition. The error is [ErrInvalid]. Every store calls it first, so that all stores
// refuse the same requests.
func CheckAcquire(key, holder string, value []byte, lifetime Lifetime) error {
	if err := CheckKey(key); err != nil {
		return err
	}
	if err := checkName("holder", holder, MaxHolder); err != nil {
		return err
	}
	return checkContent(value, lifetime)
}

// CheckRenew validates a renewal. Any token is valid: the lease of an unknown token is lost.
func CheckRenew(key string, value []byte, lifetime Lifetime) error {
	if err := CheckKey(key); err != nil {
		return err
	}
	return checkContent(value, lifetime)
}

// CheckKey validates a request that has only a key.
func CheckKey(key string) error { return checkName("key", key, MaxKey) }

func checkName(what, name string, limit int) error {
	switch {
	case name == "":
		return fmt.Errorf("%w: the %s is empty", ErrInvalid, what)
	case len(name) > limit:
		return fmt.Errorf("%w: the %s has %d bytes, more than %d", ErrInvalid, what, len(name), limit)
	case !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl):
		return fmt.Errorf("%w: the %s %q is not printable text", ErrInvalid, what, name)
	}
	return nil
}

func checkContent(value []byte, lifetime Lifetime) error {
	switch {
	case len(value) > MaxValue:
		return fmt.Errorf("%w: the value has %d bytes, more than %d", ErrInvalid, len(value), MaxValue)
	case lifetime.TTL < time.Millisecond:
		return fmt.Errorf("%w: a TTL of %s is less than a millisecond", ErrInvalid, lifetime.TTL)
	case lifetime.Retention < lifetime.TTL:
		return fmt.Errorf("%w: the retention of %s is shorter than the TTL of %s", ErrInvalid, lifetime.Retention,
			lifetime.TTL)
	case lifetime.Retention > maxRetention:
		return fmt.Errorf("%w: the retention of %s is longer than %s", ErrInvalid, lifetime.Retention, maxRetention)
	}
	return nil
}

// NewToken returns the token of an acquisition: at least 128 random bits, as text.
func NewToken() string { return rand.Text() }
