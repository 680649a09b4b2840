package rpc

import (
	"net/http"
	"slices"
	"strings"
)

// Codec is an endpoint that pages of other origins may use: Temporal's UI.
type Codec struct {
	// Path is a pattern of [http.ServeMux] below /codec/; Handler is nil where there is none.
	Path    string
	Handler http.Handler
	// Origins are those of the pages that may.
	Origins []string
}

// allow answers what browsers ask before they let a page of a known origin use the codec, and lets such pages past guarded.
func (c Codec) allow(open, guarded http.Handler) http.Handler {
	if c.Handler == nil || len(c.Origins) == 0 {
		return guarded
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		origin := r.Header.Get("Origin")
		if !strings.HasPrefix(r.URL.Path, "/codec/") || !slices.Contains(c.Origins, origin) {
			guarded.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Access-Control-Allow-Origin", origin)
		w.Header().Set("Access-Control-Allow-Headers", "Authorization, Content-Type, X-Namespace")
		w.Header().Set("Access-Control-Allow-Methods", http.MethodPost)
		w.Header().Set("Access-Control-Allow-Credentials", "true")
		w.Header().Add("Vary", "Origin")
		if r.Method == http.MethodOptions {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		open.ServeHTTP(w, r)
	})
}
