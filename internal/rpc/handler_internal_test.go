package rpc

import "net/http"

// Handler returns the server's handler, for tests that send requests without a connection.
func (s *Server) Handler() http.Handler { return s.rootHandler(true) }

// StrangerTime is how long the body of a request without a valid token may take to arrive.
const StrangerTime = strangerTime
