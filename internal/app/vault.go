package app

import (
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/vault"
)

// inspecting starts runs with their original inputs, and looks at them in Temporal.
type inspecting struct {
	*vault.Starter
	run.Inspector
}
