package platform

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
)

// RedisVariable names a Redis that the tests may share, as a URL. Each database has keys of its own in it.
const RedisVariable = "SIGNALBOX_TEST_REDIS"

// HasRedis tells whether there is a Redis to test with.
func HasRedis() bool { return os.Getenv(RedisVariable) != "" }

// RedisPrefix begins the keys that the servers of a database have in Redis: those that share the database share them.
func RedisPrefix(store Store) string {
	sum := sha256.Sum256([]byte(store.DSN))
	return "signalbox-test-" + hex.EncodeToString(sum[:8]) + ":"
}

// redis leads a server to the Redis that all servers of its database share. On SQLite there is one process, which needs none.
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

// RedisFor are the variables that lead whatever uses a database to its Redis, where it needs one.
func RedisFor(store Store) []string { return ServerOptions{Store: store}.redis() }
