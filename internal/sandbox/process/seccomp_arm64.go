//go:build linux

package process

import "golang.org/x/sys/unix"

// architecture is the architecture whose system calls the filter knows.
const architecture = unix.AUDIT_ARCH_AARCH64

// deniedHere are system calls that this architecture alone has.
func deniedHere() []uintptr { return nil }
