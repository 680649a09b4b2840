package rpc_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/klauspost/compress/gzip"
	"github.com/stretchr/testify/require"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/api/signalbox/v1/signalboxv1connect"
	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/rpc"
	"github.com/signalbox-dev/signalbox/internal/rpc/permission"
	"github.com/signalbox-dev/signalbox/internal/stopwatch"
)

// strangersBound is the most that the server reads of a body before it knows the caller.
const strangersBound = 4 << 10

// soon is for an answer that waits for no body, which strangers may take twice as long to send.
const soon = rpc.StrangerTime / 2

// endless is a body that never ends. It counts what is read of it.
type endless struct {
	head []byte
	read int
}

func (e *endless) Read(p []byte) (int, error) {
	n := copy(p, e.head)
	e.head = e.head[n:]
	for i := n; i < len(p); i++ {
		p[i] = ' '
	}
	e.read += len(p)
	if e.read > 64<<20 {
		return 0, errors.New("the server reads all that is sent")
	}
	return len(p), nil
}

func (e *endless) Close() error { return nil }

// TestMethodsReadLittleWithoutIdentity sends endless bodies to every method, in every protocol, without a token.
func TestMethodsReadLittleWithoutIdentity(t *testing.T) {
	t.Parallel()
	g := startGuarded(t, func(o *rpc.Options) { o.Events = newFakeEvents() })
	type target struct{ method, path string }
	var targets []target
	for _, rule := range permission.Table() {
		targets = append(targets, target{http.MethodPost, rule.Procedure})
	}
	for _, path := range []string{
		"/grpc.health.v1.Health/Check", "/grpc.health.v1.Health/Watch", "/grpc.health.v1.Health/List",
		"/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
		"/", "/livez", "/metrics", "/openapi.yaml", "/nowhere", "/codec/decode",
	} {
		targets = append(targets, target{http.MethodPost, path}, target{http.MethodGet, path})
	}
	operations, err := document()
	require.NoError(t, err)
	for _, operation := range operations {
		path := strings.NewReplacer(`[^/:]+`, "x", `[^:]+`, "x/y", `\`, "", "^", "", "$", "").Replace(operation.path.String())
		targets = append(targets, target{operation.method, path})
	}

	const large = 4<<20 - 5
	var envelope [5]byte
	binary.BigEndian.PutUint32(envelope[1:], large)
	var zeros bytes.Buffer // a message that expands to 4 MiB
	zip := gzip.NewWriter(&zeros)
	_, err = zip.Write(bytes.Repeat([]byte(" "), large))
	require.NoError(t, err)
	require.NoError(t, zip.Close())
	compressed := append(binary.BigEndian.AppendUint32([]byte{1}, uint32(zeros.Len())), zeros.Bytes()...)
	forms := map[string]struct {
		headers []string
		head    []byte
	}{
		"JSON":       {[]string{"Content-Type", "application/json"}, []byte(`{"token":"`)},
		"JSON, gzip": {[]string{"Content-Type", "application/json", "Content-Encoding", "gzip"}, zeros.Bytes()},
		"binary":     {[]string{"Content-Type", "application/proto"}, []byte{0x0a, 0xff, 0xff, 0xff, 0x01}},
		"gRPC":       {[]string{"Content-Type", "application/grpc", "Te", "trailers"}, envelope[:]},
		"gRPC, gzip": {[]string{"Content-Type", "application/grpc", "Te", "trailers", "Grpc-Encoding", "gzip"},
			compressed},
		"gRPC-Web":       {[]string{"Content-Type", "application/grpc-web+proto"}, envelope[:]},
		"Connect stream": {[]string{"Content-Type", "application/connect+json"}, envelope[:]},
		"event":          {[]string{"Content-Type", "application/cloudevents+json"}, []byte(`{"data":"`)},
	}
	require.Greater(t, len(targets), 150)
	for _, where := range targets {
		for name, form := range forms {
			for _, wrong := range []bool{false, true} {
				body := &endless{head: form.head}
				r := httptest.NewRequest(where.method, where.path, body)
				r.ProtoMajor, r.ProtoMinor, r.ContentLength = 2, 0, -1
				for i := 0; i < len(form.headers); i += 2 {
					r.Header.Set(form.headers[i], form.headers[i+1])
				}
				if wrong {
					r.Header.Set("Authorization", "Bearer sbx_wrong")
				}
				g.server.Handler().ServeHTTP(httptest.NewRecorder(), r)
				require.LessOrEqual(t, body.read, strangersBound+1, "%s %s in %s", where.method, where.path, name)
			}
		}
	}
}

// slowly opens a connection and sends a request without the end of its body.
func slowly(t *testing.T, address, head, body string, length int) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	_, err = fmt.Fprintf(conn, "%s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: "+
		"%d\r\n\r\n%s", head, length, body)
	require.NoError(t, err)
	return conn
}

func TestSlowSignInsDoNotLockOutCallers(t *testing.T) {
	t.Parallel()
	g := startGuarded(t, func(o *rpc.Options) { o.MaxConnections = 500 })
	_, viewer := g.token(map[string]auth.Role{"shop": auth.Viewer})
	requireFiles(t, 2000)
	const flood = 600
	var first net.Conn
	for range flood {
		conn := slowly(t, g.server.Addr().String(), "POST /v1/session:sign-in", `{"token":"`, 3000)
		if first == nil {
			first = conn
		}
	}
	watch := stopwatch.Start(t)
	g.signIn(viewer)
	g.do("GET", "/v1/projects/shop/runs", "", viewer...).ok()
	require.Less(t, watch.Elapsed(), soon)

	require.NoError(t, first.SetReadDeadline(time.Now().Add(time.Minute)))
	res, err := http.ReadResponse(bufio.NewReader(first), nil)
	require.NoError(t, err, "an older body makes room for newer ones at once")
	text, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	require.Equal(t, http.StatusTooManyRequests, res.StatusCode)
	require.Contains(t, string(text), "TOO_MANY_BODIES")
	require.NotEmpty(t, res.Header.Get("Retry-After"))
}

// TestRefusedRequestsHoldNoConnection sends requests without a token, and no body although one is announced.
func TestRefusedRequestsHoldNoConnection(t *testing.T) {
	t.Parallel()
	g := startGuarded(t, nil)
	conn := slowly(t, g.server.Addr().String(), "POST /v1/projects", "{", 1000)
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(time.Minute)))
	watch := stopwatch.Start(t)
	reader := bufio.NewReader(conn)
	res, err := http.ReadResponse(reader, nil)
	require.NoError(t, err)
	require.Equal(t, http.StatusUnauthorized, res.StatusCode)
	_, err = io.Copy(io.Discard, res.Body)
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	require.Less(t, watch.Elapsed(), soon, "the response does not wait for the body")
	_, err = reader.ReadByte()
	require.False(t, errors.Is(err, context.DeadlineExceeded) || isTimeout(err), "the server closes the connection")
	require.Error(t, err)
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

