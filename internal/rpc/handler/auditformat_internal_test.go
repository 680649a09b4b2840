package handler

import (
	"encoding/csv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/timestamppb"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/apperror"
)

func TestAuditFormats(t *testing.T) {
	t.Parallel()
	entry := &signalboxv1.AuditEntry{
		Id: 7, Time: timestamppb.New(time.Date(2026, 3, 1, 12, 0, 0, 5000, time.UTC)), ActorKind: "token", Actor: "ada",
		Action:  "run.cancel",
		Project: "shop", Subject: "r1", Reason: "=HYPERLINK(\"x\"), twice\nover",
		Detail: &signalboxv1.JsonValue{Json: `{"a":1.0}`},
	}
	form, err := auditFormatOf("csv")
	require.NoError(t, err)
	text, err := form.write(form.head, entry)
	require.NoError(t, err)
	rows, err := csv.NewReader(strings.NewReader(string(text))).ReadAll()
	require.NoError(t, err)
	require.Len(t, rows, 2)
	require.Equal(t, []string{
		"7", "2026-03-01T12:00:00.000005Z", "token", "ada", "run.cancel", "shop", "r1", "'=HYPERLINK(\"x\"), twice\nover",
		`{"a":1.0}`,
	}, rows[1], "no formula for a spreadsheet")

	form, err = auditFormatOf("json")
	require.NoError(t, err)
	text, err = form.write(form.head, entry)
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(string(text), "\n"))
	require.Contains(t, string(text), `"detail":{"a":1.0}`)

	_, err = auditFormatOf("xml")
	require.True(t, apperror.Is(err, apperror.InvalidArgument), "%v", err)
}
