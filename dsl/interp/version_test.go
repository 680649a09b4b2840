package interp_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dsl/interp"
)

// TestRunsKeepTheirInterpreter: a run that an earlier version began means what it meant then.
func TestRunsKeepTheirInterpreter(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ source, input, before, now string }{
		"conditions of a catch": {`
do:
  - t:
      try: [{r: {raise: {error: {type: 'https://e/x', status: 503}}}}]
      catch: {when: .status == 1, do: [{h: {set: {caught: true}}}], then: end}`,
			`{"status": 1}`, `{"caught": true}`, ``},
		"loose mode": {`
evaluate: {mode: loose}
do: [{s: {set: {a: '1 + 1', b: .x.y, c: .x}}}]`, `{"x": {"y": 1}}`, `{"a": "1 + 1", "b": 1, "c": {"y": 1}}`,
			`{"a": 2, "b": 1, "c": {"y": 1}}`},
		"retries without a delay": {`
do:
  - t:
      try: [{r: {raise: {error: {type: 'https://e/x', status: 503}}}}]
      catch:
        retry: {limit: {attempt: {count: 5}}}
        do: [{h: {set: '${ now - ($workflow.startedAt.epoch.seconds) | . * 10 | round }'}}]`, `{}`, `0`, `31`},
		"messages of schemas": {`
do:
  - t:
      try: [{s: {input: {schema: {document: {type: number}}}, set: {x: 1}}}]
      catch: {do: [{h: {set: '${ $error.detail | split(": ")[1:] }'}}]}`, `{}`,
			`["\"\"", "got object, want number"]`, `["got object, want number"]`},
		"dates with a fraction": {`do: [{s: {set: {at: '${ try (.at | fromdate) catch "no" }'}}}]`,
			`{"at": "2026-11-20T03:00:00.5Z"}`, `{"at": "no"}`, `{"at": 1795143600.5}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for version, want := range map[int]string{1: tt.before, interp.Version: tt.now} {
				w := newDriver(t, document(tt.source), tt.input)
				w.m = interp.New(w.doc, interp.Start{RunID: "run-1", Input: value(t, tt.input), At: epoch, Interpreter: version},
					w.limits)
				if want == "" {
					require.Equal(t, interp.StatusFailed, w.run().Status, "version %d", version)
					continue
				}
				w.completes(want)
			}
		})
	}
}
