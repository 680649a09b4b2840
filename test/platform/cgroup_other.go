//go:build !linux

package platform

const noGroups = "control groups are a part of Linux"

// InMemoryGroup returns the reason why no process can be limited.
func InMemoryGroup(T, string, int64) (program, reason string) { return "", noGroups }

// InProcessorGroup returns the reason why no process can be limited.
func InProcessorGroup(T, string, float64) (program string, change func(float64), reason string) {
	return "", nil, noGroups
}

func noProcessorGroup() string { return noGroups }
