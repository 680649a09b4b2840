package run_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/run"
)

func TestEnclosingTries(t *testing.T) {
	t.Parallel()
	for path, want := range map[string][]string{
		"":                                          nil,
		"/do/0/try":                                 nil,
		"/do/0/catch/try/0/retry":                   {"/do/0/catch"},
		"/do/0/a/for/3/do/0/b#2/try/1/call":         {"/do/0/a/for/3/do/0/b#2"},
		"/do/0/a/retry/2/try/0/b/catch/do/0/c":      {"/do/0/a/retry/2/try/0/b", "/do/0/a"},
		"/do/0/f/fork/branches/1/try/do/0/x":        nil,
		"/do/0/l/foreach/7/do/0/t/try/0/for/do/0/c": {"/do/0/l/foreach/7/do/0/t"},
		"/do/0/a/try":                               nil,
	} {
		require.Equal(t, want, run.EnclosingTries(path), path)
	}
}

func TestCaught(t *testing.T) {
	t.Parallel()
	const path = "/do/0/outer/try/0/inner/try/0/call"
	for name, tt := range map[string]struct {
		statuses map[string]string
		want     *bool
	}{
		"by the inner try": {
			map[string]string{"/do/0/outer": "running", "/do/0/outer/try/0/inner": "completed"}, new(true)},
		"by the outer try": {
			map[string]string{"/do/0/outer": "completed", "/do/0/outer/try/0/inner": "failed"}, new(true)},
		"by none": {
			map[string]string{"/do/0/outer": "failed", "/do/0/outer/try/0/inner": "failed"}, new(false)},
		"not yet": {
			map[string]string{"/do/0/outer": "waiting", "/do/0/outer/try/0/inner": "failed"}, new(false)},
		"inner try not listed":     {map[string]string{"/do/0/outer": "running"}, nil},
		"outer caught in any case": {map[string]string{"/do/0/outer": "completed"}, new(true)},
	} {
		require.Equal(t, tt.want, run.Caught(path, tt.statuses), name)
	}
	require.Equal(t, new(false), run.Caught("/do/0/call", nil), "inside of no try")
}
