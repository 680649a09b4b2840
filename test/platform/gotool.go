package platform

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Go is a command of Go with the flags of all builds, so that what is compiled already is not compiled again.
func Go(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0", "GOFLAGS=-trimpath")
	return cmd
}

// BuildExample builds a program of the folder examples, for a test in a suite.
func BuildExample(t *testing.T, name string) (program string) {
	t.Helper()
	program = filepath.Join(t.TempDir(), name)
	build := Go(t, "build", "-o", program, "./examples/"+name)
	build.Dir = "../.."
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the example %s: %v\n%s", name, err, output)
	}
	return program
}
