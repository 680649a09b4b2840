// Package body reads the bodies of plain HTTP requests: within a limit before and after decompression, with errors that say
// what is wrong.
//
//	raw, problem := body.Read(request, limit)
package body

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"

	"connectrpc.com/connect"

	"github.com/signalbox-dev/signalbox/internal/fault"
	"github.com/signalbox-dev/signalbox/internal/rpc/fail"
)

// Read returns the whole body, decompressed, of at most limit bytes.
func Read(r *http.Request, limit int64) ([]byte, *connect.Error) {
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
			return nil, Bad("it is not gzip, as its Content-Encoding says: " + err.Error())
		}
		return bounded(unzipped, limit)
	default:
		return nil, Bad(fmt.Sprintf("content encoding %q is not supported: use gzip or none", encoding))
	}
}

func bounded(body io.Reader, limit int64) ([]byte, *connect.Error) {
	raw, err := io.ReadAll(io.LimitReader(body, limit+1))
	if int64(len(raw)) > limit {
		return nil, fail.TooLarge(limit)
	}
	if err != nil {
		return nil, Bad("it could not be read to its end: " + err.Error())
	}
	return raw, nil
}

// Bad is the answer to a body that cannot be read.
func Bad(why string) *connect.Error {
	return fail.New(connect.CodeInvalidArgument, fault.InvalidArgument, "request body: "+why)
}
