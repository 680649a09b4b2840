// Package conformance_test runs scenarios on the real platform: those of the specification's conformance kit, verbatim,
// and our own in the same form, in testdata. The services that they call are stand-ins in this process, at the names and
// ports that the scenarios have, with certificates of an authority that the server trusts.
//
// The tests run in namespaces of their own, for users, mounts and the network, where these names lead to the loopback
// interface and nothing else can be reached. Where the system permits no namespaces they are skipped, and print why.
//
// SIGNALBOX_CONFORMANCE_PAGE=1 writes the tables of docs/conformance.md.
package conformance_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/signalbox-dev/signalbox/test/platform"
)

// isolated is set in the process that runs the tests.
const isolated = "SIGNALBOX_CONFORMANCE_ISOLATED"

func TestMain(m *testing.M) {
	if os.Getenv(isolated) == "" {
		os.Exit(inNamespaces())
	}
	if err := setUpNamespaces(); err != nil {
		fmt.Fprintln(os.Stderr, "no test runs:", err)
		os.Exit(1)
	}
	os.Exit(platform.MainParallel(m, 8, func(s *platform.Suite) { shared = platform.Share(s, newStack) }))
}

// inNamespaces runs this program again, in namespaces of its own, and returns its exit code.
func inNamespaces() int {
	path, err := os.Executable()
	if err != nil {
		fmt.Fprintln(os.Stderr, "no test runs:", err)
		return 1
	}
	cmd := exec.Command(path, os.Args[1:]...) //nolint:noctx // it ends with the tests
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), isolated+"=1")
	cmd.SysProcAttr = namespaces()
	if cmd.SysProcAttr == nil {
		fmt.Fprintln(os.Stderr, "skipped: these tests need the namespaces of Linux")
		return 0
	}
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, "skipped: the system permits no namespaces:", err)
		return 0
	}
	if err := cmd.Wait(); err != nil {
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			return exit.ExitCode()
		}
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}
