package rest

import (
	"errors"
	"fmt"
	"io"
	"net/http"

	"connectrpc.com/connect"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/rpc/apierror"
)

// ReadBody returns the whole body of at most limit bytes. Package rpc has decompressed it.
func ReadBody(r *http.Request, limit int64) ([]byte, *connect.Error) {
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && encoding != "identity" {
		return nil, BadBody(fmt.Sprintf("content encoding %q is not supported: use gzip or none", encoding))
	}
	raw, err := io.ReadAll(io.LimitReader(r.Body, limit+1))
	if int64(len(raw)) > limit {
		return nil, apierror.TooLarge(limit)
	}
	if err == nil {
		return raw, nil
	}
	if refused, ok := errors.AsType[*connect.Error](err); ok {
		return nil, refused // a bound of package rpc
	}
	return nil, BadBody("it could not be read to its end: " + err.Error())
}

// BadBody returns the error for a body that cannot be read.
func BadBody(why string) *connect.Error {
	return apierror.New(connect.CodeInvalidArgument, apperror.InvalidArgument, "request body: "+why)
}
