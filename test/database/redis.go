package database

import (
	"net"
	"os"
	"os/exec"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/signalbox-dev/signalbox/test/platform"
)

// Redis is a Redis server in its own process, without data on disk.
type Redis struct {
	*platform.Process

	Address string
	Client  *redis.Client // to inspect the keys directly

	port int
}

// StartRedis starts a server and waits until it answers. If the program is missing, it skips the test with the given
// function.
func StartRedis(t platform.T, skip func(args ...any)) *Redis {
	t.Helper()
	if _, err := exec.LookPath("redis-server"); err != nil {
		skip("redis-server is missing; `make setup` installs it")
	}
	r := &Redis{port: platform.FreePort(t)}
	r.Address = platform.Address(r.port)
	r.Client = redis.NewClient(&redis.Options{Addr: r.Address, MaxRetries: -1, DialerRetries: 1, DisableIdentity: true})
	t.Cleanup(func() { _ = r.Client.Close() }) // nothing is lost with it
	r.Restart(t)
	return r
}

// URL returns the server's URL.
func (r *Redis) URL() string { return "redis://" + r.Address }

// Restart starts a server that has ended, without its former data, and waits until it answers.
func (r *Redis) Restart(t platform.T) {
	t.Helper()
	cmd := exec.Command("redis-server", "--bind", "127.0.0.1", "--port", strconv.Itoa(r.port), "--save", "",
		"--appendonly", "no")
	cmd.Dir = t.TempDir()
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C"}
	cmd.SysProcAttr = attributes(nil)
	r.Process = platform.StartCommand(t, "redis", cmd)
	platform.Eventually(t, startLimit, func() string {
		// A plain dial first: the client logs a line about each refused connection.
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

// Flush deletes all keys.
func (r *Redis) Flush(t platform.T) {
	t.Helper()
	if err := r.Client.FlushAll(t.Context()).Err(); err != nil {
		t.Fatalf("flush Redis: %v", err)
	}
}
