package audit_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/auth"
)

func TestNewEntryNamesActor(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	ada := auth.Actor{Kind: auth.KindLocal, Name: "ada"}
	tests := []struct {
		name string
		ctx  context.Context
		want auth.Actor
	}{
		{"the actor of the request", auth.WithActor(t.Context(), ada), ada},
		{"signalbox where nobody asked", t.Context(), auth.System()},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, audit.Entry{
				Time: at, Actor: tt.want, Action: "run.cancel", Project: "default", Subject: "r1", Reason: "too slow",
			}, audit.NewEntry(tt.ctx, at, audit.RunCancel, "default", "r1", "too slow"))
		})
	}
}
