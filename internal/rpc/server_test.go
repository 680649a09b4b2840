package rpc_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/rpc"
)

func bare(t *testing.T, address string) *rpc.Server {
	t.Helper()
	s, err := rpc.NewServer(rpc.Options{Address: address})
	require.NoError(t, err)
	return s
}

func TestPortInUseIsNamed(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	s := bare(t, taken.Addr().String())
	err = s.Start(t.Context())
	require.ErrorContains(t, err, taken.Addr().String())
	require.ErrorContains(t, err, "another program uses the port")
	require.Nil(t, s.Addr())
	require.NoError(t, s.Stop(t.Context()), "nothing was left behind")
}

func TestAddressOfAnotherMachineIsNamed(t *testing.T) {
	t.Parallel()
	require.ErrorContains(t, bare(t, "192.0.2.1:0").Start(t.Context()), "192.0.2.1")
	require.ErrorContains(t, bare(t, "nonsense").Start(t.Context()), "nonsense")
}

func TestStartsOnce(t *testing.T) {
	t.Parallel()
	s := bare(t, "127.0.0.1:0")
	require.NoError(t, s.Start(t.Context()))
	require.ErrorContains(t, s.Start(t.Context()), "started before")
	require.NoError(t, s.Stop(t.Context()))
}

func TestServerOutlivesStartContext(t *testing.T) {
	t.Parallel()
	s := bare(t, "127.0.0.1:0")
	ctx, cancel := context.WithCancel(t.Context())
	require.NoError(t, s.Start(ctx))
	cancel()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	res, err := (&http.Client{Transport: transport}).Get("http://" + s.Addr().String() + "/v1/version")
	require.NoError(t, err)
	res.Body.Close()
	require.Equal(t, http.StatusOK, res.StatusCode)
	require.NoError(t, s.Stop(t.Context()))
}

func TestOtherPaths(t *testing.T) {
	t.Parallel()
	p := start(t, nil)
	home := p.do("GET", "/", "")
	require.Equal(t, http.StatusOK, home.status)
	require.Contains(t, home.body, "/readyz")
	require.Equal(t, "alive", p.do("GET", "/livez", "").body)
	p.do("GET", "/metrics", "").fails(404, "UNIMPLEMENTED")
	p.do("POST", "/livez", "{}").fails(405, "UNIMPLEMENTED")
}

func TestStopCutsCallsThatOutlastItsBudget(t *testing.T) {
	t.Parallel()
	p := start(t, nil)
	p.publish()
	entered := make(chan struct{})
	ended := make(chan error, 1)
	p.engine.checkWith(func(ctx context.Context) error {
		close(entered)
		<-ctx.Done()
		ended <- ctx.Err()
		return ctx.Err()
	})
	answered := make(chan error, 1)
	go func() {
		req, _ := http.NewRequestWithContext(context.Background(), http.MethodPost, p.base+"/v1/projects/default/runs",
			http.NoBody)
		req.Body = io.NopCloser(strings.NewReader(`{"workflow":"hello","input":{}}`))
		req.Header.Set("Content-Type", "application/json")
		res, err := p.client.Do(req)
		if err == nil {
			res.Body.Close()
		}
		answered <- err
	}()
	<-entered
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err := p.server.Stop(ctx)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, "cut off")
	require.ErrorIs(t, <-ended, context.Canceled)
	<-answered
}

func TestPagesAreStableAndBoundToFilters(t *testing.T) {
	t.Parallel()
	p := start(t, nil)
	p.publish()
	seen := map[string]bool{}
	for range 5 {
		p.startRun(`{}`)
	}
	path, pages := "/v1/projects/default/runs?pageSize=2", 0
	token := ""
	for {
		a := p.do("GET", path+token, "").ok()
		pages++
		for _, r := range a["runs"].([]any) {
			id := r.(map[string]any)["id"].(string)
			require.False(t, seen[id], "no run is shown twice")
			seen[id] = true
		}
		next, more := a["nextPageToken"].(string)
		if !more {
			break
		}
		token = "&pageToken=" + next
		p.startRun(`{}`) // newer than the first page: must not appear, and must not displace others
	}
	require.Equal(t, 3, pages)
	require.Len(t, seen, 5)
	p.do("GET", path+token+"&statuses=failed", "").fails(400, "INVALID_PAGE_TOKEN")
	p.do("GET", "/v1/projects/default/audit?pageSize=2"+token, "").fails(400, "INVALID_PAGE_TOKEN")
	p.do("GET", "/v1/projects/default/runs?pageSize=3"+token, "").ok()
}

