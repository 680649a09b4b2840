package wire

import (
	"net"
	"os"
	"syscall"
)

// reservation is a socket that is bound to the port and never listens, so connections are refused. It keeps the kernel
// from assigning the port to another process. A listener can be bound to the same port, since both sockets set
// SO_REUSEADDR.
type reservation int

func reserve() (reservation, *net.TCPAddr, error) {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, nil, os.NewSyscallError("socket", err)
	}
	port, err := bind(fd)
	if err != nil {
		_ = syscall.Close(fd)
		return 0, nil, err
	}
	return reservation(fd), &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port}, nil
}

func bind(fd int) (int, error) {
	if err := syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1); err != nil {
		return 0, os.NewSyscallError("setsockopt", err)
	}
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return 0, os.NewSyscallError("bind", err)
	}
	name, err := syscall.Getsockname(fd)
	if err != nil {
		return 0, os.NewSyscallError("getsockname", err)
	}
	bound, ok := name.(*syscall.SockaddrInet4)
	if !ok {
		return 0, os.NewSyscallError("getsockname", syscall.EAFNOSUPPORT)
	}
	return bound.Port, nil
}

func (r reservation) release() error { return os.NewSyscallError("close", syscall.Close(int(r))) }
