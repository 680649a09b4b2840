//go:build !linux

package platform

import "syscall"

// childAttributes puts children into their own process group, so that a Ctrl-C in the terminal does not reach them: the
// tests stop them.
func childAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
