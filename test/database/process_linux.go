package database

import "syscall"

// attributes makes Postgres run as an account of its own and end with the tests.
func attributes(a *account) *syscall.SysProcAttr {
	out := &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if a != nil {
		out.Credential = &syscall.Credential{Uid: a.uid, Gid: a.gid}
	}
	return out
}
