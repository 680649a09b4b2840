//go:build linux

package process

import "golang.org/x/sys/unix"

// architecture is the architecture whose system calls the filter knows.
const architecture = unix.AUDIT_ARCH_X86_64

// deniedHere are system calls that this architecture alone has.
func deniedHere() []uintptr {
	return []uintptr{
		unix.SYS_CREATE_MODULE, unix.SYS_GET_KERNEL_SYMS, unix.SYS_IOPERM, unix.SYS_IOPL, unix.SYS_MODIFY_LDT,
		unix.SYS_QUERY_MODULE, unix.SYS_USELIB, unix.SYS_USTAT, unix.SYS__SYSCTL,
	}
}
