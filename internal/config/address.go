package config

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// ListenViolation returns why text is not host:port, or "". Port 0 means any free port.
func ListenViolation(text string) string {
	_, port, err := net.SplitHostPort(text)
	if err != nil {
		if addr, ok := err.(*net.AddrError); ok { //nolint:errorlint // SplitHostPort documents this type and wraps nothing.
			return addr.Err
		}
		return err.Error()
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		return "the port is not a number from 0 to 65535"
	}
	return ""
}

// DialViolation returns why text is not an address to connect to, with a correction where one is likely, or "".
func DialViolation(text string) string {
	if scheme, rest, ok := strings.Cut(text, "://"); ok {
		if authority, _, _ := strings.Cut(rest, "/"); ListenViolation(authority) == "" {
			return fmt.Sprintf("it is a URL; write %s", authority) + tlsHint(scheme)
		}
		return "it is a URL; write the host and the port alone, for example 127.0.0.1:7233" + tlsHint(scheme)
	}
	host, port, err := net.SplitHostPort(text)
	bare := strings.Trim(text, "[]")
	switch ip, parseErr := netip.ParseAddr(bare); {
	case err != nil && parseErr == nil:
		return "the port is missing; write " + net.JoinHostPort(ip.String(), "7233")
	case err != nil && strings.Count(text, ":") > 1:
		if cut := strings.LastIndex(text, ":"); isIPv6(text[:cut]) {
			return "an IPv6 address needs brackets; write " + net.JoinHostPort(text[:cut], text[cut+1:])
		}
		return "it has too many colons; write for example 127.0.0.1:7233 or [::1]:7233"
	case err != nil && bare != "" && !strings.Contains(text, ":"):
		return "the port is missing; write " + bare + ":7233"
	case err != nil:
		return ListenViolation(text) + "; write for example 127.0.0.1:7233"
	case host == "" || strings.ContainsAny(host, " /\t"):
		return "it has no host; write for example 127.0.0.1:" + port
	}
	if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
		return fmt.Sprintf("the port %q is not a number from 1 to 65535; Temporal's is usually 7233", port)
	}
	return ""
}

// WebViolation returns why text is not the base address of web pages (http or https, without a query), or "".
func WebViolation(text string) string {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return "it cannot be parsed as a URL"
	case u.Scheme != "http" && u.Scheme != "https":
		return "it does not begin with http:// or https://"
	case u.Hostname() == "":
		return "it has no host"
	case u.User != nil:
		return "it contains a user name or password, which every viewer of a run would see"
	case u.RawQuery != "" || u.Fragment != "" || u.ForceQuery:
		return "it has a query or a fragment"
	}
	return ""
}

func isIPv6(text string) bool {
	ip, err := netip.ParseAddr(text)
	return err == nil && ip.Is6()
}

// tlsHint reminds of TLS where the correction removes https.
func tlsHint(scheme string) string {
	if scheme == "https" {
		return ", and turn TLS on with the keys of temporal.tls"
	}
	return ""
}

// IsLoopback reports whether only this machine can connect to the address (host:port).
func IsLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}

// IsLocalHost reports whether the Host header of a request names this machine. A page of another site can reach a
// loopback listener through a name that its owner resolves to this machine; the header then has that name.
func IsLocalHost(header string) bool {
	name := header
	if host, _, err := net.SplitHostPort(header); err == nil {
		name = host
	}
	name = strings.TrimSuffix(strings.Trim(name, "[]"), ".")
	if strings.EqualFold(name, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(name)
	return err == nil && ip.Unmap().IsLoopback()
}
