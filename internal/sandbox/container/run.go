package container

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/signalbox-dev/signalbox/internal/sandbox/handover"
	"github.com/signalbox-dev/signalbox/internal/sandbox/limit"
	"github.com/signalbox-dev/signalbox/internal/sandbox/output"
)

// When a container is removed after its end.
const (
	CleanupAlways     = "always"
	CleanupNever      = "never"
	CleanupEventually = "eventually"
)

// Program is a program to execute in a container.
type Program struct {
	Image string
	// Trusted: the configuration chose the image, so that it needs no permission.
	Trusted bool
	// Pull is the policy by which the image is pulled.
	Pull string
	// Entrypoint is the begin of the command line; nil for that of the image.
	Entrypoint []string
	// Arguments are the rest of the command line; those of the image, if Entrypoint and Arguments are nil.
	Arguments   []string
	Environment map[string]string
	Stdin       string
	// Limits are further limits of this container.
	Limits limit.Limits
	// Name is the name of the container; empty for one that the engine chooses.
	Name string
	// Ports are the ports of the container, by those of the host.
	Ports map[string]string
	// Volumes are paths in the container, by those of the host.
	Volumes map[string]string
	// Labels are additional labels.
	Labels map[string]string
	// Cleanup is when the container is removed after its end, and After the delay of CleanupEventually.
	Cleanup string
	After   time.Duration
	// Output is what the program prints. The context of Run ends where it is full.
	Output *output.Streams
}

