//go:build !linux

package conformance_test

import (
	"errors"
	"syscall"
)

func namespaces() *syscall.SysProcAttr { return nil }

func setUpNamespaces() error { return errors.ErrUnsupported }
