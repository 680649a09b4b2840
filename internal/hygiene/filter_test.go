package hygiene_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
)

// Each condition of RunFilter has its line wherever runs are selected.
func TestConditionsOfRunFilterHaveTheirLines(t *testing.T) {
	t.Parallel()
	var missing []string
	fields := (&signalboxv1.RunFilter{}).ProtoReflect().Descriptor().Fields()
	for path, line := range map[string]string{
		"internal/rpc/message/filter.go":    `(?i)\b(m\.|m\.Get|RunFilter\{.*)%s\b`,
		"internal/cli/runcmd/selection.go":  `(?i)&m\.%s\b`,
		"internal/store/storetest/match.go": `(?i)"%s": +\{`,
		"docs/runs.md":                      "(?m)^\\| .*`%s`.* \\| `--",
		"ui/src/runs/filter.ts":             `(?m)^  %s(: \w+\(|,$)`,
	} {
		text, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(path)))
		require.NoError(t, err)
		for i := range fields.Len() {
			name := fields.Get(i).JSONName()
			if !regexp.MustCompile(strings.ReplaceAll(line, `%s`, name)).Match(text) {
				missing = append(missing, path+" has no line of "+name)
			}
		}
	}
	require.Empty(t, missing)
}
