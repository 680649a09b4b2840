package examples_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/jq"
)

// Each recipe of the page about expressions gives its output, or fails as it says, as the task of a run that begins at
// the time of the page.
func TestRecipesOfExpressions(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/expressions.md")
	require.NoError(t, err)
	recipes := regexp.MustCompile("(?m)^```\ninput +(.*)\nexpression +(.*)\n(output|fails) +(.*)\n```$").
		FindAllStringSubmatch(string(page), -1)
	require.Greater(t, len(recipes), 40)
	require.Len(t, recipes, strings.Count(string(page), "\nexpression  "), "a recipe has another form")
	for _, recipe := range recipes {
		t.Run(recipe[2], func(t *testing.T) {
			t.Parallel()
			input, err := jq.DecodeJSON([]byte(recipe[1]))
			require.NoError(t, err)
			expression, err := jq.EncodeJSON("${ " + recipe[2] + " }")
			require.NoError(t, err)
			document, problems := dsl.Parse(fmt.Appendf(nil,
				"document: {dsl: '1.0.3', namespace: a, name: b, version: '1.0.0'}\ndo:\n  - recipe: {set: %s}\n", expression))
			require.Empty(t, problems)
			outcome, _ := run(t, nil, document, input)
			if recipe[3] == "fails" {
				require.NotNil(t, outcome.Error)
				require.Contains(t, outcome.Error.Detail, recipe[4])
				return
			}
			require.Nil(t, outcome.Error)
			output, err := jq.EncodeJSON(outcome.Output)
			require.NoError(t, err)
			require.JSONEq(t, recipe[4], string(output))
		})
	}
}
