package logger

import (
	"context"
	"errors"
	"log/slog"
	"slices"
)

// Temporal is a logger for Temporal's SDK: it satisfies go.temporal.io/sdk/log.Logger without importing it. Lines keep
// their level and have component=temporal.
type Temporal struct {
	log *slog.Logger
}

// ForTemporal returns an adapter that writes the SDK's lines to log.
func ForTemporal(log *slog.Logger) Temporal {
	return Temporal{log: log.With("component", "temporal")}
}

// Debug implements the SDK's logger.
func (t Temporal) Debug(message string, keyvals ...any) { t.log.Debug(message, typed(keyvals)...) }

// Info implements the SDK's logger.
func (t Temporal) Info(message string, keyvals ...any) { t.log.Info(message, typed(keyvals)...) }

// Warn implements the SDK's logger. That a request was canceled is no warning: the SDK warns of the last heartbeat of each
// activity that ends while the request is on its way.
func (t Temporal) Warn(message string, keyvals ...any) {
	if slices.ContainsFunc(keyvals, isCanceled) {
		t.Debug(message, keyvals...)
		return
	}
	t.log.Warn(message, typed(keyvals)...)
}

// isCanceled reports whether a value is the error of a canceled request, which Temporal returns as a text of its own.
func isCanceled(value any) bool {
	err, is := value.(error)
	return is && (errors.Is(err, context.Canceled) || err.Error() == context.Canceled.Error())
}

// Error implements the SDK's logger.
func (t Temporal) Error(message string, keyvals ...any) { t.log.Error(message, typed(keyvals)...) }

// typed replaces application errors by their types, without their texts: the error text of an activity may quote its
// input, and belongs to the run, which shows it with marks. The SDK's own errors stay unchanged.
func typed(keyvals []any) []any {
	for i, value := range keyvals {
		var application interface {
			error
			Type() string
		}
		if err, is := value.(error); is && errors.As(err, &application) {
			keyvals = slices.Clone(keyvals)
			keyvals[i] = "an application error of type " + application.Type()
		}
	}
	return keyvals
}
