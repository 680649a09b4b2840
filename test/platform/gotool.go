package platform

import (
	"os"
	"os/exec"
	"testing"
)

// Go is a command of Go with the flags of all builds, so that what is compiled already is not compiled again.
func Go(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0", "GOFLAGS=-trimpath")
	return cmd
}
