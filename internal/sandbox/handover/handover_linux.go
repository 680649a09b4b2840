package handover

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// failed is the exit code of a process that did not become the command, as that of shells.
const failed = 126

// Begin is the begin of the main function of a program whose sandboxes have guarded networks. It returns at once,
// except in the process that begins in the network of a command.
func Begin() {
	if filepath.Base(os.Args[0]) != Program {
		return
	}
	err := errors.New("its arguments are a socket and a command")
	if len(os.Args) > 2 { //nolint:mnd // see err
		err = begin(os.Args[1], os.Args[2:])
	}
	fmt.Fprintln(os.Stderr, "preparing the network of a program:", err)
	os.Exit(failed)
}

// begin hands the listener over, and becomes the command.
func begin(socket string, command []string) error {
	runtime.LockOSThread() // capabilities are those of a thread
	connection, err := connect(socket)
	if err != nil {
		return err
	}
	path, err := exec.LookPath(command[0])
	if err != nil {
		_, _ = fmt.Fprintf(connection, "%.*s", maxReason, err) // the error is printed as well
		return err
	}
	if socket == Inherited {
		if err := enableLoopback(); err != nil {
			return err
		}
	}
	if err := send(connection); err != nil {
		return err
	}
	// The command gets none of the capabilities of this process.
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fmt.Errorf("dropping capabilities: %w", err)
	}
	return syscall.Exec(path, command, os.Environ())
}

// connect returns the connection to the process that serves the proxy.
func connect(socket string) (*net.UnixConn, error) {
	if socket != Inherited {
		return net.DialUnix("unix", nil, &net.UnixAddr{Name: socket, Net: "unix"})
	}
	file := os.NewFile(File, "network")
	defer func() { _ = file.Close() }() // the connection has a copy
	connection, err := net.FileConn(file)
	if err != nil {
		return nil, err
	}
	return connection.(*net.UnixConn), nil //nolint:forcetypeassert // it is one
}

func enableLoopback() error {
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
	return nil
}

// send opens the listener, and sends it until it is received.
func send(connection *net.UnixConn) error {
	listener, err := net.Listen("tcp", Address)
	if err != nil {
		return err
	}
	file, err := listener.(*net.TCPListener).File() //nolint:forcetypeassert // it listens on TCP
	if err != nil {
		return err
	}
	if _, _, err := connection.WriteMsgUnix([]byte{0}, unix.UnixRights(int(file.Fd())), nil); err != nil {
		return fmt.Errorf("sending the listener: %w", err)
	}
	if _, err := connection.Read(make([]byte, 1)); err != nil {
		return fmt.Errorf("waiting until the listener is received: %w", err)
	}
	return nil
}

func receive(connection *net.UnixConn) (net.Listener, error) {
	data, rights := make([]byte, maxReason), make([]byte, unix.CmsgSpace(4)) //nolint:mnd // the size of a descriptor
	n, size, _, _, err := connection.ReadMsgUnix(data, rights)
	if err != nil {
		return nil, err
	}
	messages, err := unix.ParseSocketControlMessage(rights[:size])
	if err != nil {
		return nil, err
	}
	if len(messages) == 0 {
		return nil, &Refusal{string(data[:n])}
	}
	descriptors, err := unix.ParseUnixRights(&messages[0])
	if err != nil {
		return nil, err
	}
	unix.CloseOnExec(descriptors[0])
	file := os.NewFile(uintptr(descriptors[0]), "listener")
	defer func() { _ = file.Close() }() // the listener has a copy
	listener, err := net.FileListener(file)
	if err != nil {
		return nil, err
	}
	if _, err := connection.Write([]byte{0}); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return listener, nil
}
