// Package freeport finds free loopback ports for servers that open their port later by themselves.
//
// A free port may be taken before the server opens it: by an outgoing connection, to which the kernel assigns any port
// of its ephemeral range, or by another search at the same moment. So the ports are below that range, and Claim
// reserves the UDP port of the same number, which keeps other callers of Claim from getting the port.
package freeport

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

const (
	host = "127.0.0.1"
	// first and count define the range of the ports. Linux assigns ports from 32768 up to outgoing connections, other
	// systems higher ones.
	first = 10000
	count = 20000
	tries = 200
)

// Claim returns a port of 127.0.0.1 without a listener. No other caller gets it before release is called.
func Claim(ctx context.Context) (port int, release func(), err error) {
	var last error
	for range tries {
		port := first + rand.IntN(count) //nolint:gosec // any port will do
		if release, last = claim(ctx, port); last == nil {
			return port, release, nil
		}
	}
	return 0, nil, fmt.Errorf("no free port on %s after %d tries: %w", host, tries, last)
}

func claim(ctx context.Context, port int) (release func(), err error) {
	var config net.ListenConfig
	address := net.JoinHostPort(host, strconv.Itoa(port))
	twin, err := config.ListenPacket(ctx, "udp", address)
	if err != nil {
		return nil, err
	}
	listener, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, errors.Join(err, twin.Close())
	}
	if err := listener.Close(); err != nil {
		return nil, errors.Join(err, twin.Close())
	}
	return func() { _ = twin.Close() }, nil
}
