package patch_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/redact"
	"github.com/signalbox-dev/signalbox/internal/run/patch"
)

const mark = redact.Mark

func raw(text string) json.RawMessage { return json.RawMessage(text) }

func patched(original, shown, change string) (string, error) {
	out, err := patch.Patched(raw(original), raw(shown), raw(change), mark, 1000)
	return string(out), err
}

func TestPatches(t *testing.T) {
	t.Parallel()
	const secret = `{"name":"Ada","password":"hunter22","tags":["a","b"],"nested":{"token":{"v":"s3cret"},"n":1.10}}`
	const shown = `{"name":"Ada","password":"` + mark + `","tags":["a","b"],"nested":{"token":"` + mark + `","n":1.10}}`
	with := func(pairs ...string) string { return strings.NewReplacer(pairs...).Replace(secret) }
	tests := []struct{ name, patch, want string }{
		{"no operation", ` [ ] `, secret},
		{"null", `null`, secret},
		{"replace keeps what was not shown", `[{"op":"replace","path":"/name","value":"Bob"}]`, with(`"Ada"`, `"Bob"`)},
		{"replace of a sensitive value", `[{"op":"replace","path":"/password","value":"new"}]`, with(`hunter22`, `new`)},
		{"removal of a sensitive value", `[{"op":"remove","path":"/password"}]`, with(`"password":"hunter22",`, ``)},
		{"removal of a sensitive object", `[{"op":"remove","path":"/nested/token"}]`, with(`"token":{"v":"s3cret"},`, ``)},
		{"add to a list", `[{"op":"add","path":"/tags/1","value":"x"},{"op":"add","path":"/tags/-","value":"y"},{"op":"add","path":"/tags/4","value":"z"}]`,
			with(`["a","b"]`, `["a","x","b","y","z"]`)},
		{"remove from a list", `[{"op":"remove","path":"/tags/0"}]`, with(`["a","b"]`, `["b"]`)},
		{"move", `[{"op":"move","from":"/name","path":"/tags/0"}]`,
			with(`"name":"Ada",`, ``, `["a","b"]`, `["Ada","a","b"]`)},
		{"copy is no reference", `[{"op":"copy","from":"/tags","path":"/nested/tags"},{"op":"add","path":"/tags/-","value":"c"}]`,
			with(`["a","b"]`, `["a","b","c"]`, `"n":1.10`, `"n":1.10,"tags":["a","b"]`)},
		{"what is added is no reference",
			`[{"op":"add","path":"/x","value":{"l":[]}},{"op":"add","path":"/x/l/-","value":1}]`, with(`{"name"`,
				`{"x":{"l":[1]},"name"`)},
		{"test that holds", `[{"op":"test","path":"/nested/n","value":1.1},{"op":"test","path":"/tags","value":["a","b"]},{"op":"replace","path":"/name","value":null}]`,
			with(`"Ada"`, `null`)},
		{"the whole", `[{"op":"replace","path":"","value":{}}]`, `{}`},
		{"odd names", `[{"op":"add","path":"/a~1b~0c","value":1}]`, with(`{"name"`, `{"a/b~c":1,"name"`)},
		{"digits", `[{"op":"add","path":"/n","value":12345678901234567890.10}]`,
			with(`{"name"`, `{"n":12345678901234567890.10,"name"`)},
		{"text as it is", `[{"op":"add","path":"/n","value":"<&>\u2028"}]`, with(`{"name"`, `{"n":"<&>\u2028","name"`)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := patched(secret, shown, tt.patch)
			require.NoError(t, err)
			require.JSONEq(t, tt.want, got)
			for _, number := range []string{"1.10", "12345678901234567890.10"} {
				require.Equal(t, strings.Contains(tt.want, number), strings.Contains(got, number), "numbers keep their text")
			}
		})
	}
}

