package replay_test

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dsl/interp"
	"github.com/signalbox-dev/signalbox/dsl/workflowtest"
	"github.com/signalbox-dev/signalbox/test/agreement"
	"github.com/signalbox-dev/signalbox/test/replay/scenario"
)

// services is the address of the services that recorded runs called.
const services = "http://services.example:8000"

// agrees compares a recorded run with its test. The test has the responses of [scenario.Services], because a run shows
// what its tasks made of them.
func agrees(t *testing.T, s scenario.Scenario, records *ledger) {
	t.Helper()
	if s.Cancel {
		return // a person canceled it, and no test has persons
	}
	doc, err := s.Document()
	require.NoError(t, err)
	var steps []interp.StepRecord
	for _, number := range slices.Sorted(maps.Keys(records.steps)) {
		steps = append(steps, records.steps[number])
	}
	export, err := json.Marshal(map[string]any{
		"format":  "signalbox.run/1",
		"version": map[string]any{"source": s.Source},
		"steps":   steps,
		"run": map[string]any{"id": "recorded", "status": records.run.Status, "startTime": steps[0].StartedAt, "input": map[string]any{
			"base": services}, "output": records.run.Output, "error": records.run.Error},
	})
	require.NoError(t, err)
	export = regexp.MustCompile(`http://127\.0\.0\.1:\d+`).ReplaceAll(export, []byte(services))
	require.NoError(t, agreement.Compare(t.Context(), agreement.Run{Export: export, Document: doc,
		Correct: func(c *workflowtest.Case) { c.Mocks = slices.Concat(mocks(t), c.Mocks) }}))
}

// mocks returns mocks that answer as the services and functions of recorded runs.
func mocks(t *testing.T) []workflowtest.Mock {
	t.Helper()
	var out []workflowtest.Mock
	for request, answers := range scenario.Services() {
		method, path, _ := strings.Cut(request, " ")
		m := workflowtest.Mock{When: `.method == "` + method + `" and .url == "` + services + path + `"`}
		for _, a := range answers {
			response := workflowtest.Response{Status: a.Status, HasBody: a.Body != ""}
			if json.Unmarshal([]byte(a.Body), &response.Body) != nil {
				response.Body = a.Body
			}
			m.Respond = append(m.Respond, response)
		}
		out = append(out, m)
	}
	return append(out, workflowtest.Mock{Task: "double", Respond: []workflowtest.Response{{Output: 42, HasOutput: true}}})
}
