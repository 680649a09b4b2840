//go:build !linux

package database

import "github.com/signalbox-dev/signalbox/test/platform"

func mountDisk(_ platform.T, skip func(args ...any), _ string, _ int) {
	skip("a file system is mounted on Linux only")
}

// FillDisk needs a server of [StartPostgresOnDisk].
func (*Postgres) FillDisk(platform.T) (free func()) { return func() {} }
