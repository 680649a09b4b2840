//go:build linux && (amd64 || arm64)

package process

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	// networkProcess is the name of this program as the process that prepares the network of one command.
	networkProcess = "signalbox-program-network"
	// proxyAddress is where a command with a guarded network finds its proxy.
	proxyAddress = "127.0.0.1:3128"
	// proxyFiles is where the process sends its listener.
	proxyFiles = 7
)

// proxyVariables are the variables of commands with a guarded network.
func proxyVariables() map[string]string {
	variables := map[string]string{"NO_PROXY": "localhost,127.0.0.1", "no_proxy": "localhost,127.0.0.1"}
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"} {
		variables[name] = "http://" + proxyAddress
	}
	return variables
}

// PrepareNetwork is the begin of the main function of a program that uses a sandbox: the sandbox executes the program
// itself as the process that prepares the guarded network of a command. In any other process it returns at once.
//
// That process begins in a network namespace of its own. It opens the listener of the proxy there, sends it to the
// process that started it, and becomes the command in its arguments.
func PrepareNetwork() {
	if os.Args[0] != networkProcess {
		return
	}
	err := prepareNetwork(os.Args[1:])
	fmt.Fprintln(os.Stderr, "preparing the network of a program:", err)
	os.Exit(1)
}

func prepareNetwork(command []string) error {
	runtime.LockOSThread() // capabilities are those of a thread
	loopback, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("opening a socket: %w", err)
	}
	loopback.SetUint16(unix.IFF_UP)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, loopback); err != nil {
		return fmt.Errorf("enabling the loopback interface: %w", err)
	}
	listener, err := net.Listen("tcp", proxyAddress)
	if err != nil {
		return err
	}
	file, err := listener.(*net.TCPListener).File() //nolint:forcetypeassert // it listens on TCP
	if err != nil {
		return err
	}
	unix.CloseOnExec(proxyFiles)
	if err := unix.Sendmsg(proxyFiles, []byte{0}, unix.UnixRights(int(file.Fd())), nil, 0); err != nil {
		return fmt.Errorf("sending the listener: %w", err)
	}
	// The command gets none of the capabilities of this process.
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fmt.Errorf("dropping capabilities: %w", err)
	}
	return syscall.Exec(command[0], command, os.Environ())
}

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

	x.cmd.Args = append([]string{networkProcess, x.cmd.Path}, x.cmd.Args[1:]...)
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
	_ = x.files[len(x.files)-1].Close()                              // the process has it; otherwise its end would not be seen
	data, rights := make([]byte, 1), make([]byte, unix.CmsgSpace(4)) //nolint:mnd // the size of a descriptor
	_, n, _, _, err := x.network.ReadMsgUnix(data, rights)
	if err != nil {
		_, stderr := x.program.Output.Text()
		return errors.Join(errors.New("the network of a program was not prepared: "+strconv.Quote(stderr)), err)
	}
	messages, err := unix.ParseSocketControlMessage(rights[:n])
	if err != nil || len(messages) == 0 {
		return errors.Join(errors.New("the network of a program has no listener"), err)
	}
	descriptors, err := unix.ParseUnixRights(&messages[0])
	if err != nil {
		return err
	}
	unix.CloseOnExec(descriptors[0])
	file := os.NewFile(uintptr(descriptors[0]), "listener")
	defer func() { _ = file.Close() }() // the listener has a copy
	listener, err := net.FileListener(file)
	if err != nil {
		return err
	}
	x.stopProxy = x.sandbox.opts.Proxy.Serve(ctx, listener)
	return nil
}
