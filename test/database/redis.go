package database

import (
	"net"
	"os"
	"os/exec"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/signalbox-dev/signalbox/test/platform"
)

// Redis is a Redis server as a process of its own, which keeps nothing on disk.
type Redis struct {
	*platform.Process

	Address string
	Client  *redis.Client // for looking behind Signalbox

	port int
}

// StartRedis starts a server and waits until it answers. Without its program the test is skipped by the given function.
func StartRedis(t platform.T, skip func(args ...any)) *Redis {
	t.Helper()
	if _, err := exec.LookPath("redis-server"); err != nil {
		skip("there is no redis-server; `make setup` installs it")
	}
	r := &Redis{port: platform.FreePort(t)}
	r.Address = platform.Address(r.port)
	r.Client = redis.NewClient(&redis.Options{Addr: r.Address, MaxRetries: -1, DialerRetries: 1, DisableIdentity: true})
	t.Cleanup(func() { _ = r.Client.Close() }) // nothing is lost with it
	r.Restart(t)
	return r
}

// URL leads to the server.
func (r *Redis) URL() string { return "redis://" + r.Address }

// Restart starts a server that has ended again, without what it held, and waits until it answers.
func (r *Redis) Restart(t platform.T) {
	t.Helper()
	cmd := exec.Command("redis-server", "--bind", "127.0.0.1", "--port", strconv.Itoa(r.port), "--save", "", "--appendonly", "no")
	cmd.Dir = t.TempDir()
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C"}
	cmd.SysProcAttr = attributes(nil)
	r.Process = platform.StartCommand(t, "redis", cmd)
	platform.Eventually(t, startLimit, func() string {
		// Not the client first: it writes a line about each port that refuses it.
		c, err := net.Dial("tcp", r.Address)
		if err != nil {
			return err.Error()
		}
		_ = c.Close() // nothing was sent
		if err := r.Client.Ping(t.Context()).Err(); err != nil {
			return err.Error()
		}
		return ""
	})
}

// Flush makes the server forget everything.
func (r *Redis) Flush(t platform.T) {
	t.Helper()
	if err := r.Client.FlushAll(t.Context()).Err(); err != nil {
		t.Fatalf("flush Redis: %v", err)
	}
}
