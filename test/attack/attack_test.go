// Package attack_test verifies that callers without permissions take no server down: while they send as much as they
// can, in every way that was found to do harm, a server with the memory of its unit lives, and another caller is
// answered within a second.
package attack_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/rand"
	"encoding/base32"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/test/platform"
	"github.com/signalbox-dev/signalbox/test/promise"
)

func TestMain(m *testing.M) { os.Exit(platform.Main(m, func(*platform.Suite) {})) }

const (
	// memory is that of a server in deploy/systemd and deploy/compose.
	memory = 1 << 30
	// largest is the default of api.max_request_bytes.
	largest = 4 << 20
	// answerTime is the promise for other callers.
	answerTime = time.Second

	signIn, health, read = "/signalbox.v1.SessionService/SignIn", "/grpc.health.v1.Health/Check",
		"/signalbox.v1.RunService/ListRuns"
	publish = "/signalbox.v1.EventService/PublishEvents"
)

// attack is what hostile callers send.
type attack struct {
	name string
	path string
	// callers send at the same time.
	callers int
	http2   bool
	headers []string
	// token is that of a viewer.
	token bool
	// announced is the length that the headers name; 0: none.
	announced int64
	body      func(ctx context.Context) io.Reader
	// guesses adds a new unknown token to each request.
	guesses bool
}

func attacks() []attack {
	json, grpc := []string{"Content-Type", "application/json"},
		[]string{"Content-Type", "application/grpc", "Te", "trailers"}
	zipped := append([]string{"Content-Encoding", "gzip"}, json...)
	viewers := []attack{
		{name: "a viewer's bodies that never end", path: read, callers: 300, headers: json, announced: largest,
			body: unfinished},
		{name: "a viewer's streams that never end", path: read, callers: 240, http2: true, headers: json, body: unfinished},
		{name: "a viewer's bodies that expand", path: read, callers: 400, headers: zipped, body: expanding},
		{name: "a viewer's streams that expand", path: read, callers: 240, http2: true,
			headers: append([]string{"Grpc-Encoding", "gzip"}, grpc...), body: expandingMessage},
		{name: "a viewer's large bodies", path: "/v1/projects/default/runs", callers: 100, headers: json, announced: largest,
			body: whole},
		{name: "a viewer's small elements", path: publish, callers: 30,
			headers: []string{"Content-Type", "application/proto"}, body: elements},
		{name: "a viewer's small elements of JSON", path: publish, callers: 30, headers: json, body: jsonElements},
	}
	for i := range viewers {
		viewers[i].token = true
	}
	return append([]attack{
		{name: "sign-ins that never end", path: signIn, callers: 300, headers: json, announced: largest, body: unfinished},
		{name: "sign-ins that expand", path: "/v1/session:sign-in", callers: 400, headers: zipped, body: expanding},
		{name: "streams of sign-ins", path: signIn, callers: 240, http2: true, headers: json, body: unfinished},
		{name: "health checks that never end", path: health, callers: 300, headers: json, announced: largest,
			body: unfinished},
		{name: "streams of health checks", path: health, callers: 240, http2: true, headers: grpc, body: unfinishedMessage},
		{name: "slow bodies", path: signIn, callers: 4150, headers: json, announced: 3000, body: slow},
		{name: "slow bodies of other methods", path: read, callers: 4150, headers: json, announced: 3000, body: slow},
		{name: "unknown tokens", path: "/v1/version", callers: 40, headers: json, guesses: true},
	}, viewers...)
}

func filler() io.Reader { return io.LimitReader(spaces{}, largest-100) }

type spaces struct{}

func (spaces) Read(p []byte) (int, error) {
	copy(p, bytes.Repeat([]byte(" "), len(p)))
	return len(p), nil
}

// stalled blocks until the attack ends.
type stalled struct{ ctx context.Context }

func (s stalled) Read([]byte) (int, error) {
	<-s.ctx.Done()
	return 0, s.ctx.Err()
}

func unfinished(ctx context.Context) io.Reader { return io.MultiReader(filler(), stalled{ctx}) }

func unfinishedMessage(ctx context.Context) io.Reader {
	return io.MultiReader(bytes.NewReader(binary.BigEndian.AppendUint32([]byte{0}, largest-5)), filler(), stalled{ctx})
}

func slow(ctx context.Context) io.Reader {
	return io.MultiReader(strings.NewReader(`{"token":"`), stalled{ctx})
}

