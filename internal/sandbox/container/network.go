package container

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/signalbox-dev/signalbox/internal/sandbox/handover"
	"github.com/signalbox-dev/signalbox/internal/sandbox/limit"
	"github.com/signalbox-dev/signalbox/internal/sandbox/owner"
	"github.com/signalbox-dev/signalbox/internal/sandbox/proxy"
)

// Networks of containers that are none of the engine.
const (
	networkNone = "none"
	// networkGuarded is no network, and a proxy of this process on the loopback interface.
	networkGuarded = "guarded"
)

const (
	// handoverProgram and handoverSocket are where a container with a guarded network has the program that begins in it,
	// and the socket that it calls.
	handoverProgram = "/" + handover.Program
	handoverSocket  = handoverProgram + ".socket"
	// guardedMemory and guardedProcesses are what that program needs.
	guardedMemory    = 16 << 20
	guardedProcesses = 16
	// folderMode and socketMode are the modes of a folder with a socket, and of the socket: the user in the container must
	// be able to connect, and no other user reaches the folder.
	folderMode = 0o700
	socketMode = 0o666
)

// network returns the network of a program, which may have a narrower one than the options.
func (e *Engine) network(p Program) string {
	switch {
	case e.opts.Network == networkNone || p.Limits.Network == limit.None:
		return networkNone
	case p.Limits.Network == limit.Guarded:
		return networkGuarded
	}
	return e.opts.Network
}

// guard is the guarded network of one container: the container has no network, and begins with a program that hands a
// listener on its loopback interface over, at which a proxy of this process answers. nil is another network.
type guard struct {
	executable, folder string
	proxy              *proxy.Proxy
	listener           *net.UnixListener
	served             chan error
	stop               func()
}

// newGuard opens the socket that a container calls.
func (e *Engine) newGuard(limits limit.Limits) (g *guard, err error) {
	if e.opts.Proxy == nil {
		return nil, errors.New("this engine has no proxy for a guarded network")
	}
	if limits.Memory < guardedMemory || limits.Processes < guardedProcesses {
		return nil, refuse("its network is guarded, which needs limits of %d bytes of memory and %d processes at least",
			guardedMemory, guardedProcesses)
	}
	g = &guard{proxy: e.opts.Proxy, served: make(chan error, 1)}
	if g.executable, err = os.Executable(); err != nil {
		return nil, fmt.Errorf("the program that prepares the network of a container: %w", err)
	}
	g.folder = filepath.Join(e.socketFolder(), owner.Unique())
	if err := os.Mkdir(g.folder, folderMode); err != nil {
		return nil, fmt.Errorf("making a folder for the socket of a container: %w", err)
	}
	if g.listener, err = net.ListenUnix("unix", &net.UnixAddr{Name: g.socket(), Net: "unix"}); err != nil {
		g.close()
		return nil, fmt.Errorf("opening the socket of a container: %w", err)
	}
	if err := os.Chmod(g.socket(), socketMode); err != nil {
		g.close()
		return nil, fmt.Errorf("opening the socket of a container: %w", err)
	}
	return g, nil
}

// socketFolder is the folder with the sockets of containers.
func (e *Engine) socketFolder() string { return cmp.Or(e.opts.SocketFolder, os.TempDir()) }

func (g *guard) socket() string { return filepath.Join(g.folder, "socket") }

// mounts returns the files that the container needs.
func (g *guard) mounts() []any {
	if g == nil {
		return nil
	}
	// Unlike those of volumes, the source of such a mount must exist: an engine that has no such file refuses it.
	bind := func(source, target string) map[string]any {
		return map[string]any{"Type": "bind", "Source": source, "Target": target, "ReadOnly": true}
	}
	return []any{bind(g.executable, handoverProgram), bind(g.socket(), handoverSocket)}
}

// command returns the command line of a container whose program would have another one.
func (g *guard) command(p Program, image imageConfig) ([]string, error) {
	entrypoint, arguments := p.Entrypoint, p.Arguments
	if entrypoint == nil {
		entrypoint = image.Entrypoint
		if len(arguments) == 0 {
			arguments = image.Cmd
		}
	}
	line := slices.Concat(entrypoint, arguments)
	if len(line) == 0 {
		return nil, refuse("the image %s has no command, and the program names none", p.Image)
	}
	return line, nil
}

// serve serves the proxy, once the container has called.
func (g *guard) serve(ctx context.Context) {
	if g == nil {
		return
	}
	go func() {
		g.served <- func() error {
			connection, err := g.listener.AcceptUnix()
			if err != nil {
				return err
			}
			_ = g.listener.Close()                    // the program itself must not call
			defer func() { _ = connection.Close() }() // it was read
			stop := context.AfterFunc(ctx, func() { _ = connection.Close() })
			defer stop()
			proxied, err := handover.Receive(connection)
			if err != nil {
				return err
			}
			g.stop = g.proxy.Serve(ctx, proxied)
			return nil
		}()
	}()
}

// ended waits until the network of a container that has ended is not prepared any more. The error describes why the
// program in it did not begin; stderr is what the container printed.
func (g *guard) ended(stderr string) error {
	if g == nil {
		return nil
	}
	_ = g.listener.Close() // it ends the wait for a call, if there was none
	err := <-g.served
	if refused, is := errors.AsType[*handover.Refusal](err); is {
		return refuse("%v", refused)
	}
	if err != nil {
		return refuse("the network of the container was not prepared: %s (%v)", strconv.Quote(strings.TrimSpace(stderr)), err)
	}
	return nil
}

// close ends the proxy, and removes the socket.
func (g *guard) close() {
	if g == nil {
		return
	}
	if g.stop != nil {
		g.stop()
	}
	if g.listener != nil {
		_ = g.listener.Close() // it may be closed
	}
	_ = os.RemoveAll(g.folder) // the next process tries again
}

// removeLeft removes the sockets that processes which have ended left behind.
func (e *Engine) removeLeft() {
	for _, folder := range owner.Left(e.socketFolder()) {
		_ = os.RemoveAll(folder) // it belongs to another user, or the next process tries again
	}
}
