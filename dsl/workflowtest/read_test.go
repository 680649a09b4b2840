package workflowtest_test

import (
	"encoding/json"
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dsl/workflowtest"
)

func TestWrongFilesHavePositions(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ source, want string }{
		{"cases: [", "1:8: syntax: not valid YAML"},
		{"[]", "1:1: type: a test file must be an object, got an array"},
		{"workflow: a.yaml", `1:1: missing_key: a test file needs the key "cases"`},
		{"cases: [{name: a, expct: {}}]", `1:19: unknown_key: a case has no key "expct" (at /cases/0/expct); did you mean "expect"?`},
		{"cases: [{name: a}]", `1:9: missing_key: the case "a" has no expectation, so it cannot fail`},
		{"cases: [{name: a, expect: {}}]", "1:27: value: an empty expect expects nothing"},
		{"cases: [{name: a, expect: {contains: {}}}]", "this cannot fail"},
		{"cases: [{name: a, expect: {attempts: {}}}]", "this cannot fail"},
		{"cases: [{name: a, expect: {ran: []}}]", "this cannot fail"},
		{"cases: [{name: a, expect: {error: {}}}]", "error names no member"},
		{"cases: [{name: a, expect: {holds: 'true'}}]", "does not depend on the run"},
		{"cases: [{name: a, expect: {holds: '.a |'}}]", "1:35: expression: holds does not compile"},
		{"cases: [{name: a, expect: {status: complete}}]", `did you mean "completed"?`},
		{"cases: [{name: a, expect: {duration: soon}}]", "1:38: value: duration is no duration"},
		{"cases: [{name: a, now: today, expect: {status: failed}}]", "1:24: value: now is no time"},
		{"cases: [{name: 1, expect: {status: failed}}]", `1:16: type: name must be a string, got a number (at /cases/0/name); quote it: "1"`},
		{"cases: [{name: a, mocks: [{}], expect: {status: failed}}]", `a mock needs the key "respond"`},
		{"cases: [{name: a, mocks: [{respond: []}], expect: {status: failed}}]", "respond has no response"},
		{"cases: [{name: a, mocks: [{respond: {status: 99}}], expect: {status: failed}}]", "is not between 200 and 599"},
		{"cases: [{name: a, mocks: [{respond: {status: 200, output: 1}}], expect: {status: failed}}]", "output is the result of another run"},
		{"cases: [{name: a, mocks: [{respond: {status: 200, fail: {type: timeout}}}], expect: {status: failed}}]", "remove the other members"},
		{"cases: [{name: a, mocks: [{respond: {fail: {type: timeouts}}}], expect: {status: failed}}]", `did you mean "timeout"?`},
		{"cases: [{name: a, events: [{at: PT1S, task: a, event: {type: a}}], expect: {status: failed}}]", "remove one of them"},
		{"cases: [{name: a, expect: {status: failed}}, {name: a, expect: {status: failed}}]", `1:46: duplicate_name: there are two cases with the name "a"`},
	} {
		f, violations := workflowtest.Parse([]byte(tt.source))
		require.Nil(t, f, tt.source)
		require.Contains(t, violations.Error(), tt.want, tt.source)
	}
}

func TestFilesAreComparedWithTheirDocument(t *testing.T) {
	t.Parallel()
	doc := parse(t, order)
	for _, tt := range []struct{ source, want string }{
		{"cases: [{name: a, mocks: [{task: charg, respond: {}}], expect: {status: failed}}]",
			`1:27: unknown_reference: the document has no task "charg" (at /cases/0/mocks/0); did you mean "charge"?`},
		{"cases: [{name: a, mocks: [{task: wait, respond: {}}], expect: {status: failed}}]",
			`the task "wait" is of a kind that this does not concern`},
		{"cases: [{name: a, events: [{task: bill, event: {type: a}}], expect: {status: failed}}]",
			`the task "bill" is of a kind that this does not concern`},
		{"cases: [{name: a, secrets: {shp: a}, expect: {status: failed}}]",
			`the document uses no secret "shp"`},
		{"cases: [{name: a, expect: {ran: [bil]}}]", `the document has no task "bil"`},
		{"cases: [{name: a, expect: {attempts: {bil: 1}}}]", `the document has no task "bil"`},
		{"cases: [{name: a, expect: {requests: [{task: bil}]}}]", `the document has no task "bil"`},
	} {
		f, violations := workflowtest.Parse([]byte(tt.source))
		require.Empty(t, violations)
		require.Contains(t, f.Check(doc).Error(), tt.want, tt.source)
	}
}

// The workflow and the tests of the page for authors are as it states.
func TestThePageForAuthors(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/testing.md")
	require.NoError(t, err)
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllSubmatch(page, -1)
	require.Len(t, blocks, 2)
	require.Empty(t, explain(t, string(blocks[0][1]), string(blocks[1][1])))
}

// The page names every key of the tables.
func TestThePageHasEveryKey(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/testing.md")
	require.NoError(t, err)
	var schema any
	require.NoError(t, json.Unmarshal(workflowtest.Schema(), &schema))
	var keys func(any)
	keys = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, item := range v {
				keys(item)
			}
		case map[string]any:
			if properties, ok := v["properties"].(map[string]any); ok {
				for name := range properties {
					require.Regexp(t, "\\b"+name+"\\b", string(page))
				}
			}
			for _, member := range v {
				keys(member)
			}
		}
	}
	keys(schema)
}

func FuzzParse(f *testing.F) {
	f.Add(tests)
	f.Add("cases: [{name: a, expect: {status: failed}}]")
	doc := parse(f, order)
	f.Fuzz(func(t *testing.T, source string) {
		file, violations := workflowtest.Parse([]byte(source))
		require.Equal(t, file == nil, len(violations) > 0)
		if file != nil {
			file.Check(doc)
		}
	})
}