func TestStalledClientsAreCutOff(t *testing.T) {
	t.Parallel()
	p := start(t, func(o *rpc.Options) { o.StallTimeout = 300 * time.Millisecond })
	dial := func() net.Conn {
		conn, err := net.Dial("tcp", p.server.Addr().String())
		require.NoError(t, err)
		require.NoError(t, conn.SetDeadline(time.Now().Add(20*time.Second)))
		t.Cleanup(func() { conn.Close() })
		return conn
	}

	// A body that is never sent.
	sending := dial()
	fmt.Fprintf(sending, "POST /v1/projects HTTP/1.1\r\nHost: localhost\r\nContent-Type: "+
		"application/json\r\nContent-Length: 100\r\n\r\n{")
	res, err := http.ReadResponse(bufio.NewReader(sending), nil)
	require.NoError(t, err)
	require.Equal(t, http.StatusGatewayTimeout, res.StatusCode)
	res.Body.Close()

	// A body that the handler does not read.
	unwanted := dial()
	fmt.Fprintf(unwanted, "POST /nowhere HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{")
	res, err = http.ReadResponse(bufio.NewReader(unwanted), nil)
	require.NoError(t, err)
	require.Equal(t, http.StatusNotFound, res.StatusCode)
	res.Body.Close()

	// Responses that are never read: their writes fill every buffer on the way, and then stall.
	p.do("POST", "/v1/projects/default/workflows:publish",
		`{"source":`+quoted(greeting+"# "+strings.Repeat("x", 500_000)+"\n")+`}`).ok()
	reading := dial()
	for err == nil {
		_, err = io.WriteString(reading, "GET /v1/projects/default/workflows/hello HTTP/1.1\r\nHost: localhost\r\n\r\n")
	}
	require.False(t, os.IsTimeout(err), "the server has to cut the connection: %v", err)
}

// TestClientThatDoesNotReadBlocksNoOther has a client that requests a large run again and again and reads no response.
func TestClientThatDoesNotReadBlocksNoOther(t *testing.T) {
	t.Parallel()
	p := start(t, func(o *rpc.Options) { o.StallTimeout = 5 * time.Minute })
	p.publish()
	id := p.do("POST", "/v1/projects/default/runs",
		`{"workflow":"hello","input":{"name":`+quoted(strings.Repeat("x", 500_000))+
			`}}`).ok()["run"].(map[string]any)["id"].(string)
	conn, err := net.Dial("tcp", p.server.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	const responses = 60 // more than all buffers on the way take
	_, err = io.WriteString(conn,
		strings.Repeat("GET /v1/projects/default/runs/"+id+" HTTP/1.1\r\nHost: localhost\r\n\r\n", responses))
	require.NoError(t, err)

	begun := time.Now()
	for range responses {
		p.do("GET", "/v1/projects/default/runs/"+id, "").ok()
	}
	require.Less(t, time.Since(begun), 2*time.Minute, "a slot is held until the client reads")
}

func TestConnectionsAreLimited(t *testing.T) {
	t.Parallel()
	p := start(t, func(o *rpc.Options) { o.MaxConnections = 1 })
	p.publish() // keeps its connection
	entered, release := make(chan struct{}), make(chan struct{})
	p.engine.checkWith(func(context.Context) error {
		close(entered)
		<-release
		return errors.New("refused")
	})
	get := func() int {
		transport := &http.Transport{DisableKeepAlives: true}
		res, err := (&http.Client{Transport: transport}).Get(p.base + "/v1/version")
		if err != nil {
			return 0
		}
		res.Body.Close()
		return res.StatusCode
	}
	require.Equal(t, http.StatusOK, get(), "an idle connection makes room")
	p.client.CloseIdleConnections() // the closed one, of which the client may not know yet

	active, waiting := make(chan int, 1), make(chan int, 1)
	go func() { active <- p.do("POST", "/v1/projects/default/runs", `{"workflow":"hello","input":{}}`).status }()
	<-entered
	go func() { waiting <- get() }()
	select {
	case status := <-waiting:
		t.Fatalf("a second connection was answered with %d while the only one had a request in flight", status)
	case <-time.After(200 * time.Millisecond):
	}
	close(release)
	require.Equal(t, http.StatusInternalServerError, <-active, "a request in flight is not cut off")
	require.Equal(t, http.StatusOK, <-waiting)
}

func TestPanicsOutsideMethodsAreLogged(t *testing.T) {
	t.Parallel()
	p := start(t, func(o *rpc.Options) {
		o.Readyz = http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("broken") })
	})
	res, err := p.client.Get(p.base + "/readyz")
	if err == nil {
		res.Body.Close()
	}
	require.Error(t, err)
	require.Contains(t, p.log.String(), "broken")
	p.do("GET", "/v1/version", "").ok()
}
