package logger

import "log/slog"

// Temporal is a logger for Temporal's SDK: it satisfies go.temporal.io/sdk/log.Logger without importing
// it. Lines keep their level and carry component=temporal.
type Temporal struct {
	log *slog.Logger
}

// ForTemporal returns an adapter that writes the SDK's lines to log.
func ForTemporal(log *slog.Logger) Temporal {
	return Temporal{log: log.With("component", "temporal")}
}

// Debug implements the SDK's logger.
func (t Temporal) Debug(message string, keyvals ...any) { t.log.Debug(message, keyvals...) }

// Info implements the SDK's logger.
func (t Temporal) Info(message string, keyvals ...any) { t.log.Info(message, keyvals...) }

// Warn implements the SDK's logger.
func (t Temporal) Warn(message string, keyvals ...any) { t.log.Warn(message, keyvals...) }

// Error implements the SDK's logger.
func (t Temporal) Error(message string, keyvals ...any) { t.log.Error(message, keyvals...) }
