package process

import (
	"errors"
	"fmt"

	"github.com/signalbox-dev/signalbox/internal/sandbox/output"
)

// Options configure a sandbox.
type Options struct {
	// Isolation is [Bubblewrap] or [None].
	Isolation string
	// Memory bounds the memory of a command, in bytes.
	Memory int64
	// Processes bounds the processes and threads of a command.
	Processes int
	// Processors bounds the processor time of a command, in processors.
	Processors int
	// Disk bounds the files that a command writes, in bytes. Without isolation it bounds each file.
	Disk int64
	// Network gives commands the network of this host. Without isolation they have it in any case.
	Network bool
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
	// Output is what the command prints. The context of Run ends where it is full.
	Output *output.Streams
}

// Errors of programs.
var (
	// ErrMemory ends a command that exceeded its memory.
	ErrMemory = errors.New("the program was ended, because it exceeded its memory")
	// ErrZero is the error of a command that has a zero byte.
	ErrZero = errors.New("an argument, a variable or the code has a zero byte")
	// ErrTooLarge is the error of a command whose argument or variable is larger than the system passes on.
	ErrTooLarge = fmt.Errorf("an argument, a variable or the code has more than %d bytes", maxArgument)
)

// maxArgument is the largest argument or variable that Linux passes to a program.
const maxArgument = 128<<10 - 1
