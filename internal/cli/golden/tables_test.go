package golden_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/hygiene/pages"
)

// TestEveryColumnHasAValue finds the columns of tables that are empty in all examples: a column that is never filled
// looks the same.
func TestEveryColumnHasAValue(t *testing.T) {
	t.Parallel()
	filled := map[string]map[string]bool{}
	files, err := filepath.Glob("testdata/*.golden")
	require.NoError(t, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		fill(widest(string(text)), filled)
	}
	for heads, columns := range filled {
		for column, has := range columns {
			require.True(t, has, "no example has a value in column %q of the table %q", column, heads)
		}
	}
	printed, err := pages.Columns("..")
	require.NoError(t, err)
	require.Greater(t, len(printed), 30)
	for _, columns := range printed {
		heads := strings.NewReplacer("+", "", "#", "", "-", "").Replace(strings.Join(columns, "  "))
		shown := false
		for key := range filled {
			shown = shown || strings.Contains(key, heads)
		}
		require.True(t, shown, "no example prints the table %q", heads)
	}
}

// widest returns the output that has all columns: the wide one, or that of a pipe.
func widest(golden string) (text string) {
	shown := ""
	for section := range strings.SplitSeq(golden, "\n## ") {
		where, output, _ := strings.Cut(section, "\n")
		if output != "(the same)\n" {
			shown = output
		}
		if strings.HasPrefix(where, "pipe") {
			text = shown
		}
	}
	return text
}

// fill notes, by the heads of each table in an output, which columns have a value in some row.
func fill(text string, filled map[string]map[string]bool) {
	headLine, headName := regexp.MustCompile(`^[A-Z0-9]+(?: +[A-Z0-9]+)*$`), regexp.MustCompile(`\S+(?: \S+)*`)
	var columns map[string]bool
	var names []string
	var starts []int
	for line := range strings.SplitSeq(text, "\n") {
		found := headName.FindAllStringIndex(line, -1)
		switch {
		case headLine.MatchString(line) && len(found) > 1:
			names, starts = headName.FindAllString(line, -1), nil
			key := strings.Join(names, "  ")
			if filled[key] == nil {
				filled[key] = map[string]bool{}
			}
			columns = filled[key]
			for i, at := range found {
				starts = append(starts, at[0])
				columns[names[i]] = columns[names[i]] || false
			}
		case line == "" || strings.HasPrefix(line, "-- "):
			columns = nil
		case columns != nil:
			cells := []rune(line)
			for i, name := range names {
				end := len(cells)
				if i+1 < len(starts) {
					end = min(end, starts[i+1])
				}
				columns[name] = columns[name] || starts[i] < end && strings.TrimSpace(string(cells[starts[i]:end])) != ""
			}
		}
	}
}
