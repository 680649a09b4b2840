//go:build linux && (amd64 || arm64)

package process

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"runtime"
	"slices"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// Offsets in the data that a seccomp filter reads, see struct seccomp_data of Linux. The low half of an argument is
// first on the architectures that are supported.
const (
	numberOffset       = 0
	architectureOffset = 4
	argumentsOffset    = 16
)

// x32 is the first number of the system calls of another interface of amd64.
const x32 = 0x40000000

// namespaceFlags are the flags of clone that make namespaces.
const namespaceFlags = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC |
	unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET

// denied are the system calls that manage the kernel, other processes, mounts and namespaces, and those of subsystems
// that programs do not need and in which defects were frequent.
func denied() []uintptr {
	return append([]uintptr{
		unix.SYS_ACCT, unix.SYS_ADD_KEY, unix.SYS_ADJTIMEX, unix.SYS_BPF, unix.SYS_CHROOT, unix.SYS_CLOCK_ADJTIME,
		unix.SYS_CLOCK_SETTIME, unix.SYS_DELETE_MODULE, unix.SYS_FANOTIFY_INIT, unix.SYS_FINIT_MODULE, unix.SYS_FSCONFIG,
		unix.SYS_FSMOUNT, unix.SYS_FSOPEN, unix.SYS_FSPICK, unix.SYS_GET_MEMPOLICY, unix.SYS_INIT_MODULE,
		unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER, unix.SYS_IO_URING_SETUP, unix.SYS_KCMP,
		unix.SYS_KEXEC_FILE_LOAD, unix.SYS_KEXEC_LOAD, unix.SYS_KEYCTL, unix.SYS_LOOKUP_DCOOKIE, unix.SYS_MBIND,
		unix.SYS_MIGRATE_PAGES, unix.SYS_MOUNT, unix.SYS_MOUNT_SETATTR, unix.SYS_MOVE_MOUNT, unix.SYS_MOVE_PAGES,
		unix.SYS_NAME_TO_HANDLE_AT, unix.SYS_NFSSERVCTL, unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_OPEN_TREE,
		unix.SYS_PERF_EVENT_OPEN, unix.SYS_PERSONALITY, unix.SYS_PIDFD_GETFD, unix.SYS_PIVOT_ROOT,
		unix.SYS_PROCESS_MADVISE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PTRACE,
		unix.SYS_QUOTACTL, unix.SYS_REBOOT, unix.SYS_REQUEST_KEY, unix.SYS_SET_MEMPOLICY, unix.SYS_SETDOMAINNAME,
		unix.SYS_SETHOSTNAME, unix.SYS_SETNS, unix.SYS_SETTIMEOFDAY, unix.SYS_SWAPOFF, unix.SYS_SWAPON, unix.SYS_SYSLOG,
		unix.SYS_UMOUNT2, unix.SYS_UNSHARE, unix.SYS_USERFAULTFD, unix.SYS_VHANGUP,
		// They make memory and files that the limits of a process do not count.
		unix.SYS_SHMGET, unix.SYS_MSGGET, unix.SYS_SEMGET, unix.SYS_MQ_OPEN,
	}, deniedHere()...)
}

// filter returns the seccomp filter of commands. It denies system calls with an error, so that programs can go on
// without them.
func filter() ([]byte, error) {
	if architecture == 0 {
		return nil, fmt.Errorf("there is no seccomp filter for the architecture %s", runtime.GOARCH)
	}
	deny := func(errno unix.Errno) bpf.Instruction {
		return bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(errno)}
	}
	program := []bpf.Instruction{
		bpf.LoadAbsolute{Off: architectureOffset, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: architecture, SkipTrue: 1},
		bpf.RetConstant{Val: unix.SECCOMP_RET_KILL_PROCESS},
		bpf.LoadAbsolute{Off: numberOffset, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpLessThan, Val: x32, SkipTrue: 1},
		deny(unix.ENOSYS),
	}
	for _, number := range slices.Sorted(slices.Values(denied())) {
		program = append(program, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: uint32(number), SkipTrue: 1}, //nolint:gosec // it is small
			deny(unix.EPERM))
	}
	program = append(program,
		// A filter cannot read the flags of clone3: they are in memory. The C library uses clone instead.
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.SYS_CLONE3, SkipTrue: 1},
		deny(unix.ENOSYS),
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.SYS_CLONE, SkipTrue: 4},
		bpf.LoadAbsolute{Off: argumentsOffset, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpBitsNotSet, Val: namespaceFlags, SkipTrue: 1},
		deny(unix.EPERM),
		bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW},
		// Terminals: a program must not write into the input of one.
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.SYS_IOCTL, SkipTrue: 5},
		bpf.LoadAbsolute{Off: argumentsOffset + 8, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.TIOCSTI, SkipTrue: 1},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.TIOCLINUX, SkipTrue: 1},
		deny(unix.EPERM),
		bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW},
		// Sockets: of the internet and of the host. Others, such as those between virtual machines, have no namespaces.
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.SYS_SOCKET, SkipTrue: 2},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.SYS_SOCKETPAIR, SkipTrue: 1},
		bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW},
		bpf.LoadAbsolute{Off: argumentsOffset, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.AF_UNIX, SkipTrue: 3},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.AF_INET, SkipTrue: 2},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.AF_INET6, SkipTrue: 1},
		deny(unix.EAFNOSUPPORT),
		bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW},
	)
	assembled, err := bpf.Assemble(program)
	if err != nil {
		return nil, fmt.Errorf("making the seccomp filter: %w", err)
	}
	var encoded bytes.Buffer
	for _, i := range assembled {
		// A write to a buffer never fails.
		_ = binary.Write(&encoded, binary.NativeEndian, unix.SockFilter{Code: i.Op, Jt: i.Jt, Jf: i.Jf, K: i.K})
	}
	return encoded.Bytes(), nil
}
