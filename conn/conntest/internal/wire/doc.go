// Package wire is the network under a frontend for tests: a TCP port with connections that can be cut, blocked and
// lost.
//
// It handles bytes and connections only. A server accepts from [Port.Listener] as from any listener and does not notice
// the faults: a frozen connection has nothing to read, and its writes block.
//
// Blocked bytes continue where they stopped, like packets that TCP sends again once they get through. A lost connection
// stays lost: it never answers and is never reset, like one after a NAT has dropped its entry.
package wire
