// Package vaulttest gives tests of stores what production has from a vault with keys: rows that may be written.
//
//	rows := vaulttest.Rows(t, store)
//
// Nothing in them is hidden, so that a test finds again what it has written. It takes the test that it is for, and no program links it.
package vaulttest

import (
	"context"
	"testing"

	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/vault"
	"github.com/signalbox-dev/signalbox/internal/seal"
)

// none is a store without runs.
type none struct{ run.SealedStore }

func (none) Secrecies(context.Context, []string) ([]run.Secrecy, error) { return nil, nil }

// Vault is one that hides nothing.
func Vault(t testing.TB) *vault.Vault {
	t.Helper()
	return vault.New(seal.Random("test").Opening(), none{}, nil)
}

// Rows are those of a store, as the domain writes them.
func Rows(t testing.TB, below vault.Store) *vault.Rows {
	t.Helper()
	return Vault(t).Rows(below)
}
