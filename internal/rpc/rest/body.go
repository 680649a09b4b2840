// This file reads the bodies of plain HTTP requests, with a limit before and after decompression.
//
//	raw, problem := rest.ReadBody(request, limit)

package rest

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"

	"connectrpc.com/connect"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/rpc/apierror"
)

// ReadBody returns the whole body, decompressed, of at most limit bytes.
func ReadBody(r *http.Request, limit int64) ([]byte, *connect.Error) {
	raw, problem := bounded(r.Body, limit)
	if problem != nil {
		return nil, problem
	}
	switch encoding := r.Header.Get("Content-Encoding"); encoding {
	case "", "identity":
		return raw, nil
	case "gzip":
		unzipped, err := gzip.NewReader(bytes.NewReader(raw))
		if err != nil {
			return nil, BadBody("it is not gzip, although its Content-Encoding is: " + err.Error())
		}
		return bounded(unzipped, limit)
	default:
		return nil, BadBody(fmt.Sprintf("content encoding %q is not supported: use gzip or none", encoding))
	}
}

func bounded(body io.Reader, limit int64) ([]byte, *connect.Error) {
	raw, err := io.ReadAll(io.LimitReader(body, limit+1))
	if int64(len(raw)) > limit {
		return nil, apierror.TooLarge(limit)
	}
	if err != nil {
		return nil, BadBody("it could not be read to its end: " + err.Error())
	}
	return raw, nil
}

// BadBody returns the error for a body that cannot be read.
func BadBody(why string) *connect.Error {
	return apierror.New(connect.CodeInvalidArgument, apperror.InvalidArgument, "request body: "+why)
}
