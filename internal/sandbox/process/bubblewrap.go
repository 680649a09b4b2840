//go:build linux && (amd64 || arm64)

package process

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/signalbox-dev/signalbox/internal/sandbox/limit"
)

const (
	// work is the folder of a command in bubblewrap: its home, its folder for temporary files, and where it starts.
	work = "/tmp"
	// account is the user id and group id that a command in bubblewrap sees.
	account = "1000"
	// sharedBytes bounds /dev/shm.
	sharedBytes = 8 << 20
)

// systemFiles are the files beside the programs and libraries of the host that programs need.
var systemFiles = []string{"/etc/alternatives", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d"} //nolint:gochecknoglobals // a constant

// resolverFiles are those that programs need to resolve names, and certificateFiles those to check servers.
var (
	resolverFiles    = []string{"/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf"}         //nolint:gochecknoglobals // a constant
	certificateFiles = []string{"/etc/ssl/certs", "/etc/pki/tls/certs", "/etc/ca-certificates"} //nolint:gochecknoglobals // a constant
)

// arguments returns the options of bubblewrap.
func (x *execution) arguments(environment map[string]string) []string {
	list := []string{
		"--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try",
		"--die-with-parent", "--new-session", "--cap-drop", "ALL", "--clearenv",
		"--uid", account, "--gid", account, "--hostname", "program",
		"--ro-bind", "/usr", "/usr",
	}
	files := systemFiles
	switch x.limits.Network {
	case limit.Host:
		files = slices.Concat(files, resolverFiles, certificateFiles)
	case limit.Guarded: // the command begins in a network namespace
		files = slices.Concat(files, certificateFiles)
	default:
		list = append(list, "--unshare-net")
	}
	for _, folder := range []string{"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"} {
		if target, err := os.Readlink(folder); err == nil {
			list = append(list, "--symlink", target, folder)
		} else {
			list = append(list, "--ro-bind-try", folder, folder)
		}
	}
	for _, file := range files {
		source := file
		if target, err := filepath.EvalSymlinks(file); err == nil {
			source = target
		}
		list = append(list, "--ro-bind-try", source, file)
	}
	list = append(list, "--proc", "/proc", "--dev", "/dev", "--size", strconv.Itoa(sharedBytes), "--tmpfs", "/dev/shm",
		"--remount-ro", "/dev", "--size", strconv.FormatInt(x.limits.Disk, 10), "--tmpfs", work, "--chdir", work,
		"--remount-ro", "/")
	for name, value := range environment {
		list = append(list, "--setenv", name, value)
	}
	return list
}
