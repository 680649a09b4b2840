package redislease

import (
	"fmt"
	"strconv"
	"time"

	"github.com/signalbox-dev/signalbox/lease"
)

// answer is the result of a script: a word, in some cases followed by the server's time and the fields of one or two
// entries.
type answer []string

// fields is the number of fields of an entry, in the order of shared.lua.
const fields = 9

// fieldNames are the names of the fields, in the same order.
func fieldNames() []string {
	return []string{"holder", "token", "revision", "acquired", "renewed", "expires", "retention", "resigned", "value"}
}

// maxNumber is the largest number that the scripts take: beyond 2^52, adding one may change nothing.
const maxNumber = 1 << 52

func (a answer) is(word string) bool { return len(a) > 0 && a[0] == word }

// absence returns the error if the answer contains no entry.
func (a answer) absence(key string) error {
	switch {
	case a.is("none"):
		return lease.ErrNotFound
	case a.is("malformed") && len(a) == 2:
		return &lease.MalformedError{Key: key, Reason: a[1]}
	}
	return nil
}

// read returns the entry, or the error for its absence.
func (a answer) read(key string) (lease.Entry, error) {
	if err := a.absence(key); err != nil {
		return lease.Entry{}, err
	}
	return a.entry(key)
}

func (a answer) entry(key string) (lease.Entry, error) {
	if len(a) < 2+fields {
		return lease.Entry{}, fmt.Errorf("the script answered %q", a)
	}
	return parse(key, a[1], a[2:2+fields])
}

// before returns the entry that was replaced by got, nil if there was none. It was read at the time of the acquisition.
func (a answer) before(got lease.Entry) (*lease.Entry, error) {
	if len(a) != 2+2*fields {
		return nil, nil
	}
	e, err := parse(got.Key, strconv.FormatInt(got.AcquiredAt.UnixMicro(), 10), a[2+fields:])
	if err != nil {
		return nil, err
	}
	return &e, nil
}

// parse parses the fields of an entry. The script has validated them: an error means that another script answered.
func parse(key, now string, f []string) (lease.Entry, error) {
	var numbers [6]int64
	for i, text := range []string{now, f[2], f[3], f[4], f[5], f[7]} {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return lease.Entry{}, fmt.Errorf("the script answered with an invalid number: %w", err)
		}
		numbers[i] = n
	}
	e := lease.Entry{
		Key: key, Holder: f[0], Token: f[1], Revision: numbers[1], AcquiredAt: instant(numbers[2]),
		RenewedAt: instant(numbers[3]),
		ExpiresAt: instant(numbers[4]), ReadAt: instant(numbers[0]),
	}
	if value := f[8]; value != "" {
		e.Value = []byte(value)
	}
	e.State = lease.StateAt(e.ReadAt, e.ExpiresAt, numbers[5] != 0)
	return e, nil
}

// parseFields returns the entry with the fields of a hash, as of a time of the server's clock before they were read. It
// returns false for fields that the scripts do not accept, and for an entry that was written after that time.
func parseFields(key string, now time.Time, found []any) (lease.Entry, bool) {
	texts := make([]string, len(found))
	for i, value := range found {
		text, ok := value.(string)
		if !ok {
			return lease.Entry{}, false
		}
		texts[i] = text
	}
	if len(texts) != fields || texts[0] == "" || texts[1] == "" || lease.CheckKey(key) != nil {
		return lease.Entry{}, false
	}
	for _, text := range texts[2:8] {
		if n, err := strconv.ParseUint(text, 10, 64); err != nil || n > maxNumber {
			return lease.Entry{}, false
		}
	}
	e, err := parse(key, strconv.FormatInt(now.UnixMicro(), 10), texts)
	return e, err == nil && e.Revision <= now.UnixMicro() && !e.RenewedAt.After(now)
}

func instant(microseconds int64) time.Time { return time.UnixMicro(microseconds).UTC() }
