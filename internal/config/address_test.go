package config_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/config"
)

// Wrong addresses, and the correction that the violation proposes.
func TestAddressesOfTemporal(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                           "write for example 127.0.0.1:7233",
		"temporal":                   "the port is missing; write temporal:7233",
		"temporal:":                  "the port \"\" is not a number from 1 to 65535",
		"temporal:0":                 "the port \"0\" is not a number from 1 to 65535",
		"temporal:65536":             "Temporal's is usually 7233",
		"temporal:grpc":              "the port \"grpc\" is not a number",
		":7233":                      "it has no host; write for example 127.0.0.1:7233",
		"my host:7233":               "it has no host",
		"http://temporal:7233":       "it is a URL; write temporal:7233",
		"https://temporal:7233/path": "it is a URL; write temporal:7233, and turn TLS on with the keys of temporal.tls",
		"https://temporal":           "it is a URL; write the host and the port alone",
		"dns:///temporal:7233":       "it is a URL",
		"::1":                        "the port is missing; write [::1]:7233",
		"[::1]":                      "the port is missing; write [::1]:7233",
		"fe80::1:2:3:7233":           "write [fe80::1:2:3:7233]:7233",
		"1:2:3:4:5:6:7:8:7233":       "an IPv6 address needs brackets; write [1:2:3:4:5:6:7:8]:7233",
		"a:b:c":                      "it has too many colons; write for example 127.0.0.1:7233 or [::1]:7233",
	} {
		require.Contains(t, config.DialViolation(text), want, text)
	}
	for _, text := range []string{
		"temporal:7233", "127.0.0.1:1", "[::1]:7233", "[fe80::1%eth0]:7233", "a.b.example:65535"} {
		require.Empty(t, config.DialViolation(text), text)
	}
}

func TestListening(t *testing.T) {
	t.Parallel()
	for _, text := range []string{":0", "127.0.0.1:8080", "[::]:8080", "localhost:65535"} {
		require.Empty(t, config.ListenViolation(text), text)
	}
	require.Equal(t, "missing port in address", config.ListenViolation("everywhere"))
	require.Equal(t, "the port is not a number from 0 to 65535", config.ListenViolation("a:-1"))
	require.Equal(t, "the port is not a number from 0 to 65535", config.ListenViolation("a:65536"))
}

func TestLoopback(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"127.0.0.1:1": true, "127.8.8.8:1": true, "[::1]:1": true, "localhost:1": true,
		":8080": false, "0.0.0.0:1": false, "[::]:1": false, "10.0.0.1:1": false, "example.com:1": false, "127.0.0.1": false,
	} {
		require.Equal(t, want, config.IsLoopback(text), text)
	}
}

func TestWebAddresses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"localhost:8233":             "does not begin with http",
		"temporal.example":           "does not begin with http",
		"ftp://temporal":             "does not begin with http",
		"http://":                    "has no host",
		"http://:8233":               "has no host",
		"http://a b":                 "cannot be parsed",
		"http://ada:secret@temporal": "user name or password",
		"http://temporal?x=1":        "a query",
		"http://temporal/#/runs":     "a fragment",
	} {
		require.Contains(t, config.WebViolation(text), want, text)
	}
	for _, text := range []string{"http://localhost:8233", "https://temporal.example/ui/", "http://[::1]:8233"} {
		require.Empty(t, config.WebViolation(text), text)
	}
}

func TestHostsOfThisMachine(t *testing.T) {
	t.Parallel()
	for _, own := range []string{
		"localhost", "LOCALHOST:80", "localhost.", "127.0.0.1", "127.9.9.9:80", "[::1]:80", "::1", "[::1]",
		"[::ffff:127.0.0.1]:80"} {
		require.True(t, config.IsLocalHost(own), own)
	}
	for _, other := range []string{
		"", "example.com", "localhost.example.com:80", "10.0.0.1:80", "127.0.0.1.example.com", "[2001:db8::1]:80"} {
		require.False(t, config.IsLocalHost(other), other)
	}
}
