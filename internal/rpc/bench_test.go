package rpc_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// BenchmarkCompressedAnswer reads a page of runs over REST, as a client that accepts gzip.
func BenchmarkCompressedAnswer(b *testing.B) {
	p := start(b, nil)
	p.publish()
	for i := range 200 {
		p.do("POST", "/v1/projects/default/runs",
			fmt.Sprintf(`{"workflow":"hello","input":{"name":%s}}`, quoted(strings.Repeat("ada ", i%50)))).ok()
	}
	for b.Loop() {
		req, err := http.NewRequestWithContext(b.Context(), http.MethodGet, p.base+"/v1/projects/default/runs?pageSize=200",
			nil)
		require.NoError(b, err)
		req.Header.Set("Accept-Encoding", "gzip")
		res, err := p.client.Do(req)
		require.NoError(b, err)
		require.Equal(b, "gzip", res.Header.Get("Content-Encoding"))
		size, err := io.Copy(io.Discard, res.Body)
		require.NoError(b, err)
		require.NoError(b, res.Body.Close())
		b.ReportMetric(float64(size), "bytes/answer")
	}
}
