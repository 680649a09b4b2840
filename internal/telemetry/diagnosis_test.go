package telemetry_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/telemetry"
)

func TestDiagnosis(t *testing.T) {
	t.Parallel()
	tel := newTelemetry(t)
	elected := true
	require.NoError(t, tel.ObserveDiagnosis(
		func() telemetry.Diagnosis {
			return telemetry.Diagnosis{Limit: 12.5, Granted: 7, Delayed: 2, Refused: 1}
		},
		func() (int64, bool) { return 3, elected },
	))
	want := []string{
		"signalbox_diagnosis_budget 12.5",
		`signalbox_diagnosis_requests_total{outcome="delayed"} 2`,
		`signalbox_diagnosis_requests_total{outcome="granted"} 7`,
		`signalbox_diagnosis_requests_total{outcome="refused"} 1`,
		"signalbox_diagnosis_undecided_runs 3",
	}
	require.Equal(t, want, lines(scrape(t, tel), "signalbox_diagnosis"))
	elected = false
	require.Equal(t, want[:4], lines(scrape(t, tel), "signalbox_diagnosis"), "another process has the number")
}
