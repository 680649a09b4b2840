//go:build !linux

package database

import "syscall"

// attributes makes Postgres run as an account of its own.
func attributes(a *account) *syscall.SysProcAttr {
	out := &syscall.SysProcAttr{Setpgid: true}
	if a != nil {
		out.Credential = &syscall.Credential{Uid: a.uid, Gid: a.gid}
	}
	return out
}