// TestMembersKeepTheirOrder: members that an edit does not concern stay where they are, new ones are the last.
func TestMembersKeepTheirOrder(t *testing.T) {
	t.Parallel()
	const original = `{"z":1,"a":{"y":[{"q":1,"b":2}],"c":3},"m":"<&>"}`
	for patch, want := range map[string]string{
		`[{"op":"replace","path":"/z","value":{"k":1,"j":2}}]`:                                                `{"z":{"k":1,"j":2},"a":{"y":[{"q":1,"b":2}],"c":3},"m":"<&>"}`,
		`[{"op":"add","path":"/b","value":1},{"op":"add","path":"/0","value":2}]`:                             `{"z":1,"a":{"y":[{"q":1,"b":2}],"c":3},"m":"<&>","b":1,"0":2}`,
		`[{"op":"replace","path":"/a/y/0/q","value":9}]`:                                                      `{"z":1,"a":{"y":[{"q":9,"b":2}],"c":3},"m":"<&>"}`,
		`[{"op":"remove","path":"/a/y"}]`:                                                                     `{"z":1,"a":{"c":3},"m":"<&>"}`,
		`[{"op":"move","from":"/a","path":"/n"},{"op":"remove","path":"/m"}]`:                                 `{"z":1,"n":{"y":[{"q":1,"b":2}],"c":3}}`,
		`[{"op":"remove","path":"/z"},{"op":"add","path":"/z","value":4}]`:                                    `{"a":{"y":[{"q":1,"b":2}],"c":3},"m":"<&>","z":4}`,
		`[{"op":"copy","from":"/a/y/0","path":"/a/y/0"},{"op":"test","path":"/a/y/1","value":{"b":2,"q":1}}]`: `{"z":1,"a":{"y":[{"q":1,"b":2},{"q":1,"b":2}],"c":3},"m":"<&>"}`,
	} {
		got, err := patched(original, original, patch)
		require.NoError(t, err, patch)
		require.Equal(t, want, got, patch)
	}
}

func TestPatchesOfAnyJSON(t *testing.T) {
	t.Parallel()
	for _, original := range []string{`null`, `7`, `"text"`, `[]`, `{}`, ` {"a": 1} `} {
		got, err := patched(original, original, `[{"op":"replace","path":"","value":[1]}]`)
		require.NoError(t, err, original)
		require.Equal(t, `[1]`, got)
	}
}

// TestPatchesRevealNothingRedacted tries every operation that could let an operator read or guess a sensitive value.
func TestPatchesRevealNothingRedacted(t *testing.T) {
	t.Parallel()
	const secret, shown = `{"a":{"password":"hunter22"},"note":""}`, `{"a":{"password":"` + mark + `"},"note":""}`
	for name, patch := range map[string]string{
		"a right guess":          `[{"op":"test","path":"/a/password","value":"hunter22"}]`,
		"a wrong guess":          `[{"op":"test","path":"/a/password","value":"guess"}]`,
		"a guess of its parent":  `[{"op":"test","path":"/a","value":{"password":"hunter22"}}]`,
		"a test of the mark":     `[{"op":"test","path":"/a/password","value":"` + mark + `"}]`,
		"copied":                 `[{"op":"copy","from":"/a/password","path":"/note"}]`,
		"copied with its parent": `[{"op":"copy","from":"/a","path":"/note"}]`,
		"moved":                  `[{"op":"move","from":"/a/password","path":"/note"}]`,
		"the mark as a value":    `[{"op":"replace","path":"/a/password","value":"` + mark + `"}]`,
		"the mark within":        `[{"op":"add","path":"/b","value":[{"x":"Bearer ` + mark + `"}]}]`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := patched(secret, shown, patch)
			require.True(t, apperror.Is(err, apperror.InputRedacted), "%v", err)
			require.NotContains(t, err.Error(), "hunter22")
			f, _ := apperror.From(err)
			require.Equal(t, apperror.Invalid, f.Class)
			require.True(t, strings.HasPrefix(f.Fields[0].Path, "patch/0/"), f.Fields[0].Path)
		})
	}
	// A value that equals the mark but was part of the original belongs to it.
	got, err := patched(`{"a":"`+mark+`"}`, `{"a":"`+mark+`"}`, `[{"op":"add","path":"/b","value":1}]`)
	require.NoError(t, err)
	require.JSONEq(t, `{"a":"`+mark+`","b":1}`, got)
}

// TestPatchesMoveNoRedactedItem: an item of a list is sensitive for its index, so that a patch which moved it to
// another one would show it.
func TestPatchesMoveNoRedactedItem(t *testing.T) {
	t.Parallel()
	const secret, shown = `{"list":["a","4711","b",{"pin":"4712"}],"note":"x"}`, `{"list":["a","` + mark +
		`","b",{"pin":"` + mark + `"}],"note":"x"}`
	for name, patch := range map[string]string{
		"add before":             `[{"op":"add","path":"/list/0","value":"new"}]`,
		"add at it":              `[{"op":"add","path":"/list/1","value":"new"}]`,
		"add before one within":  `[{"op":"add","path":"/list/3","value":"new"}]`,
		"remove before":          `[{"op":"remove","path":"/list/0"}]`,
		"remove one, moves next": `[{"op":"remove","path":"/list/1"}]`,
		"copy before":            `[{"op":"copy","from":"/note","path":"/list/0"}]`,
		"move out":               `[{"op":"move","from":"/list/0","path":"/out"}]`,
		"move in":                `[{"op":"move","from":"/note","path":"/list/2"}]`,
		"move within":            `[{"op":"move","from":"/list/2","path":"/list/0"}]`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := patched(secret, shown, patch)
			require.True(t, apperror.Is(err, apperror.InputRedacted), "%v", err)
			require.ErrorContains(t, err, "another index")
		})
	}
	for patch, want := range map[string]string{
		`[{"op":"add","path":"/list/-","value":1}]`:                                         `{"list":["a","4711","b",{"pin":"4712"},1],"note":"x"}`,
		`[{"op":"add","path":"/list/4","value":1}]`:                                         `{"list":["a","4711","b",{"pin":"4712"},1],"note":"x"}`,
		`[{"op":"remove","path":"/list/3"},{"op":"add","path":"/list/2","value":0}]`:        `{"list":["a","4711",0,"b"],"note":"x"}`,
		`[{"op":"replace","path":"/list/1","value":5},{"op":"add","path":"/b","value":{}}]`: `{"list":["a",5,"b",{"pin":"4712"}],"note":"x","b":{}}`,
		`[{"op":"move","from":"/note","path":"/list/-"}]`:                                   `{"list":["a","4711","b",{"pin":"4712"},"x"]}`,
	} {
		got, err := patched(secret, shown, patch)
		require.NoError(t, err, patch)
		require.Equal(t, want, got, patch)
	}
}

