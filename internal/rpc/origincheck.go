package rpc

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"connectrpc.com/connect"

	"github.com/signalbox-dev/signalbox/internal/config"
	"github.com/signalbox-dev/signalbox/internal/rpc/apierror"
)

// refuseForeignPages rejects requests of web pages on a listener that is open only to this machine. A browser on this
// machine can reach the listener on behalf of any page: through a name that the page's owner resolves to this machine
// (the Host header then has that name), or by posting across origins (visible in the Origin header or Sec-Fetch-Site).
func refuseForeignPages(next http.Handler) http.Handler {
	crossOrigin := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !config.IsLocalHost(r.Host) {
			apierror.Write(w, r, apierror.New(connect.CodePermissionDenied, apierror.ForeignHost,
				fmt.Sprintf("host %q is not this machine: use 127.0.0.1 or localhost", r.Host)))
			return
		}
		if origin := r.Header.Get("Origin"); !sameOrigin(origin, r.Host) || crossOrigin.Check(r) != nil {
			apierror.Write(w, r, apierror.New(connect.CodePermissionDenied, apierror.CrossOrigin,
				fmt.Sprintf("a page of another origin (%q) may not call this server", origin)))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// sameOrigin reports whether the origin is the host itself; programs send no origin.
func sameOrigin(origin, host string) bool {
	if origin == "" {
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && u.Host != "" && strings.EqualFold(u.Host, host)
}
