// Package container executes programs in containers, by the HTTP API of Docker, which Podman has as well.
//
//	engine := container.New(container.Options{Socket: "/run/user/1000/podman/podman.sock"})
//	code, err := engine.Run(ctx, program)
//	err = engine.Sweep(ctx)
//
// A container has no capabilities, cannot gain privileges, is never root, has a read-only file system with a folder in
// memory at /tmp, and no network unless one is configured. A program whose containers have a guarded network begins its
// main function with [handover.Begin]. Images, folders of the host and ports are refused unless the options allow them;
// such an error is a [Refusal].
//
// A container is removed when its program ends, when its context ends, and by [Engine.Sweep] if the process that made
// it has ended, unless the program wants to keep it.
package container

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/signalbox-dev/signalbox/internal/sandbox/limit"
	"github.com/signalbox-dev/signalbox/internal/sandbox/proxy"
)

// Options configure an engine.
type Options struct {
	// Socket is the unix socket of the API.
	Socket string
	// Images are the patterns of the images of which a program may choose one.
	Images []string
	// MaxImage bounds the size of an image that is pulled, in bytes.
	MaxImage int64
	// Network is the network of containers: none, guarded, which is a proxy for HTTP, or the name of one of the engine.
	Network string
	// Proxy serves the guarded networks of containers. nil: containers with one are not executed.
	Proxy *proxy.Proxy
	// SocketFolder has the sockets of containers with a guarded network. The engine finds it, and the file of this program,
	// at the same paths. Empty: the folder for temporary files.
	SocketFolder string
	// Volumes are the folders of the host in which volumes may be.
	Volumes []string
	// Ports allows to publish ports.
	Ports bool
	// User is the user and the group of containers, as numbers.
	User string
	// Limits bound each container; all but Output and Time, which bound the context of Run, are needed. Its Network has no
	// meaning: Network is the widest one.
	Limits limit.Limits
}

// Refusal is the error of a program that the options do not allow, or that cannot be executed as it is.
type Refusal struct{ Reason string }

// Error implements error.
func (e *Refusal) Error() string { return e.Reason }

func refuse(format string, arguments ...any) error {
	return &Refusal{fmt.Sprintf(format, arguments...)}
}

// ErrMemory ends a container that exceeded its memory.
var ErrMemory = errors.New("the container was ended, because it exceeded its memory")

// Engine is the engine of containers. It is safe for concurrent use.
type Engine struct {
	opts   Options
	client *http.Client
}

// New returns an engine. It does not connect.
func New(o Options) *Engine {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", o.Socket)
	}
	return &Engine{opts: o, client: &http.Client{Transport: &http.Transport{DialContext: dial}}}
}

// failure is an answer of the engine that is an error.
type failure struct {
	status  int
	message string
}

// Error implements error.
func (e *failure) Error() string {
	return fmt.Sprintf("the container engine answered %d: %s", e.status, e.message)
}

// statusOf returns the status of an answer that is an error; 0 for other errors.
func statusOf(err error) int {
	if f, is := errors.AsType[*failure](err); is {
		return f.status
	}
	return 0
}

// call calls the API, and decodes the answer into result, which is nil for one that is not used.
func (e *Engine) call(ctx context.Context, method, path string, query url.Values, body, result any) error {
	response, err := e.send(ctx, method, path, query, body)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }() // it was read
	if result == nil {
		_, err = io.Copy(io.Discard, io.LimitReader(response.Body, maxAnswer))
		return err
	}
	if err := json.NewDecoder(io.LimitReader(response.Body, maxAnswer)).Decode(result); err != nil {
		return fmt.Errorf("reading the answer of the container engine: %w", err)
	}
	return nil
}

// maxAnswer bounds an answer of the engine.
const maxAnswer = 8 << 20

// send calls the API, and returns an answer that is no error.
func (e *Engine) send(ctx context.Context, method, path string, query url.Values, body any) (*http.Response, error) {
	content, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("encoding a request to the container engine: %w", err)
	}
	address := url.URL{Scheme: "http", Host: "engine", Path: path, RawQuery: query.Encode()}
	request, err := http.NewRequestWithContext(ctx, method, address.String(), bytes.NewReader(content))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := e.client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("calling the container engine at %s: %w", e.opts.Socket, err)
	}
	if response.StatusCode < http.StatusBadRequest {
		return response, nil
	}
	defer func() { _ = response.Body.Close() }() // it was read
	return nil, failureOf(response)
}

// failureOf reads an answer that is an error.
func failureOf(response *http.Response) error {
	var answer struct{ Message string }
	if json.NewDecoder(io.LimitReader(response.Body, maxAnswer)).Decode(&answer) != nil {
		answer.Message = http.StatusText(response.StatusCode)
	}
	return &failure{response.StatusCode, answer.Message}
}

// removal bounds what is done with containers whose program has ended, also by its context.
const removal = 30 * time.Second

// detached returns a context that outlives the program.
func detached(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), removal)
}