func TestWrongPatches(t *testing.T) {
	t.Parallel()
	for patch, says := range map[string]string{
		`{}`:                                                               "not a list",
		`[7]`:                                                              "not a list",
		`[{"op":"add","path":"/x"}]`:                                       "patch/0/value: is required",
		`[{"op":"add","value":1}]`:                                         "patch/0/path: is required",
		`[{"op":"copy","path":"/x"}]`:                                      "patch/0/from: is required",
		`[{"op":"merge","path":"/x"}]`:                                     `unknown operation "merge"`,
		`[{"op":"remove","path":"x"}]`:                                     "not a JSON pointer",
		`[{"op":"remove","path":"/x"}]`:                                    `no value at "/x"`,
		`[{"op":"remove","path":"/a/b/c"}]`:                                `no value at "/a/b"`,
		`[{"op":"replace","path":"/l/2","value":1}]`:                       `no value at "/l/2"`,
		`[{"op":"replace","path":"/l/-","value":1}]`:                       `no value at "/l/-"`,
		`[{"op":"replace","path":"/l/01","value":1}]`:                      `no value at "/l/01"`,
		`[{"op":"add","path":"/l/3","value":1}]`:                           `no value at "/l/3"`,
		`[{"op":"add","path":"/l/-1","value":1}]`:                          `no value at "/l/-1"`,
		`[{"op":"add","path":"/x/y","value":1}]`:                           `no value at "/x"`,
		`[{"op":"test","path":"/a","value":2}]`:                            "differs",
		`[{"op":"move","from":"/o","path":"/o/p"}]`:                        "within the moved value",
		`[{"op":"add","path":"/k","value":1},{"op":"remove","path":"/z"}]`: "patch/1",
		`[` + strings.Repeat(`{"op":"remove","path":"/a"},`, 1000) + `{"op":"remove","path":"/a"}]`: "1001 operations",
	} {
		_, err := patched(`{"a":1,"l":[1,2],"o":{"p":1}}`, `{"a":1,"l":[1,2],"o":{"p":1}}`, patch)
		f, ok := apperror.From(err)
		require.True(t, ok, "%s: %v", patch, err)
		require.Equal(t, []any{apperror.Invalid, apperror.InvalidArgument}, []any{f.Class, f.Reason}, patch)
		require.Contains(t, f.Message, says, patch)
	}
}

// TestCopiesAreBounded doubles a value until it would be larger than any input may be.
func TestCopiesAreBounded(t *testing.T) {
	t.Parallel()
	var ops []string
	for i := range 40 {
		ops = append(ops, fmt.Sprintf(`{"op":"copy","from":"","path":"/c%d"}`, i))
	}
	_, err := patched(`{"a":1}`, `{"a":1}`, `[`+strings.Join(ops, ",")+`]`)
	require.True(t, apperror.Is(err, apperror.InputTooLarge), "%v", err)
}

func TestWholeInputs(t *testing.T) {
	t.Parallel()
	for _, good := range []string{`{}`, ` { } `, `null`, `[1,"` + "redacted" + `"]`} {
		require.NoError(t, patch.Whole(raw(good), mark))
	}
	err := patch.Whole(raw(`{"a":[1,{"b/c":"`+mark+`"}]}`), mark)
	f, ok := apperror.From(err)
	require.True(t, ok)
	require.Equal(t, []any{apperror.InputRedacted, "input/a/1/b~1c"}, []any{f.Reason, f.Fields[0].Path})
	require.True(t, apperror.Is(patch.Whole(raw(`{`), mark), apperror.InvalidInput))
	require.True(t, apperror.Is(patch.Whole(raw(`{} {}`), mark), apperror.InvalidInput))
}
