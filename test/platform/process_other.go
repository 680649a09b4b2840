//go:build !linux

package platform

import "syscall"

// childAttributes keeps a Ctrl-C in the terminal from the children: the tests stop them.
func childAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
