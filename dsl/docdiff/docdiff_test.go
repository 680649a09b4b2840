package docdiff_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/docdiff"
)

func parse(t *testing.T, rest string) *dsl.Document {
	t.Helper()
	doc, violations := dsl.Parse([]byte("document: {dsl: '1.0.3', namespace: a, name: b, version: '1.0.0'}\n" + rest))
	require.False(t, violations.HasErrors(), "%v", violations)
	return doc
}

const base = `do: [{a: {set: {n: 1}}}, {b: {wait: PT1S}}, {c: {try: [{x: {set: {n: 1}}}], catch: {do: [{y: {set: {n: 2}}}]}}}]`

func TestCompare(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, after string
		want        []string
	}{
		{"nothing", base, nil},
		{"added in front", `do: [{new: {wait: PT1S}}, {a: {set: {n: 1}}}, {b: {wait: PT1S}}, {c: {try: [{x: {set: {n: 1}}}], catch: {do: [{y: {set: {n: 2}}}]}}}]`,
			[]string{"added new  /do/0/new []"}},
		{"removed", `do: [{a: {set: {n: 1}}}, {c: {try: [{x: {set: {n: 1}}}], catch: {do: [{y: {set: {n: 2}}}]}}}]`,
			[]string{"removed b /do/1/b  []"}},
		{"order", `do: [{b: {wait: PT1S}}, {c: {try: [{x: {set: {n: 1}}}], catch: {do: [{y: {set: {n: 2}}}]}}}, {a: {set: {n: 1}}}]`,
			[]string{"moved a /do/0/a /do/2/a []"}},
		{"into another list", `do: [{b: {wait: PT1S}}, {c: {try: [{a: {set: {n: 1}}}, {x: {set: {n: 1}}}], catch: {do: [{y: {set: {n: 2}}}]}}}]`,
			[]string{"moved a /do/0/a /do/1/c/try/0/a []"}},
		{"own members only", `do: [{a: {set: {n: 2}, then: c}}, {b: {wait: PT1S}}, {c: {try: [{x: {set: {n: 1}}}], catch: {as: e, do: [{y: {set: {n: 3}}}]}}}]`,
			[]string{"changed a /do/0/a /do/0/a [set.n then]", "changed c /do/2/c /do/2/c [catch.as]",
				"changed y /do/2/c/catch/do/0/y /do/2/c/catch/do/0/y [set.n]"}},
		{"another kind", `do: [{a: {wait: PT1S}}, {b: {wait: PT1S}}, {c: {try: [{x: {set: {n: 1}}}], catch: {do: [{y: {set: {n: 2}}}]}}}]`,
			[]string{"changed a /do/0/a /do/0/a [set wait]"}},
		{"outside of tasks", "timeout: {after: PT1H}\n" + base, []string{"added   /timeout []"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, c := range docdiff.Compare(parse(t, base), parse(t, tt.after)) {
				got = append(got, fmt.Sprintf("%s %s %s %s %v", c.Kind, c.Task, c.Before, c.After, c.Parts))
			}
			require.Equal(t, tt.want, got)
		})
	}
}
