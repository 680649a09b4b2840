package netguard_test

import (
	"errors"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/netguard"
)

// TestOnlyPublicAddressesArePermitted has the first and the last address of each reserved network, and the public ones
// beside it.
func TestOnlyPublicAddressesArePermitted(t *testing.T) {
	t.Parallel()
	refused := []string{
		// private
		"127.0.0.1", "::1", "0.0.0.0", "::", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.0.1", "fc00::1", "fdff::1",
		"169.254.169.254", "fe80::1", "fe80::1%eth0", "224.0.0.1", "ff02::1", // link-local and multicast
		"2606:4700::1%eth0", // a zone belongs to a link
		"0.0.0.1", "0.255.255.255", "100.64.0.0", "100.127.255.255", "168.63.129.16", "192.0.0.0", "192.0.0.255", "192.0.2.0",
		"192.0.2.255",
		"192.88.99.0", "192.88.99.255", "198.18.0.0", "198.19.255.255", "198.51.100.0", "198.51.100.255", "203.0.113.0",
		"203.0.113.255",
		"240.0.0.0", "255.255.255.255",
		"::2", "::ffff:ffff", "64:ff9b:1::", "64:ff9b:1:ffff:ffff:ffff:ffff:ffff", "100::", "100::ffff:ffff:ffff:ffff",
		"2001::", "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff", "2001:db8::", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff",
		"3fff::", "3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff", "5f00::", "5f00:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
		"fec0::", "feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
		"::ffff:127.0.0.1", "::ffff:10.0.0.1", // IPv4 in IPv6
		"64:ff9b::127.0.0.1", "64:ff9b::10.1.2.3", "2002:7f00:1::", "2002:a00:1::1", // what NAT64 and 6to4 lead to
	}
	for _, address := range refused {
		require.False(t, netguard.New(nil).Permits(netip.MustParseAddr(address)), address)
	}
	permitted := []string{
		"1.0.0.0", "8.8.8.8", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "168.63.129.15", "168.63.129.17",
		"172.15.255.255", "172.32.0.0", "191.255.255.255", "192.0.1.0", "192.0.3.0", "192.88.98.255", "192.88.100.0",
		"198.17.255.255", "198.20.0.0",
		"198.51.99.255", "198.51.101.0", "203.0.112.255", "203.0.114.0",
		"64:ff9b:2::1", "100:0:0:1::", "2001:200::", "2001:db7:ffff::1", "2001:db9::", "2606:4700:4700::1111", "3fff:1000::",
		"5eff::1", "5f01::",
		"::ffff:8.8.8.8", "64:ff9b::8.8.8.8", "2002:808:808::1",
	}
	for _, address := range permitted {
		require.True(t, netguard.New(nil).Permits(netip.MustParseAddr(address)), address)
	}
}

// TestAllowedNetworksArePermitted has networks that an operator allows: directly, as IPv4 in IPv6, with a zone, and
// behind a translation.
func TestAllowedNetworksArePermitted(t *testing.T) {
	t.Parallel()
	g := netguard.New([]netip.Prefix{
		netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("fe80::/64"),
		netip.MustParsePrefix("64:ff9b::a02:0/112")})
	for address, permitted := range map[string]bool{
		"10.1.0.0": true, "10.1.255.255": true, "10.0.255.255": false, "10.2.0.0": false, "192.168.0.1": false,
		"8.8.8.8":         true,
		"::ffff:10.1.2.3": true, "::ffff:10.2.2.3": false, "64:ff9b::10.1.2.3": true, "2002:a01:1::": true,
		"2002:a03:1::": false,
		"fe80::1":      true, "fe80::1%eth0": true, "fe80:0:0:1::1%eth0": false,
		"64:ff9b::10.2.0.1": true, // the address itself is allowed, although what it leads to is not
	} {
		require.Equal(t, permitted, g.Permits(netip.MustParseAddr(address)), address)
	}
}

// TestControlChecksTheAddressOfTheSocket verifies the function that a dialer calls.
func TestControlChecksTheAddressOfTheSocket(t *testing.T) {
	t.Parallel()
	g := netguard.New([]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")})
	for _, address := range []string{"8.8.8.8:443", "127.0.0.1:80", "[2606:4700::1]:443"} {
		require.NoError(t, g.Control(t.Context(), "tcp", address, nil), address)
	}
	for address, text := range map[string]string{
		"10.0.0.1:443": "the address 10.0.0.1 is not public; an operator can allow its network in calls.allow_private",
		"[::1]:80":     "the address ::1 is not public; an operator can allow its network in calls.allow_private",
		"localhost:80": `the address "localhost:80" cannot be checked`,
		"8.8.8.8":      `the address "8.8.8.8" cannot be checked`,
	} {
		err := g.Control(t.Context(), "tcp", address, nil)
		require.EqualError(t, err, text)
		blocked, ok := errors.AsType[*netguard.BlockedError](err)
		require.True(t, ok)
		require.Equal(t, text, blocked.What)
	}
}
