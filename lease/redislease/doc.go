// Package redislease is a [lease.Store] in Redis: one server, one watched by sentinels, or a cluster.
//
//	store, err := redislease.Open(redislease.Options{URL: "redis://127.0.0.1:6379"})
//	defer store.Close()
//
// Each call but List is one Lua script on one key, judged by the server's own clock. Redis 5 or newer is needed. A user with these
// rights is enough, towards a cluster with +cluster|slots and +cluster|shards besides:
//
//	ACL SETUSER leases on >PASSWORD ~signalbox:* resetchannels &signalbox:changes -@all +eval +evalsha +time +type +hmget +hget +hset +hdel +del +pexpire +scan +publish +subscribe +ping +hello
//
// # What is stored
//
// The entry of the key dispatcher:shop:orders is the hash signalbox:dispatcher:shop:orders, where signalbox: is the prefix. Its fields:
//
//	holder, token, value                 as given; the token is 128 random bits as text
//	revision                             microseconds since 1970 at the last write, or more
//	acquired, renewed, expires           microseconds since 1970
//	retention                            milliseconds; each write sets the hash's own TTL to it
//	resigned                             0 or 1
//	before.holder … before.value         the entry that was replaced, until the first renewal
//
// The TTL of a lease is in the entry; the TTL of the hash is the retention, so that what ran out stays readable. The name of each key that was
// acquired, resigned or deleted is published on the channel signalbox:changes. Listing goes through all keys of the database by
// SCAN, which takes no server's breath away but is slow beside millions of others' keys. It reads entries by TIME and HMGET, 1,000 in a
// round trip, and by the script only those that were written after that time or cannot be read: an entry is what it was at its ReadAt.
//
// What stands under the prefix and is no such hash is reported as [lease.MalformedError], and replaced when it is acquired.
//
// # When Redis fails
//
// A command whose answer is lost may have been carried out. The client sends it again by itself where it can, and the scripts recognise
// an acquisition that comes twice. A repeated resignation may say [lease.ErrLost], a repeated deletion [lease.ErrNotFound].
//
// A Redis that is full must refuse writes (maxmemory-policy noeviction): one that evicts forgets entries.
// Without persistence, a restart loses all of them, as FLUSHALL does: what is held is then granted to whoever asks first. So may a
// failover, since replicas follow asynchronously; min-replicas-to-write on the master narrows that gap, nothing closes it, and the clock of
// the replica is another one. The old holder is told at its next renewal. Until then two may believe that they have the lease, and so what they act
// on must refuse the older one by an epoch, as package dispatch does. There is no vote over several independent servers
// for the same reason: it would narrow the gap, and the epoch is needed all the same.
package redislease