func whole(context.Context) io.Reader {
	return io.MultiReader(strings.NewReader(`{"workflow":"x","input":[`),
		strings.NewReader(strings.Repeat("1,", (largest-28)/2)), strings.NewReader("12]"))
}

// elements are empty events, of which each takes two bytes of the body and hundreds of the memory.
func elements(context.Context) io.Reader {
	return io.MultiReader(strings.NewReader("\x0a\x07default"),
		strings.NewReader(strings.Repeat("\x12\x00", (largest-9)/2)))
}

func jsonElements(context.Context) io.Reader {
	return io.MultiReader(strings.NewReader(`{"project":"default","events":[`),
		strings.NewReader(strings.Repeat("{},", (largest-50)/3)), strings.NewReader("{}]}"))
}

var zeros = sync.OnceValue(func() []byte {
	var b bytes.Buffer
	zip := gzip.NewWriter(&b)
	_, _ = io.Copy(zip, filler())
	_ = zip.Close()
	return b.Bytes()
})

func expanding(context.Context) io.Reader { return bytes.NewReader(zeros()) }

func expandingMessage(ctx context.Context) io.Reader {
	head := binary.BigEndian.AppendUint32([]byte{1}, uint32(len(zeros())))
	return io.MultiReader(bytes.NewReader(head), bytes.NewReader(zeros()), stalled{ctx})
}

// unknownToken returns a text in the format of tokens with a new ID.
func unknownToken() string {
	encoding := base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)
	random := make([]byte, 42)
	_, _ = rand.Read(random)
	text := "sbx_" + encoding.EncodeToString(random[:10]) + "_" + encoding.EncodeToString(random[10:])
	return text + encoding.EncodeToString(binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE([]byte(text))))
}

// server is a server that requires tokens, with the memory of its unit. It has no Temporal: what is attacked does not
// need it.
type server struct {
	*platform.Process

	url    string
	env    []string
	viewer string
	used   atomic.Int64 // the largest resident memory, in MB
}

func start(t *testing.T, role string) *server {
	t.Helper()
	address, store := platform.Address(platform.FreePort(t)), platform.SQLite(t)
	s := &server{url: "http://" + address}
	s.env = []string{
		"SIGNALBOX_LISTEN=" + address, "SIGNALBOX_AUTH_MODE=tokens", "SIGNALBOX_TEMPORAL_ADDRESS=" +
			platform.Address(platform.FreePort(t)),
		"SIGNALBOX_STORE_DRIVER=" + store.Driver, "SIGNALBOX_STORE_DSN=" + store.DSN, "SIGNALBOX_ROLES=" +
			role, "SIGNALBOX_ADDRESS=" + "http://" + address,
		platform.WithKeys(t),
	}
	binary := platform.ServerBinary(t)
	program, reason := platform.InMemoryGroup(t, binary, memory)
	settings := s.env
	if reason != "" {
		t.Logf("no control group limits the memory of the server (%s): its resident memory is measured instead", reason)
		program, settings = binary, append([]string{fmt.Sprintf("GOMEMLIMIT=%d", memory*9/10)}, settings...)
	}
	s.Process = platform.StartProcess(t, role, program, settings, []string{"server"})
	require.Eventually(t, func() bool {
		status, _, _ := s.ask(t.Context(), "", http.MethodGet, "/livez", "")
		return status == http.StatusOK
	}, platform.Patience, 20*time.Millisecond)
	s.viewer = s.token(t, "viewer", "--bootstrap", "--role", "default=viewer")
	return s
}

// token creates a token.
func (s *server) token(t *testing.T, name string, args ...string) string {
	t.Helper()
	r := platform.Run(t, platform.Command{
		Binary: platform.ServerBinary(t), Args: append([]string{"token", "create", "--name", name}, args...), Env: s.env})
	require.Equal(t, platform.ExitOK, r.Code, r.String())
	return strings.TrimSpace(r.Stdout)
}

