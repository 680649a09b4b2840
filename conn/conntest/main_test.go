package conntest_test

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	"github.com/signalbox-dev/signalbox/conn/conntest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// limit is the time limit for what must happen, unanswered the time after which a call counts as unanswered.
const (
	limit      = time.Minute
	unanswered = 300 * time.Millisecond
)

func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// connect returns an SDK client that redials quickly, so that tests do not wait for its back-off.
func connect(t *testing.T, f *conntest.Frontend, change ...func(*client.Options)) client.Client {
	t.Helper()
	options := client.Options{HostPort: f.Addr(), Logger: noLogger{}}
	options.ConnectionOptions.DialOptions = []grpc.DialOption{grpc.WithConnectParams(grpc.ConnectParams{
		Backoff:           backoff.Config{BaseDelay: 10 * time.Millisecond, Multiplier: 1, MaxDelay: 20 * time.Millisecond},
		MinConnectTimeout: time.Second,
	})}
	for _, c := range change {
		c(&options)
	}
	c, err := client.NewLazyClient(options)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

// describe requests a namespace, as every check of a connection does.
func describe(ctx context.Context, c client.Client, namespace string) error {
	_, err := c.WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: namespace})
	return err
}

// awaitAnswer waits until the frontend answers: calls may fail until the client has redialled.
func awaitAnswer(t *testing.T, c client.Client) {
	t.Helper()
	ctx := within(t, limit)
	var last error
	for ctx.Err() == nil {
		attempt, cancel := context.WithTimeout(ctx, 2*time.Second)
		last = describe(attempt, c, "default")
		cancel()
		if last == nil {
			return
		}
	}
	require.NoError(t, last)
}

// requireHang checks that the frontend neither answers nor ends the connection.
func requireHang(t *testing.T, c client.Client) {
	t.Helper()
	ctx := within(t, unanswered)
	err := describe(ctx, c, "default")
	require.ErrorIs(t, ctx.Err(), context.DeadlineExceeded, "the frontend answered: %v", err)
	require.Error(t, err)
}

// dial opens a raw connection.
func dial(t *testing.T, f *conntest.Frontend) net.Conn {
	t.Helper()
	raw, err := new(net.Dialer).DialContext(within(t, limit), "tcp", f.Addr())
	require.NoError(t, err)
	t.Cleanup(func() { _ = raw.Close() })
	return raw
}

// noLogger discards the SDK's log.
type noLogger struct{}

var _ log.Logger = noLogger{}

func (noLogger) Debug(string, ...any) {}
func (noLogger) Info(string, ...any)  {}
func (noLogger) Warn(string, ...any)  {}
func (noLogger) Error(string, ...any) {}