// containerName is the form of names of containers.
var containerName = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9_.-]*$`) //nolint:gochecknoglobals // a constant

// stopSeconds is how long a container that is ended may take after the signal that asks it to.
const stopSeconds = "2"

// Run executes a program until it ends, and returns its exit code. The error of one that did not end by itself is the
// cause of ctx or [ErrMemory]; that of one that was not executed may be a [Refusal].
func (e *Engine) Run(ctx context.Context, p Program) (int, error) {
	code, err := e.run(ctx, p)
	if cause := context.Cause(ctx); cause != nil {
		return 0, cause
	}
	return code, err
}

func (e *Engine) run(ctx context.Context, p Program) (code int, err error) {
	name, err := e.permitted(p)
	if err != nil {
		return 0, err
	}
	if p.Name != "" && !containerName.MatchString(p.Name) {
		return 0, refuse("%.200q is not the name of a container", p.Name)
	}
	limits := e.opts.Limits.Within(p.Limits)
	var g *guard
	if e.network(p) == networkGuarded {
		if g, err = e.newGuard(limits); err != nil {
			return 0, err
		}
		defer g.close()
	}
	settings, host, err := e.settings(ctx, name, p, limits, g)
	if err != nil {
		return 0, err
	}
	image, err := e.provide(ctx, name, p.Pull)
	if err != nil {
		return 0, err
	}
	host["Mounts"] = append(g.mounts(), image.inMemory(p, limits.Disk)...)
	if g != nil {
		settings["Entrypoint"] = []string{handoverProgram, handoverSocket}
		if settings["Cmd"], err = g.command(p, image); err != nil {
			return 0, err
		}
	}
	id, err := e.create(ctx, p.Name, settings)
	if err != nil {
		return 0, err
	}
	defer func() {
		if cleanup := e.cleanup(ctx, id, p); err == nil {
			err = cleanup
		}
	}()
	return e.execute(ctx, id, p, g)
}

// create creates a container. The engine completes the request even if ctx ends in the meantime, so that it is awaited.
func (e *Engine) create(ctx context.Context, name string, settings any) (string, error) {
	query := url.Values{}
	if name != "" {
		query.Set("name", name)
	}
	if err := ctx.Err(); err != nil {
		return "", err
	}
	ctx, cancel := detached(ctx)
	defer cancel()
	var created struct{ ID string }
	err := e.call(ctx, http.MethodPost, "/containers/create", query, settings, &created)
	switch statusOf(err) {
	case http.StatusBadRequest, http.StatusConflict:
		return "", refuse("%v", err)
	}
	return created.ID, err
}

// execute starts a container, and waits for its end.
func (e *Engine) execute(ctx context.Context, id string, p Program, g *guard) (int, error) {
	connection, stream, err := e.attach(ctx, id)
	if statusOf(err) == http.StatusConflict {
		return 0, refuse("%v", err) // Podman prepares the container now
	}
	if err != nil {
		return 0, err
	}
	defer func() { _ = connection.Close() }() // it was read
	stop := context.AfterFunc(ctx, func() { _ = connection.Close() })
	defer stop()
	if err := e.call(ctx, http.MethodPost, "/containers/"+id+"/start", nil, nil, nil); err != nil {
		if status := statusOf(err); status != 0 && status != http.StatusInternalServerError {
			return 0, refuse("%v", err)
		}
		return 0, err
	}
	g.serve(ctx)
	written := make(chan struct{})
	go func() {
		defer close(written)
		_, _ = io.WriteString(connection, p.Stdin) // a program need not read it
		_ = connection.CloseWrite()
	}()
	err = demultiplex(stream, p.Output)
	_ = connection.Close() // it ends the writer
	<-written
	_, stderr := p.Output.Text()
	unprepared := g.ended(stderr)
	if err != nil && ctx.Err() == nil {
		return 0, fmt.Errorf("reading the output of the container: %w", err)
	}
	var ended struct{ StatusCode int }
	if err := e.call(ctx, http.MethodPost, "/containers/"+id+"/wait", nil, nil, &ended); err != nil {
		return 0, err
	}
	var inspected struct{ State struct{ OOMKilled bool } }
	if err := e.call(ctx, http.MethodGet, "/containers/"+id+"/json", nil, nil, &inspected); err != nil {
		return 0, err
	}
	if inspected.State.OOMKilled && ended.StatusCode != 0 {
		return 0, ErrMemory
	}
	return ended.StatusCode, unprepared
}

// attach returns a connection to the streams of a container, and its reader.
func (e *Engine) attach(ctx context.Context, id string) (*net.UnixConn, io.Reader, error) {
	dialed, err := new(net.Dialer).DialContext(ctx, "unix", e.opts.Socket)
	if err != nil {
		return nil, nil, fmt.Errorf("calling the container engine: %w", err)
	}
	connection := dialed.(*net.UnixConn) //nolint:forcetypeassert // it was dialed as one
	request, err := http.NewRequestWithContext(ctx, http.MethodPost,
		"http://engine/containers/"+id+"/attach?stream=1&stdin=1&stdout=1&stderr=1", nil)
	if err != nil {
		return nil, nil, errors.Join(err, connection.Close())
	}
	request.Header.Set("Connection", "Upgrade")
	request.Header.Set("Upgrade", "tcp")
	if err := request.Write(connection); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("calling the container engine: %w", err), connection.Close())
	}
	reader := bufio.NewReader(connection)
	response, err := http.ReadResponse(reader, request) //nolint:bodyclose // it is the connection
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("calling the container engine: %w", err), connection.Close())
	}
	if response.StatusCode != http.StatusSwitchingProtocols && response.StatusCode != http.StatusOK {
		return nil, nil, errors.Join(failureOf(response), connection.Close())
	}
	return connection, reader, nil
}

// demultiplex writes the frames of a stream to the two outputs until it ends. A frame has a header of the number of the
// output, three bytes, and the length.
func demultiplex(stream io.Reader, printed *output.Streams) error {
	const stderr = 2
	var header [8]byte
	for {
		if _, err := io.ReadFull(stream, header[:]); err == io.EOF { //nolint:errorlint // io.ReadFull returns it as it is
			return nil
		} else if err != nil {
			return err
		}
		to := printed.Stdout()
		if header[0] == stderr {
			to = printed.Stderr()
		}
		if _, err := io.CopyN(to, stream, int64(binary.BigEndian.Uint32(header[4:]))); err != nil {
			return err
		}
	}
}

// cleanup ends a container that runs, and removes it unless the program wants to keep it.
func (e *Engine) cleanup(ctx context.Context, id string, p Program) error {
	detached, cancel := detached(ctx)
	defer cancel()
	if ctx.Err() != nil || p.Cleanup != CleanupAlways {
		err := e.call(detached, http.MethodPost, "/containers/"+id+"/stop", url.Values{"t": {stopSeconds}}, nil, nil)
		if err != nil && statusOf(err) == 0 {
			return err
		}
	}
	if p.Cleanup == CleanupAlways {
		return e.remove(detached, id)
	}
	return nil
}

// remove kills and removes a container with its volumes.
func (e *Engine) remove(ctx context.Context, id string) error {
	err := e.call(ctx, http.MethodDelete, "/containers/"+id, url.Values{"force": {"1"}, "v": {"1"}}, nil, nil)
	if status := statusOf(err); status == http.StatusNotFound || status == http.StatusConflict {
		return nil // it is removed, or is being removed
	}
	return err
}

// settings returns the request that creates a container, and the part of it about the host, which lacks the mounts.
func (e *Engine) settings(ctx context.Context, image string, p Program, limits limit.Limits,
	g *guard) (settings, host map[string]any, err error) {
	network, environment := e.network(p), map[string]string{}
	if g != nil {
		network, environment = networkNone, handover.Variables()
	}
	maps.Copy(environment, p.Environment)
	binds, err := e.binds(p.Volumes)
	if err != nil {
		return nil, nil, err
	}
	exposed, published, err := e.ports(p.Ports, network)
	if err != nil {
		return nil, nil, err
	}
	variables := make([]string, 0, len(environment))
	for _, name := range slices.Sorted(maps.Keys(environment)) {
		variables = append(variables, name+"="+environment[name])
	}
	if text := strings.Join(slices.Concat(variables, p.Entrypoint, p.Arguments), ""); strings.Contains(text, "\x00") {
		return nil, nil, refuse("an argument, a variable or the code has a zero byte")
	}
	bound := func(name string, most int64) map[string]any {
		return map[string]any{"Name": name, "Soft": most, "Hard": most}
	}
	host = map[string]any{
		"NetworkMode": network, "Binds": binds, "PortBindings": published, "ReadonlyRootfs": true,
		"Tmpfs":   map[string]string{temporary: "rw,nosuid,nodev,mode=1777,size=" + strconv.FormatInt(limits.Disk, 10)},
		"CapDrop": []string{"ALL"}, "SecurityOpt": []string{"no-new-privileges"}, "IpcMode": "private",
		"Memory": limits.Memory, "MemorySwap": limits.Memory, "PidsLimit": limits.Processes,
		"NanoCpus": int64(limits.Processors * float64(time.Second)), "CpuShares": limit.Shares, "ShmSize": sharedBytes,
		"Ulimits":   []any{bound("core", 0), bound("nofile", openFiles), bound("fsize", limits.Disk)},
		"LogConfig": map[string]any{"Type": "none"},
	}
	settings = map[string]any{
		"Image": image, "Cmd": p.Arguments, "Env": variables, "User": e.opts.User, "Labels": labels(ctx, p),
		"AttachStdin": true, "AttachStdout": true, "AttachStderr": true, "OpenStdin": true, "StdinOnce": true,
		"ExposedPorts": exposed, "NetworkDisabled": network == networkNone, "HostConfig": host,
	}
	if p.Entrypoint != nil {
		settings["Entrypoint"] = p.Entrypoint
	}
	return settings, host, nil
}

// inMemory returns mounts of memory for the folders that an image wants to be volumes. The engine would make volumes of
// them on the disk of the host, which no limit bounds.
func (c imageConfig) inMemory(p Program, size int64) []any {
	mounts := []any{}
	for _, folder := range slices.Sorted(maps.Keys(c.Volumes)) {
		folder = filepath.Clean(folder)
		if folder == temporary || slices.ContainsFunc(slices.Collect(maps.Values(p.Volumes)), func(inside string) bool {
			return filepath.Clean(inside) == folder
		}) {
			continue // it is mounted already
		}
		mounts = append(mounts, map[string]any{"Type": "tmpfs", "Target": folder,
			"TmpfsOptions": map[string]any{"SizeBytes": size, "Mode": 0o1777}})
	}
	return mounts
}

const (
	// temporary is the folder of a container that can be written.
	temporary = "/tmp"
	// sharedBytes bounds /dev/shm.
	sharedBytes = 8 << 20
	// openFiles bounds the open files of each process.
	openFiles = 1024
)

// binds returns the volumes of a container: folders of the host below those that are allowed.
func (e *Engine) binds(volumes map[string]string) ([]string, error) {
	var list []string
	for _, host := range slices.Sorted(maps.Keys(volumes)) {
		inside := volumes[host]
		if !filepath.IsAbs(host) || !filepath.IsAbs(inside) || strings.ContainsAny(host+inside, ":\x00") {
			return nil, refuse("the volume %.200q: %.200q is not of two absolute paths without a colon", host, inside)
		}
		// A link in an allowed folder must not lead out of it.
		resolved, err := filepath.EvalSymlinks(host)
		if err != nil {
			return nil, refuse("the folder %.200q for a volume cannot be read: %v", host, errors.Unwrap(err))
		}
		if !slices.ContainsFunc(e.opts.Volumes, func(allowed string) bool {
			rest, err := filepath.Rel(allowed, resolved)
			return err == nil && filepath.IsLocal(rest)
		}) {
			return nil, refuse("the folder %.200q is not in one of runner.containers.volumes of the runner", host)
		}
		list = append(list, resolved+":"+filepath.Clean(inside))
	}
	return list, nil
}

// ports returns the ports of a container that are exposed, and where they are published.
func (e *Engine) ports(ports map[string]string, network string) (exposed map[string]any, published map[string]any, err error) {
	if len(ports) > 0 && (!e.opts.Ports || network == networkNone) {
		return nil, nil, refuse("runner.containers.ports of the runner, or the network of the project, does not allow to publish ports")
	}
	exposed, published = map[string]any{}, map[string]any{}
	for host, inside := range ports {
		exposed[inside+"/tcp"] = map[string]any{}
		already, _ := published[inside+"/tcp"].([]any)
		published[inside+"/tcp"] = append(already, map[string]string{"HostIp": "127.0.0.1", "HostPort": host})
	}
	return exposed, published, nil
}
