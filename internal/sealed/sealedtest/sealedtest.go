// Package sealedtest wraps stores for tests, as [sealed.Sealer] does in production, but hides nothing, so that a test
// reads what it has written.
//
//	rows := sealedtest.Rows(t, store)
//
// Its functions require a test, so that no program can use them.
package sealedtest

import (
	"context"
	"testing"

	"github.com/signalbox-dev/signalbox/internal/keyring"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/sealed"
)

// none is a store without runs.
type none struct{ run.SealedStore }

func (none) Secrecies(context.Context, []string) ([]run.Secrecy, error) { return nil, nil }

// NewSealer returns a sealer that hides nothing.
func NewSealer(t testing.TB) *sealed.Sealer {
	t.Helper()
	return sealed.New(keyring.Random("test").Opening(), none{}, nil)
}

// Rows returns a store of plain runs over a store of sealed ones.
func Rows(t testing.TB, below sealed.Store) *sealed.Rows {
	t.Helper()
	return NewSealer(t).Rows(below)
}
