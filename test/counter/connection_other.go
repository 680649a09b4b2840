//go:build !linux

package counter

import "errors"

// Connections is not supported: only Linux has the kernel table.
func Connections(int, int) (int, error) { return 0, errors.ErrUnsupported }
