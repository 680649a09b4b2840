package secret

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"time"
)

// exitMissing is the exit status for a secret that does not exist.
const exitMissing = 3

// waitDelay is how long a killed program may keep its output open.
const waitDelay = time.Second

// program runs a program of the operator: COMMAND… PROJECT NAME. The program writes the value to its standard output.
// Its standard error is never shown, because it may quote the value.
type program struct {
	command []string
	timeout time.Duration
}

func (p program) String() string { return "secrets.command" }

func (p program) Resolve(ctx context.Context, project, name string) (Value, error) {
	if !plainName(project) || !plainName(name) {
		return nil, fmt.Errorf("the secret %q: %w", name, ErrMissing)
	}
	bounded, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	args := append(slices.Clone(p.command[1:]), project, name)
	cmd := exec.CommandContext(bounded, p.command[0], //nolint:gosec // the operator's own program; names are checked above
		args...)
	cmd.Env, cmd.WaitDelay = os.Environ(), waitDelay
	out := limited{left: MaxBytes + 2}
	cmd.Stdout = &out
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return trimmed(out.Bytes()), nil
	case ctx.Err() != nil:
		return nil, fmt.Errorf("ask secrets.command for the secret %q: %w", name, ctx.Err())
	case bounded.Err() != nil:
		return nil, fmt.Errorf("secrets.command did not give the secret %q within %s", name, p.timeout)
	case errors.As(err, &exit) && exit.ExitCode() == exitMissing:
		return nil, fmt.Errorf("the secret %q: %w", name, ErrMissing)
	case errors.As(err, &exit):
		return nil, fmt.Errorf("secrets.command failed for the secret %q with status %d", name, exit.ExitCode())
	}
	return nil, fmt.Errorf("run secrets.command for the secret %q: %w", name, err)
}

// limited keeps the beginning of its input.
type limited struct {
	bytes.Buffer
	left int
}

func (l *limited) Write(p []byte) (int, error) {
	kept := p[:min(len(p), l.left)]
	l.left -= len(kept)
	_, _ = l.Buffer.Write(kept) // never fails
	return len(p), nil
}
