// Package freeport finds loopback ports for servers that open their port by themselves and later.
//
// A port that was free a moment ago may be taken by then: by an outgoing connection, to which the kernel gives any port of its
// range, or by somebody who looked for one in the same moment. So ports come from below that range, and whoever looks for one
// here holds its twin among the ports of UDP, which keeps others from being given the same.
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
	// first and count are the ports to choose from. Linux gives those from 32768 on to outgoing connections, others higher ones.
	first = 10000
	count = 20000
	tries = 200
)

// Claim returns a port of 127.0.0.1 on which nobody listens. Nobody else is given it before release is called.
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
