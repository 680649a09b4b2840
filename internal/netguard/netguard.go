// Package netguard rejects connections to addresses that are not public, so that requests to addresses which users
// choose do not reach the platform's own network.
//
//	dialer := &net.Dialer{ControlContext: netguard.New(allowed).Control}
//
// It checks the address of the connection itself, after the resolution of names: a name cannot resolve to another
// address afterwards. It does not check ports, and does not limit redirects.
package netguard

import (
	"context"
	"encoding/binary"
	"fmt"
	"net/netip"
	"syscall"
)

// Guard rejects connections to addresses that are not public.
type Guard struct {
	allowed []netip.Prefix
	advice  string
}

// New returns a guard that permits these networks as well.
func New(allowed []netip.Prefix) Guard {
	return Guard{allowed, "an operator can allow its network in calls.allow_private"}
}

// Advise returns a guard whose errors say how a network is allowed.
func (g Guard) Advise(how string) Guard {
	g.advice = how
	return g
}

// Control is called for every socket, after resolution and before the connection: it checks the address of the
// connection itself.
func (g Guard) Control(_ context.Context, _, address string, _ syscall.RawConn) error {
	target, err := netip.ParseAddrPort(address)
	if err != nil {
		return &BlockedError{What: fmt.Sprintf("the address %q cannot be checked", address)}
	}
	if addr := target.Addr(); !g.Permits(addr) {
		return &BlockedError{
			What: fmt.Sprintf("the address %s is not public; %s", addr, g.advice),
		}
	}
	return nil
}

// Permits reports whether connections to an address are allowed.
func (g Guard) Permits(addr netip.Addr) bool {
	addr = addr.Unmap()
	for _, prefix := range g.allowed {
		if prefix.Contains(addr.WithZone("")) {
			return true
		}
	}
	if inner, ok := embedded(addr); ok {
		return g.Permits(inner)
	}
	return public(addr)
}

func public(addr netip.Addr) bool {
	if !addr.IsGlobalUnicast() || addr.IsPrivate() || addr.Zone() != "" {
		return false
	}
	for _, prefix := range reserved() {
		if prefix.Contains(addr) {
			return false
		}
	}
	return true
}

// reserved returns the prefixes that net/netip treats as global and the IANA special-purpose registries do not, and the
// one public address that belongs to a cloud's own control plane.
func reserved() []netip.Prefix {
	v4 := func(a, b, c, d byte, bits int) netip.Prefix {
		return netip.PrefixFrom(netip.AddrFrom4([4]byte{a, b, c, d}), bits)
	}
	v6 := func(a, b, c uint16, bits int) netip.Prefix {
		var raw [16]byte
		for i, group := range []uint16{a, b, c} {
			binary.BigEndian.PutUint16(raw[2*i:], group)
		}
		return netip.PrefixFrom(netip.AddrFrom16(raw), bits)
	}
	return []netip.Prefix{
		v4(0, 0, 0, 0, 8),        // this network
		v4(100, 64, 0, 0, 10),    // shared address space, cloud metadata among it
		v4(168, 63, 129, 16, 32), // Azure's host services
		v4(192, 0, 0, 0, 24),     // protocol assignments
		v4(192, 0, 2, 0, 24),     // documentation
		v4(192, 88, 99, 0, 24),   // 6to4 relays
		v4(198, 18, 0, 0, 15),    // benchmarking
		v4(198, 51, 100, 0, 24),  // documentation
		v4(203, 0, 113, 0, 24),   // documentation
		v4(240, 0, 0, 0, 4),      // reserved, broadcast
		v6(0, 0, 0, 96),          // IPv4-compatible
		v6(0x64, 0xff9b, 1, 48),  // local NAT64
		v6(0x100, 0, 0, 64),      // discard
		v6(0x2001, 0, 0, 23),     // protocol assignments, Teredo among them
		v6(0x2001, 0xdb8, 0, 32),
		v6(0x3fff, 0, 0, 20), // documentation
		v6(0x5f00, 0, 0, 16), // segment routing
		v6(0xfec0, 0, 0, 10), // site-local
	}
}

// embedded returns the IPv4 address to which a translated one (NAT64, 6to4) leads.
func embedded(addr netip.Addr) (netip.Addr, bool) {
	if !addr.Is6() {
		return netip.Addr{}, false
	}
	raw := addr.As16()
	switch {
	case [12]byte(raw[:12]) == [12]byte{0, 0x64, 0xff, 0x9b}:
		return netip.AddrFrom4([4]byte(raw[12:])), true
	case raw[0] == 0x20 && raw[1] == 0x02:
		return netip.AddrFrom4([4]byte(raw[2:6])), true
	}
	return netip.Addr{}, false
}

// BlockedError reports a connection or redirect that was not made.
type BlockedError struct{ What string }

// Error returns what was blocked, and the setting that allows it.
func (e *BlockedError) Error() string { return e.What }
