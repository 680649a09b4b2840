// Package machine decides for a connection manager: what state the connection is in, and what to do next and when.
package machine

import "time"

// Machine is the state of one connection. It is not safe for concurrent use.
type Machine struct {
	settings Settings
}

// New makes a machine that is Connecting. Its first Tick asks for the first attempt.
func New(s Settings, now time.Time) *Machine { _ = now; return &Machine{settings: s} }

// On tells the machine what happened and returns what to do about it.
func (m *Machine) On(now time.Time, e Event) Command { _, _ = now, e; return Command{} }

// Tick returns what is due.
func (m *Machine) Tick(now time.Time) Command { _ = now; return Command{} }

// Deadline is when Tick is wanted next; zero for never.
func (m *Machine) Deadline() time.Time { return time.Time{} }

// View says what is known at the given time.
func (m *Machine) View(now time.Time) View { _ = now; return View{} }
