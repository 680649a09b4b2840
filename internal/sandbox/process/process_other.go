//go:build !linux || !(amd64 || arm64)

// Package process executes commands on this host. Hosts other than Linux on amd64 and arm64 have no isolation for them.
package process

import (
	"context"
	"errors"
)

// Path has the folders in which programs are found.
const Path = ""

var errSystem = errors.New("only Linux on amd64 and arm64 can isolate commands")

// Sandbox executes no commands.
type Sandbox struct{}

// New returns an error.
func New(context.Context, Options) (*Sandbox, error) { return nil, errSystem }

// Groups reports that there are none.
func (*Sandbox) Groups() (bool, string) { return false, errSystem.Error() }

// Isolation returns none.
func (*Sandbox) Isolation() string { return None }

// Has reports that there is no program.
func (*Sandbox) Has(string) bool { return false }

// Try returns an error.
func (*Sandbox) Try(context.Context, ...string) error { return errSystem }

// Run returns an error.
func (*Sandbox) Run(context.Context, Program) (int, error) { return 0, errSystem }