// ask sends a request over a connection of its own.
func (s *server) ask(ctx context.Context, token, method, path, body string) (int, string, error) {
	req, err := http.NewRequestWithContext(ctx, method, s.url+path, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	req.Header.Set("Content-Type", "application/json")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Do(req)
	if err != nil {
		return 0, "", err
	}
	text, err := io.ReadAll(res.Body)
	_ = res.Body.Close()
	return res.StatusCode, string(text), err
}

// send sends the requests of an attack until ctx ends: those of all callers at once, and then a thousand per second,
// each when the one before it was answered. More would only take the processors of this machine.
func (s *server) send(ctx context.Context, a attack) (ended func()) {
	pause := time.Duration(a.callers) * time.Millisecond
	protocols := new(http.Protocols)
	protocols.SetHTTP1(!a.http2)
	protocols.SetUnencryptedHTTP2(a.http2)
	transport := &http.Transport{Protocols: protocols, DisableKeepAlives: !a.http2}
	client := &http.Client{Transport: transport}
	var callers sync.WaitGroup
	for range a.callers {
		callers.Go(func() {
			for ctx.Err() == nil {
				s.sendOnce(ctx, client, a)
				select {
				case <-ctx.Done():
				case <-time.After(pause):
				}
			}
		})
	}
	return func() {
		callers.Wait()
		transport.CloseIdleConnections()
	}
}

func (s *server) sendOnce(ctx context.Context, client *http.Client, a attack) {
	var body io.Reader
	if a.body != nil {
		body = a.body(ctx)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+a.path, body)
	if err != nil {
		return
	}
	if body == nil {
		req.Method = http.MethodGet
	}
	req.ContentLength = a.announced
	if body != nil && a.announced == 0 {
		req.ContentLength = -1
	}
	for i := 0; i < len(a.headers); i += 2 {
		req.Header.Set(a.headers[i], a.headers[i+1])
	}
	switch {
	case a.token:
		req.Header.Set("Authorization", "Bearer "+s.viewer)
	case a.guesses:
		req.Header.Set("Authorization", "Bearer "+unknownToken())
	}
	if res, err := client.Do(req); err == nil {
		_, _ = io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
	}
}

// probe is the other caller: it signs in and reads, and returns the slowest response.
func (s *server) probe(t *testing.T, during time.Duration, token string) time.Duration {
	t.Helper()
	requests := [][3]string{
		{http.MethodGet, "/livez", ""},
		{http.MethodPost, "/v1/session:sign-in", `{"token":"` + token + `"}`},
		{http.MethodGet, "/v1/projects/default/runs", ""},
	}
	if token == "" {
		requests = requests[:1] // a process without an API
	}
	slowest := time.Duration(0)
	rounds := time.NewTicker(20 * time.Millisecond)
	defer rounds.Stop()
	for began, first := time.Now(), true; first || time.Since(began) < during; first = false {
		<-rounds.C
		for _, r := range requests {
			using := token
			if r[2] != "" {
				using = ""
				if !first {
					continue // a token opens few sessions per minute
				}
			}
			sent := time.Now()
			status, text, err := s.ask(t.Context(), using, r[0], r[1], r[2])
			slowest = max(slowest, time.Since(sent))
			require.NoError(t, err, r[1])
			require.Equal(t, http.StatusOK, status, "%s: %s", r[1], text)
		}
		s.used.Store(max(s.used.Load(), int64(s.Memory(t))))
	}
	return slowest
}

func TestServerSurvivesAttacks(t *testing.T) {
	const files = 20_000
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: files, Max: files}); err != nil {
		t.Skipf("this needs %d open files: %v; raise the limit with ulimit -n", files, err)
	}
	during := promise.Length(500*time.Millisecond, 15*time.Second)
	for _, role := range []string{platform.API, platform.Worker} {
		t.Run(role, func(t *testing.T) {
			s := start(t, role)
			admin := ""
			if role == platform.API {
				admin = s.token(t, "admin", "--bootstrap", "--force")
			}
			for _, a := range attacks() {
				if role == platform.Worker && (a.path != health || !promise.Full() && a.http2) {
					continue
				}
				t.Run(a.name, func(t *testing.T) {
					ctx, stop := context.WithCancel(t.Context())
					ended := s.send(ctx, a)
					slowest := s.probe(t, during, admin)
					stop()
					ended()
					select {
					case <-s.Done():
						t.Fatal("the server has ended")
					default:
					}
					t.Logf("the slowest response to another caller took %s; the server takes up to %d MB", promise.Round(slowest),
						s.used.Load())
					promise.Within(t, "a response to another caller", slowest, answerTime)
					require.Less(t, s.used.Load(), int64(memory>>20), "MB of resident memory")
				})
			}
		})
	}
}
