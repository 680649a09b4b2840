package process

import (
	"errors"
	"fmt"

	"github.com/signalbox-dev/signalbox/internal/sandbox/limit"
	"github.com/signalbox-dev/signalbox/internal/sandbox/output"
	"github.com/signalbox-dev/signalbox/internal/sandbox/proxy"
)

// Options configure a sandbox.
type Options struct {
	// Isolation is [Bubblewrap] or [None].
	Isolation string
	// Limits bound each command; all but Output and Time, which bound the context of Run, are needed. Without isolation,
	// Disk bounds each file, and commands have the network of this host in any case.
	Limits limit.Limits
	// Proxy serves the guarded networks of commands. nil: commands with one are not executed.
	Proxy *proxy.Proxy
}

// Isolations of commands.
const (
	Bubblewrap = "bubblewrap"
	None       = "none"
)

// Program is a command to execute.
type Program struct {
	// Command is a program, found in the folders of [Path], and its arguments.
	Command     []string
	Environment map[string]string
	Stdin       string
	// Limits are further limits of this command.
	Limits limit.Limits
	// Output is what the command prints. The context of Run ends where it is full.
	Output *output.Streams
}

// Errors of programs.
var (
	// ErrMemory ends a command that exceeded its memory.
	ErrMemory = errors.New("the program was ended, because it exceeded its memory")
	// ErrZero is the error of a command that has a zero byte.
	ErrZero = errors.New("an argument, a variable or the code has a zero byte")
	// ErrNetwork is the error of a command whose network must be restricted, without isolation.
	ErrNetwork = errors.New("its network must be restricted, and it would be executed without isolation")
	// ErrTooLarge is the error of a command whose argument or variable is larger than the system passes on.
	ErrTooLarge = fmt.Errorf("an argument, a variable or the code has more than %d bytes", maxArgument)
)

// maxArgument is the largest argument or variable that Linux passes to a program.
const maxArgument = 128<<10 - 1
