package handler

import (
	"context"

	"connectrpc.com/connect"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
)

// SystemInfo is what a server says of itself.
type SystemInfo struct {
	// Version of Signalbox.
	Version string
	// Interpreter is the version of the interpreter that new runs start with.
	Interpreter int
	// ServerID is the identity of this process start.
	ServerID string
}

// System answers signalbox.v1.SystemService.
type System struct {
	info SystemInfo
}

// NewSystem returns the handler.
func NewSystem(info SystemInfo) *System { return &System{info: info} }

// GetVersion returns the server's version.
func (h *System) GetVersion(
	context.Context, *connect.Request[signalboxv1.GetVersionRequest],
) (*connect.Response[signalboxv1.GetVersionResponse], error) {
	return connect.NewResponse(&signalboxv1.GetVersionResponse{
		Version: h.info.Version, Interpreter: int32(h.info.Interpreter), ServerId: h.info.ServerID, //nolint:gosec // counts up from 1
	}), nil
}
