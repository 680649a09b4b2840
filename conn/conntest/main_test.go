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

// limit is for what must happen; patience for what must not.
const (
	limit    = time.Minute
	patience = 300 * time.Millisecond
)

func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// connect makes an SDK client that redials quickly, so that tests do not wait for its back-off.
func connect(t *testing.T, f *conntest.Frontend, change ...func(*client.Options)) client.Client {
	t.Helper()
	options := client.Options{HostPort: f.Addr(), Logger: silent{}}
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

// describe asks for a namespace, which every check of a connection comes down to.
func describe(ctx context.Context, c client.Client, namespace string) error {
	_, err := c.WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: namespace})
	return err
}

// works waits until the namespace answers: calls may fail until the client has redialled.
func works(t *testing.T, c client.Client) {
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

// hangs checks that the frontend does not answer, nor end the connection.
func hangs(t *testing.T, c client.Client) {
	t.Helper()
	ctx := within(t, patience)
	err := describe(ctx, c, "default")
	require.ErrorIs(t, ctx.Err(), context.DeadlineExceeded, "it answered: %v", err)
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

// silent keeps the SDK's log out of the tests' output.
type silent struct{}

var _ log.Logger = silent{}

func (silent) Debug(string, ...any) {}
func (silent) Info(string, ...any)  {}
func (silent) Warn(string, ...any)  {}
func (silent) Error(string, ...any) {}