// TestSlowSignInsOfHTTP2DoNotLockOutCallers has the streams of few connections.
func TestSlowSignInsOfHTTP2DoNotLockOutCallers(t *testing.T) {
	t.Parallel()
	g := startGuarded(t, nil)
	_, viewer := g.token(map[string]auth.Role{"shop": auth.Viewer})
	client := oneConnection(t)
	statuses := make(chan int, 240)
	for range cap(statuses) {
		reader, writer := io.Pipe()
		t.Cleanup(func() { writer.Close() })
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost,
			g.base+signalboxv1connect.SessionServiceSignInProcedure, reader)
		require.NoError(t, err)
		req.Header.Set("Content-Type", "application/json")
		go func() { _, _ = io.WriteString(writer, `{"token":"`) }()
		go func() {
			res, err := client.Do(req)
			if err != nil {
				statuses <- 0
				return
			}
			res.Body.Close()
			statuses <- res.StatusCode
		}()
	}
	for range cap(statuses) - 64 {
		require.Equal(t, http.StatusTooManyRequests, <-statuses, "an address has 64")
	}
	watch := stopwatch.Start(t)
	g.signIn(viewer)
	require.Less(t, watch.Elapsed(), soon)
}

// oneConnection returns an HTTP/2 client without TLS.
func oneConnection(t *testing.T) *http.Client {
	t.Helper()
	client := h2c()
	transport, ok := client.Transport.(*http.Transport)
	require.True(t, ok)
	transport.DisableKeepAlives = false
	t.Cleanup(transport.CloseIdleConnections)
	return client
}

