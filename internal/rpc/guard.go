package rpc

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"

	"connectrpc.com/connect"

	"github.com/signalbox-dev/signalbox/internal/rpc/fail"
	"github.com/signalbox-dev/signalbox/internal/rpc/reason"
)

// guard keeps web pages out of a listener that is open to this machine alone. A browser on this machine can reach it too,
// on behalf of any page: by a name that the page's owner points here (the Host header then names it), or by posting
// across origins (the Origin header or Sec-Fetch-Site tells).
func guard(next http.Handler) http.Handler {
	crossOrigin := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !isLocalHost(r.Host) {
			fail.Write(w, r, fail.New(connect.CodePermissionDenied, reason.ForeignHost,
				fmt.Sprintf("host %q is not this machine: use 127.0.0.1 or localhost", r.Host)))
			return
		}
		if origin := r.Header.Get("Origin"); !sameOrigin(origin, r.Host) || crossOrigin.Check(r) != nil {
			fail.Write(w, r, fail.New(connect.CodePermissionDenied, reason.CrossOrigin,
				fmt.Sprintf("a page of another origin (%q) may not call this server", origin)))
			return
		}
		next.ServeHTTP(w, r)
	})
}

func isLocalHost(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	name = strings.TrimSuffix(strings.Trim(name, "[]"), ".")
	if strings.EqualFold(name, "localhost") {
		return true
	}
	ip := net.ParseIP(name)
	return ip != nil && ip.IsLoopback()
}

// sameOrigin tells whether the origin is the host itself; programs send none.
func sameOrigin(origin, host string) bool {
	if origin == "" {
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && u.Host != "" && strings.EqualFold(u.Host, host)
}
