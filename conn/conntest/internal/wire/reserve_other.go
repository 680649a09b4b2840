//go:build !linux

package wire

import (
	"errors"
	"net"
)

// reservation is empty: only the port number is kept, and listening on it again fails if another process has taken it
// meanwhile.
type reservation struct{}

func reserve() (reservation, *net.TCPAddr, error) {
	listener, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return reservation{}, nil, err
	}
	address, ok := listener.Addr().(*net.TCPAddr)
	if !ok {
		return reservation{}, nil, errors.New("the listener's address is not a TCP address")
	}
	return reservation{}, address, listener.Close()
}

func (reservation) release() error { return nil }
