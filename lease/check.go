package lease

import (
	"crypto/rand"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Longest of the terms: beyond it, sums of times no longer fit what stores calculate with.
const maxTerm = 10 * 365 * 24 * time.Hour

// CheckAcquire says why no store takes such an acquisition: an error that is [ErrInvalid], or nil. A store calls it before
// anything else, so that all of them refuse the same.
func CheckAcquire(key, holder string, value []byte, terms Terms) error {
	if err := CheckKey(key); err != nil {
		return err
	}
	if err := checkName("holder", holder, MaxHolder); err != nil {
		return err
	}
	return checkContent(value, terms)
}

// CheckRenew does the same for a renewal. Any token is taken: one that never was is lost.
func CheckRenew(key string, value []byte, terms Terms) error {
	if err := CheckKey(key); err != nil {
		return err
	}
	return checkContent(value, terms)
}

// CheckKey does the same for what has a key only.
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

func checkContent(value []byte, terms Terms) error {
	switch {
	case len(value) > MaxValue:
		return fmt.Errorf("%w: the value has %d bytes, more than %d", ErrInvalid, len(value), MaxValue)
	case terms.TTL < time.Millisecond:
		return fmt.Errorf("%w: a TTL of %s is less than a millisecond", ErrInvalid, terms.TTL)
	case terms.Retention < terms.TTL:
		return fmt.Errorf("%w: the retention of %s is shorter than the TTL of %s", ErrInvalid, terms.Retention, terms.TTL)
	case terms.Retention > maxTerm:
		return fmt.Errorf("%w: the retention of %s is longer than %s", ErrInvalid, terms.Retention, maxTerm)
	}
	return nil
}

// NewToken makes the token of an acquisition: at least 128 random bits, as text.
func NewToken() string { return rand.Text() }
