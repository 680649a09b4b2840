// Package handover gives a program with a guarded network its only address: a proxy of this process, at [Address].
//
//	handover.Begin() // the begin of the main function
//
//	listener, err := handover.Receive(connection) // of the process that has begun in the network of a command
//
// The listener of the proxy must be opened in the network namespace of the program. So this program itself begins
// there, under the name [Program]: that process opens the listener, sends it over a unix socket, and becomes the command
// in its arguments. Nothing of it remains beside the command.
package handover

import "net"

const (
	// Program is the name of this program as the process that begins in the network of a command. Its arguments are the
	// path of a unix socket, or [Inherited], and the command.
	Program = "signalbox-program-network"
	// Inherited stands for the socket that the process has as the file [File]. Its network namespace is a new one, whose
	// loopback interface it enables.
	Inherited = "inherited"
	// File is the number of an inherited socket.
	File = 7
	// Address is where the command finds the proxy.
	Address = "127.0.0.1:3128"
)

// Refusal is the error of a command that cannot be executed.
type Refusal struct{ reason string }

// Error implements error.
func (e *Refusal) Error() string { return e.reason }

// Variables are the variables of a command, from which programs usually read the address of a proxy.
func Variables() map[string]string {
	variables := map[string]string{"NO_PROXY": "localhost,127.0.0.1", "no_proxy": "localhost,127.0.0.1"}
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"} {
		variables[name] = "http://" + Address
	}
	return variables
}

// maxReason bounds the reason of a command that is not executed, in bytes.
const maxReason = 1 << 10

// Receive receives the listener from the process that begins in the network of a command, which becomes the command
// then. It does not close the connection.
func Receive(connection *net.UnixConn) (net.Listener, error) { return receive(connection) }
