// Package redislease is a [lease.Store] in Redis: a single server, one with sentinels, or a cluster.
//
//	store, err := redislease.Open(redislease.Options{URL: "redis://127.0.0.1:6379"})
//	defer store.Close()
//
// Each call except List is one Lua script on one key, and uses the server's clock. Redis 5 or newer is required. A user
// needs the following rights, and in a cluster also +cluster|slots and +cluster|shards:
//
//	ACL SETUSER leases on >PASSWORD ~signalbox:* resetchannels &signalbox:changes -@all +eval +evalsha +time +type +hmget +hget +hset +hdel +del +pexpire +scan +publish +subscribe +ping +hello
//
// [Store.Check] names the commands that a user lacks. A refused command changes no entry: the scripts begin with those
// that have no effect on one.
//
// # What is stored
//
// The entry of the key dispatcher:shop:orders is the hash signalbox:dispatcher:shop:orders, where signalbox: is the
// prefix. Its fields:
//
//	holder, token, value                 as given; the token is 128 random bits as text
//	revision                             microseconds since 1970 at the last write, or greater
//	acquired, renewed, expires           microseconds since 1970
//	retention                            milliseconds; each write sets the hash's own TTL to it
//	resigned                             0 or 1
//	before.holder … before.value         the entry that was replaced, until the first renewal
//
// The TTL of a lease is in the entry. The TTL of the hash is the retention, so that entries whose lease has run out
// stay readable. The name of each key that was acquired, resigned or deleted is published on the channel
// signalbox:changes. List scans all keys of the database by SCAN, which does not block the server but is slow if the
// database has millions of other keys. It reads entries by TIME and HMGET, 1,000 in a round trip, and by script only
// those that were written after that time or cannot be read: an entry is as it was at its ReadAt.
//
// A value under the prefix that is no such hash is reported as [lease.MalformedError], and replaced when its key is
// acquired.
//
// # Failures of Redis
//
// A command whose answer is lost may have been executed. The Redis client repeats it where it can, and the scripts
// recognise a repeated acquisition. A repeated resignation may return [lease.ErrLost], a repeated deletion
// [lease.ErrNotFound].
//
// A Redis that is full must refuse writes (maxmemory-policy noeviction): eviction loses entries. Without persistence, a
// restart loses all entries, as FLUSHALL does, and a lease that is held is granted again to the next caller. The same
// can happen in a failover, since replication is asynchronous: min-replicas-to-write on the master reduces that risk
// but does not remove it, and the replica has another clock. The old holder gets [lease.ErrLost] at its next renewal.
// Until then two processes may consider themselves holders, so the resource they act on must reject the older one by an
// epoch, as package dispatch does. For the same reason there is no quorum over several independent servers: it would
// reduce the risk, but the epoch would still be necessary.
package redislease
