//go:build linux && (amd64 || arm64)

package process

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/signalbox-dev/signalbox/internal/sandbox/handover"
)

// guard makes the command begin as the process that prepares its network, in namespaces of its own. The file is the end
// of the connection that the process gets.
func (x *execution) guard() (*os.File, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("connecting to the process of the network: %w", err)
	}
	theirs := os.NewFile(uintptr(pair[1]), "network")
	x.files = append(x.files, theirs)
	ours := os.NewFile(uintptr(pair[0]), "network")
	connection, err := net.FileConn(ours)
	_ = ours.Close() // the connection has a copy
	if err != nil {
		return nil, err
	}
	x.network = connection.(*net.UnixConn) //nolint:forcetypeassert // it is one

	x.cmd.Args = append([]string{handover.Program, handover.Inherited, x.cmd.Path}, x.cmd.Args[1:]...)
	x.cmd.Path = "/proc/self/exe"
	user, group := os.Geteuid(), os.Getegid()
	attributes := x.cmd.SysProcAttr
	if user == 0 {
		user, group = nobody, nobody
		attributes.GidMappingsEnableSetgroups = true // the process drops the groups of root
	}
	attributes.Cloneflags = unix.CLONE_NEWUSER | unix.CLONE_NEWNET
	attributes.UidMappings = []syscall.SysProcIDMap{{ContainerID: user, HostID: user, Size: 1}}
	attributes.GidMappings = []syscall.SysProcIDMap{{ContainerID: group, HostID: group, Size: 1}}
	attributes.AmbientCaps = []uintptr{unix.CAP_NET_ADMIN}
	return theirs, nil
}

// serve receives the listener of the process that prepares the network, and serves it.
func (x *execution) serve(ctx context.Context) error {
	if x.network == nil {
		return nil
	}
	defer func() { _ = x.network.Close() }() // it was read
	stop := context.AfterFunc(ctx, func() { _ = x.network.Close() })
	defer stop()
	_ = x.files[len(x.files)-1].Close() // the process has it; otherwise its end would not be seen
	listener, err := handover.Receive(x.network)
	if err != nil {
		_, stderr := x.program.Output.Text()
		return errors.Join(errors.New("the network of a program was not prepared: "+strconv.Quote(stderr)), err)
	}
	x.stopProxy = x.sandbox.opts.Proxy.Serve(ctx, listener)
	return nil
}
