package counter

import (
	"net"
	"os"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSeriesOfAMetricAreFound(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		`runs 3`:                            "",
		`runs{status="failed"} 3`:           "3",
		`runs{a="b",status="failed"} 4e+01`: "4e+01",
		`runs_total{status="failed"} 3`:     "",
		`# HELP runs status="failed"`:       "",
	} {
		_, value, ok := cutSeries(line, "runs", []string{`status="failed"`})
		require.Equal(t, want, value, line)
		require.Equal(t, want != "", ok, line)
	}
	_, value, _ := cutSeries("go_goroutines 12", Goroutines, nil)
	require.Equal(t, "12", value)
}

func TestOwnConnectionsAreCounted(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("the kernel's table is read on Linux only")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	port := l.Addr().(*net.TCPAddr).Port
	for want := range 3 {
		n, err := Connections(os.Getpid(), port)
		require.NoError(t, err)
		require.Equal(t, want, n)
		c, err := net.Dial("tcp", l.Addr().String())
		require.NoError(t, err)
		defer func() { require.NoError(t, c.Close()) }()
	}
}

func TestBucketsAreSummed(t *testing.T) {
	t.Parallel()
	bounds, counts, err := Buckets("late_bucket{p=\"a\",le=\"0.5\"} 1\nlate_bucket{p=\"a\",le=\"10\"} "+
		"2\nlate_bucket{p=\"a\",le=\"+Inf\"} 4\n"+
		"late_bucket{p=\"b\",le=\"0.5\"} 3\nlate_bucket{p=\"b\",le=\"10\"} 3\n", "late")
	require.NoError(t, err)
	require.Equal(t, []float64{0.5, 10}, bounds)
	require.Equal(t, []float64{4, 5}, counts)
}
