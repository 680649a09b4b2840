package apierror

import (
	"maps"
	"net/http"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/signalbox-dev/signalbox/internal/rpc/jsoncodec"
)

// WriteREST writes a google.rpc.Status in JSON.
func WriteREST(w http.ResponseWriter, e *connect.Error, httpStatus int) {
	s := &status.Status{Code: int32(e.Code()), Message: readable(e.Message())} //nolint:gosec // codes are 1 to 16
	for _, d := range e.Details() {
		value, err := d.Value()
		if err != nil {
			continue
		}
		if packed, err := anypb.New(value); err == nil {
			s.Details = append(s.Details, packed)
		}
	}
	body, err := jsoncodec.Append(nil, s)
	if err != nil {
		httpStatus, body = http.StatusInternalServerError, []byte(`{"code":13,"message":"the error could not be written"}`)
	}
	header := w.Header()
	maps.Copy(header, e.Meta())
	header.Set("Content-Type", "application/json")
	header.Del("Content-Length")
	w.WriteHeader(httpStatus)
	_, _ = w.Write(append(body, '\n')) // fails only if the caller disconnected
}
