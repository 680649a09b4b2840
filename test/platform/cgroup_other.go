//go:build !linux

package platform

// InMemoryGroup returns the reason why no process can be limited.
func InMemoryGroup(T, string, int64) (program, reason string) {
	return "", "control groups are a part of Linux"
}
