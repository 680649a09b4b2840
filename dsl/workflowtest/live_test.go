package workflowtest_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/workflowtest"
)

// No part of a secret is recorded, also where one secret begins with another.
func TestRecordedResponsesHaveNoSecrets(t *testing.T) {
	t.Parallel()
	doc, violations := dsl.Parse([]byte(`document: {dsl: '1.0.3', namespace: a, name: live, version: '1.0.0'}
use: {secrets: [short, long]}
do: [{get: {call: http, with: {method: get, endpoint: 'https://shop.example/'}}}]
`))
	require.False(t, violations.HasErrors(), violations) // the secrets are not used
	for range 20 {                                       // the secrets are in no order
		c := workflowtest.Case{Secrets: map[string]any{"short": "abc", "long": "abcdef"},
			Live: func(r *http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader("abcdef, abc")),
					Header: http.Header{"Content-Type": {"text/plain"}}, Request: r}, nil
			}}
		result := workflowtest.Execute(t.Context(), doc, c)
		require.Len(t, result.Live, 1)
		require.Equal(t, "FILL-IN, FILL-IN", result.Live[0].Respond[0].Body)
	}
}
