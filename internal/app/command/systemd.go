package command

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"github.com/signalbox-dev/signalbox/internal/loop"
)

// manager reports the state of the process to systemd, which starts it with Type=notify and restarts it when
// WatchdogSec passes without a report. It does nothing without systemd.
type manager struct {
	log      *slog.Logger
	watchdog *loop.Loop // nil: the service has no watchdog
}

// newManager reads what systemd expects. An error is a variable that systemd would not set.
func newManager(log *slog.Logger) (*manager, error) {
	interval, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		return nil, fmt.Errorf("read the interval of systemd's watchdog from WATCHDOG_USEC and WATCHDOG_PID: %w", err)
	}
	m := &manager{log: log}
	if interval > 0 {
		m.watchdog = loop.New(func(ctx, _ context.Context) time.Duration {
			m.notify(ctx, daemon.SdNotifyWatchdog)
			return interval / 2 // one report may come late
		})
	}
	return m, nil
}

// ready reports the end of the start, and begins to report to the watchdog.
func (m *manager) ready(ctx context.Context) error {
	m.notify(ctx, daemon.SdNotifyReady)
	if m.watchdog == nil {
		return nil
	}
	return m.watchdog.Start(ctx)
}

// stopping reports the begin of the stop.
func (m *manager) stopping(ctx context.Context) { m.notify(ctx, daemon.SdNotifyStopping) }

// stop ends the reports to the watchdog.
func (m *manager) stop(ctx context.Context) error {
	if m.watchdog == nil {
		return nil
	}
	return m.watchdog.Stop(ctx)
}

// notify logs a failure only: a process that works should not end because systemd cannot be reached.
func (m *manager) notify(ctx context.Context, state string) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		m.log.WarnContext(ctx, "systemd could not be notified", "state", state, "error", err)
	}
}