// TestBodiesOfOneCallerLeaveRoomForOthers has requests of one viewer that announce 4 MiB and never end, over both
// versions of HTTP.
func TestBodiesOfOneCallerLeaveRoomForOthers(t *testing.T) {
	t.Parallel()
	g := startGuarded(t, nil)
	_, hostile := g.token(map[string]auth.Role{"shop": auth.Viewer})
	_, viewer := g.token(map[string]auth.Role{"shop": auth.Viewer})
	const all, size = 40, 4 << 20
	client := oneConnection(t)
	refused := make(chan string, all)
	for i := range all {
		reader, writer := io.Pipe()
		t.Cleanup(func() { writer.Close() })
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost,
			g.base+signalboxv1connect.ProjectServiceGetProjectProcedure, reader)
		require.NoError(t, err)
		req.ContentLength = size
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set(hostile[0], hostile[1])
		with := client
		if i%2 == 0 {
			with = g.client
		}
		go func() {
			res, err := with.Do(req)
			if err != nil {
				return // the test has ended
			}
			text, _ := io.ReadAll(res.Body)
			res.Body.Close()
			refused <- fmt.Sprint(res.StatusCode, " ", string(text))
		}()
	}
	for range all - 8 {
		require.Regexp(t, `^429 .*resource_exhausted`, <-refused, "one caller has 32 MiB")
	}
	watch := stopwatch.Start(t)
	g.do("GET", "/v1/projects/shop/runs", "", viewer...).ok()
	large := g.do("POST", "/v1/projects/shop/runs", `{"workflow":"`+strings.Repeat("x", 3<<20)+`"}`, viewer...)
	require.NotEqual(t, http.StatusTooManyRequests, large.status)
	require.Less(t, watch.Elapsed(), soon)
	select {
	case text := <-refused:
		t.Fatalf("a body within the bound was refused: %s", text)
	default:
	}
}

// TestCompressedBodiesCountWithTheirSize sends messages of few bytes that expand to 4 MiB, and keeps their requests
// open.
func TestCompressedBodiesCountWithTheirSize(t *testing.T) {
	t.Parallel()
	for name, options := range map[string][]connect.ClientOption{
		"Connect": nil, "gRPC": {connect.WithGRPC()}, "gRPC-Web": {connect.WithGRPCWeb()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			entered, release := make(chan struct{}, 100), make(chan struct{})
			g := startGuarded(t, func(o *rpc.Options) {
				o.Interceptors = []connect.Interceptor{connect.UnaryInterceptorFunc(func(next connect.UnaryFunc) connect.UnaryFunc {
					return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
						entered <- struct{}{}
						<-release
						return next(ctx, req)
					}
				})}
			})
			_, hostile := g.token(map[string]auth.Role{"shop": auth.Viewer})
			client := signalboxv1connect.NewProjectServiceClient(oneConnection(t), g.base,
				append(options, connect.WithSendGzip())...)
			refused := make(chan error, 20)
			ask := func() {
				req := connect.NewRequest(&signalboxv1.GetProjectRequest{Name: strings.Repeat("x", 3<<20)})
				req.Header().Set(hostile[0], hostile[1])
				_, err := client.GetProject(t.Context(), req)
				refused <- err
			}
			for range cap(refused) {
				go ask()
			}
			admitted := 0
			for range cap(refused) {
				select {
				case <-entered:
					admitted++
				case err := <-refused:
					requireReason(t, err, connect.CodeResourceExhausted, "TOO_MANY_BODIES")
				}
			}
			require.Equal(t, 10, admitted, "32 MiB")
			close(release)
			for range admitted {
				require.Equal(t, connect.CodeInvalidArgument, connect.CodeOf(<-refused), "no name has 3 MiB")
			}
			ask()
			require.Equal(t, connect.CodeInvalidArgument, connect.CodeOf(<-refused), "what has ended does not count")
		})
	}
}
