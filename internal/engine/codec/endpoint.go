package codec

import (
	"context"
	"fmt"
	"net/http"

	"go.temporal.io/sdk/converter"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/keyring"
	"github.com/signalbox-dev/signalbox/internal/logger"
)

// EndpointPath is the route of [Endpoint].
const EndpointPath = "POST /codec/{namespace}/decode"

// EndpointMaxBytes bounds a request of [Endpoint]: the payloads of a page of a history as stored. External values are
// references.
const EndpointMaxBytes = 32 << 20

// Endpoint opens payloads for Temporal's UI and command line, as their remote codec. It serves administrators only, and
// only after note has stored an audit entry. It seals nothing.
//
// Values that a history refers to are read from external.
func Endpoint(
	ring *keyring.Ring, external converter.ExternalStorage, note func(ctx context.Context, namespace string) error,
) (http.Handler, error) {
	decode, err := converter.NewPayloadHTTPHandler(converter.PayloadHTTPHandlerOptions{
		PreStorageCodecs: []converter.PayloadCodec{NewCodec(ring)}, ExternalStorage: external,
	})
	if err != nil {
		return nil, fmt.Errorf("make the codec endpoint: %w", err)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := auth.Require(r.Context(), auth.Everywhere, auth.Admin); err != nil {
			text := err.Error()
			if f, ok := apperror.From(err); ok {
				text = f.Message
			}
			http.Error(w, text, http.StatusForbidden)
			return
		}
		if err := note(r.Context(), r.PathValue("namespace")); err != nil {
			logger.FromContext(r.Context()).ErrorContext(r.Context(), "Payloads were not opened, as it could not be audited",
				"error", err)
			http.Error(w, "the use could not be audited, so nothing was opened", http.StatusServiceUnavailable)
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, EndpointMaxBytes)
		decode.ServeHTTP(w, r)
	}), nil
}
