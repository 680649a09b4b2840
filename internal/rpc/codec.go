package rpc

import (
	"net/http"
	"slices"
	"strings"
)

// codecPaths begins the paths of the codec endpoint.
const codecPaths = "/codec/"

// Codec is the codec endpoint, which pages of other origins (Temporal's UI) may call.
type Codec struct {
	// Path is a pattern of [http.ServeMux] below /codec/; Handler is nil if the endpoint is disabled.
	Path    string
	Handler http.Handler
	// MaxBytes is the size of its largest request.
	MaxBytes int64
	// Origins are the origins of the pages that may call it.
	Origins []string
}

// allow answers CORS preflight requests for the codec and lets pages of the allowed origins bypass guarded.
func (c Codec) allow(open, guarded http.Handler) http.Handler {
	if c.Handler == nil || len(c.Origins) == 0 {
		return guarded
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		origin := r.Header.Get("Origin")
		if !strings.HasPrefix(r.URL.Path, codecPaths) || !slices.Contains(c.Origins, origin) {
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
