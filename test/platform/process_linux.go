package platform

import "syscall"

// childAttributes makes the kernel kill the children when the test process ends, also when that was killed.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
