package platform

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
)

// RedisVariable is the environment variable with the URL of a Redis server that the tests share. Each database uses its
// own keys in it.
const RedisVariable = "SIGNALBOX_TEST_REDIS"

// HasRedis reports whether a Redis server is configured.
func HasRedis() bool { return os.Getenv(RedisVariable) != "" }

// RedisPrefix returns the prefix of the Redis keys of a database's servers: servers that share the database share the
// keys.
func RedisPrefix(store Store) string {
	sum := sha256.Sum256([]byte(store.DSN))
	return "signalbox-test-" + hex.EncodeToString(sum[:8]) + ":"
}

// redis returns the settings of the Redis that all servers of a database share. On SQLite there is one process, which
// needs none.
func (o ServerOptions) redis() []string {
	url := o.Redis
	if url == "" {
		url = os.Getenv(RedisVariable)
	}
	if o.Store.Driver != "postgres" || url == "" || url == NoRedis {
		return nil
	}
	return []string{"SIGNALBOX_REDIS_URL=" + url, "SIGNALBOX_REDIS_PREFIX=" + RedisPrefix(o.Store)}
}

// RedisFor returns the settings of a database's Redis, or none for SQLite.
func RedisFor(store Store) []string { return ServerOptions{Store: store}.redis() }
