package rpc

import "net/http"

// Handler returns the server's handler, for tests that send requests without a connection.
func (s *Server) Handler() http.Handler { return s.rootHandler(true) }
