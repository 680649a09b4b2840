package codec_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/engine/codec"
	"github.com/signalbox-dev/signalbox/internal/keyring"
)

func TestEndpointServesAdministratorsAndIsAudited(t *testing.T) {
	t.Parallel()
	ring := keyring.Random("k1")
	sealed, err := codec.For(ring, "some-run").ToPayloads(planted)
	require.NoError(t, err)
	body, err := protojson.Marshal(sealed)
	require.NoError(t, err)
	var noted []string
	var failing error
	mux := http.NewServeMux()
	handler, err := codec.Endpoint(ring, converter.ExternalStorage{}, func(_ context.Context, namespace string) error {
		noted = append(noted, namespace)
		return failing
	})
	require.NoError(t, err)
	mux.Handle(codec.EndpointPath, handler)
	ask := func(role auth.Role, path string) *httptest.ResponseRecorder {
		request := httptest.NewRequestWithContext(
			auth.WithActor(t.Context(), auth.Actor{Name: "ada", Roles: map[string]auth.Role{auth.Everywhere: role}}),
			http.MethodPost, path, bytes.NewReader(body))
		answer := httptest.NewRecorder()
		mux.ServeHTTP(answer, request)
		return answer
	}
	require.Equal(t, http.StatusForbidden, ask(auth.Operator, "/codec/ns/decode").Code)
	require.Empty(t, noted)
	require.Equal(t, http.StatusNotFound, ask(auth.Admin, "/codec/ns/encode").Code)

	answer := ask(auth.Admin, "/codec/ns/decode")
	require.Equal(t, http.StatusOK, answer.Code, answer.Body.String())
	var opened commonpb.Payloads
	require.NoError(t, protojson.Unmarshal(answer.Body.Bytes(), &opened))
	var text string
	require.NoError(t, json.Unmarshal(opened.GetPayloads()[0].GetData(), &text))
	require.Equal(t, planted, text)
	require.Equal(t, []string{"ns"}, noted)

	failing = errors.New("the store is away")
	require.Equal(t, http.StatusServiceUnavailable, ask(auth.Admin, "/codec/ns/decode").Code)
}
