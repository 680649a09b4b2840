// Package wire is the network under a frontend for tests: a TCP port whose connections can be cut, held up and lost.
//
// It knows bytes and connections only. A server accepts from [Port.Listener] as from any listener, and does not notice what is
// done to the port: a frozen connection is one that happens to have nothing to read and whose writes take long.
//
// What has been held up goes on where it stopped, as packets that TCP sends again once they get through. What is lost stays
// lost: such a connection never answers and is never reset, as one whose entry a NAT has dropped.
package wire
