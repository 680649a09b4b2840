package workflowcmd

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBumpChangesTheVersionOnly(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]string{
		"# v\ndocument:\n  name: a  # 1.2.3\n  version: '1.2.3' # now\ndo: []\n": "# v\ndocument:\n  name: a  # 1.2.3\n  " +
			"version: '1.2.4' # now\ndo: []\n",
		"document: {version: 0.9.9, name: x}\r\n":                             "document: {version: 0.9.10, name: x}\r\n",
		`{"do": [], "document": {"dsl": "1.0.0", "version": "1.0.0-rc.1+b"}}`: `{"do": [], "document": {"dsl": "1.0.0", "version": "1.0.1"}}`,
	} {
		got, err := bumped([]byte(source))
		require.NoError(t, err, source)
		require.Equal(t, want, string(got))
	}
	for source, violation := range map[string]string{
		"do: []\n": "document.version is missing", "document: {version: one}\n": "no third number", "a: [\n": "yaml",
		`{"document": {"version": "1.0.\u0031"}}`: "without escapes",
	} {
		_, err := bumped([]byte(source))
		require.ErrorContains(t, err, violation, source)
	}
}
