package start_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/logger"
	"github.com/signalbox-dev/signalbox/internal/redact"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/start"
)

// TestLogOfRefusedStartHidesSensitiveValues uses refusals that quote the caller's input.
func TestLogOfRefusedStartHidesSensitiveValues(t *testing.T) {
	t.Parallel()
	marks := func(_ context.Context, id, text string) (string, error) {
		return strings.ReplaceAll(text, "pass-"+id, redact.Mark), nil
	}
	unreadable := func(context.Context, string, string) (string, error) {
		return "", errors.New("the database is unavailable")
	}
	for name, tt := range map[string]struct {
		redact  func(context.Context, string, string) (string, error)
		refusal error
		want    string
	}{
		"marks": {marks, errors.New(`"pass-r1" is refused`), redact.Mark + `\" is refused`},
		"reason alone": {unreadable, apperror.New(apperror.Refused, apperror.EngineRefused, "%q is refused", "pass-r1"),
			apperror.EngineRefused},
		"error unknown":    {unreadable, errors.New(`"pass-r1" is refused`), redact.Mark},
		"of unknown start": {marks, errors.Join(run.ErrUnknownOutcome, errors.New(`"pass-r1" is refused`)), redact.Mark},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			service := b.process(t, b.store, func(o *start.Options) { o.Redact = tt.redact })
			var log bytes.Buffer
			ctx := logger.WithContext(b.ctx, slog.New(slog.NewTextHandler(&log, nil)))
			service.NotStarted(ctx, run.Run{ID: "r1", Project: here}, tt.refusal)
			require.Contains(t, log.String(), tt.want)
			require.NotContains(t, log.String(), "pass-r1")
		})
	}
}
