package rpc

import "net/http"

// Handler returns what answers requests, for tests that send some without a connection.
func (s *Server) Handler() http.Handler { return s.entry(true) }
