package contract_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"

	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/dispatch/internal/contract"
	"github.com/signalbox-dev/signalbox/lease"
)

func named(project, queue string) inbox.Name {
	return inbox.Name{Project: project, TaskQueue: queue}
}

func TestNames(t *testing.T) {
	t.Parallel()
	name := named("default", "signalbox-default")
	require.Equal(t, "dispatcher-default-signalbox-default", name.DispatcherID())
	require.Equal(t, "dispatcher:default:signalbox-default", contract.OwnerKey(name))
	require.Equal(t, "handover:default:signalbox-default", contract.HandoverKey(name))
	require.Equal(t, "worker:w-1", contract.WorkerKey("w-1"))
	for _, key := range []string{contract.OwnerKey(name), contract.HandoverKey(name)} {
		got, ok := contract.NameOf(key)
		require.True(t, ok)
		require.Equal(t, name, got)
	}
	for _, key := range []string{"", "worker:x", "dispatcher:", "dispatcher:a", "dispatcher:a:", "dispatcher:A:b", "other:a:b", "dispatcher:a:b:c"} {
		_, ok := contract.NameOf(key)
		require.False(t, ok, key)
	}
	id, ok := contract.ServerOf("worker:w:1")
	require.True(t, ok)
	require.Equal(t, "w:1", id)
	_, ok = contract.ServerOf("worker:")
	require.False(t, ok)
}

func TestWhichNamesThereAre(t *testing.T) {
	t.Parallel()
	for _, good := range []inbox.Name{
		named("a", "b"), named("a-b", "c--d"), named("0", "9"), named(strings.Repeat("p", 63), strings.Repeat("q", 127)),
	} {
		require.NoError(t, contract.Validate(good))
	}
	for _, bad := range []inbox.Name{
		named("", "b"), named("a", ""), named("-a", "b"), named("a", "b-"), named("A", "b"), named("a", "b_c"), named("a", "b c"), named("ä", "b"),
		named(strings.Repeat("p", 64), "q"), named("p", strings.Repeat("q", 128)), named("a:b", "c"),
	} {
		require.Error(t, contract.Validate(bad), "%+v", bad)
	}
	require.EqualError(t, contract.Validate(named("", "B")), "project: missing\ntask queue \"B\": only lower-case letters, digits and dashes")
	longest := named(strings.Repeat("p", 63), strings.Repeat("q", 127))
	for _, key := range []string{contract.OwnerKey(longest), contract.HandoverKey(longest)} {
		require.LessOrEqual(t, len(key), lease.MaxKey)
	}
}

func memo(t *testing.T, fields map[string]any) *commonpb.Memo {
	t.Helper()
	m := &commonpb.Memo{Fields: map[string]*commonpb.Payload{}}
	for key, value := range fields {
		payload, err := converter.GetDefaultDataConverter().ToPayload(value)
		require.NoError(t, err)
		m.Fields[key] = payload
	}
	return m
}

func TestMemos(t *testing.T) {
	t.Parallel()
	c := converter.GetDefaultDataConverter()
	want := contract.Memo{Name: named("a", "b"), Owner: "w", Epoch: 7, Interpreter: 1}
	got, err := contract.ReadMemo(c, memo(t, want.Fields()))
	require.NoError(t, err)
	require.Equal(t, &want, got)
	require.Equal(t, []string{"epoch", "interpreter", "owner", "project", "task_queue"}, slices.Sorted(maps.Keys(want.Fields())))

	for _, none := range []*commonpb.Memo{nil, {}, memo(t, map[string]any{"something": "else", "owner": "x"})} {
		got, err := contract.ReadMemo(c, none)
		require.NoError(t, err)
		require.Nil(t, got)
	}
	got, err = contract.ReadMemo(c, memo(t, map[string]any{"project": "a", "task_queue": "b"}))
	require.NoError(t, err)
	require.Equal(t, &contract.Memo{Name: named("a", "b")}, got)
	fields := want.Fields()
	fields["epoch"] = "seven"
	_, err = contract.ReadMemo(c, memo(t, fields))
	require.ErrorContains(t, err, `memo field "epoch"`)
}

func TestBelonging(t *testing.T) {
	t.Parallel()
	mine := named("a", "b-c")
	of := func(name inbox.Name) *contract.Memo { return &contract.Memo{Name: name, Epoch: 1} }
	base := contract.Execution{WorkflowID: "dispatcher-a-b-c", RunID: "r", Type: contract.WorkflowType, TaskQueue: "b-c", Memo: of(mine)}
	with := func(change func(*contract.Execution)) contract.Execution {
		e := base
		change(&e)
		return e
	}
	patterns := []string{"dispatcher-{project}-*", "{project}.dispatcher.{task_queue}"}
	tests := map[string]struct {
		is   contract.Belonging
		what contract.Execution
	}{
		"it":                           {contract.Mine, base},
		"the namesake":                 {contract.NotMine, with(func(e *contract.Execution) { e.Memo = of(named("a-b", "c")) })},
		"another type":                 {contract.NotMine, with(func(e *contract.Execution) { e.Type = "other" })},
		"a memo that cannot be read":   {contract.NotMine, with(func(e *contract.Execution) { e.Unread = true })},
		"without a memo":               {contract.Legacy, with(func(e *contract.Execution) { e.Memo = nil })},
		"without an epoch":             {contract.Legacy, with(func(e *contract.Execution) { e.Memo = &contract.Memo{Name: mine} })},
		"on a queue of an old release": {contract.Legacy, with(func(e *contract.Execution) { e.Memo, e.TaskQueue = nil, "dispatchers" })},
		"the namesake without a memo":  {contract.NotMine, with(func(e *contract.Execution) { e.Memo, e.TaskQueue = nil, "c" })},
		"an older ID": {contract.OlderScheme, with(func(e *contract.Execution) {
			e.Memo, e.WorkflowID = nil, "dispatcher-a-host-17"
		})},
		"an older ID with a memo": {contract.OlderScheme, with(func(e *contract.Execution) { e.WorkflowID = "dispatcher-a-host-17" })},
		"an older ID of another queue": {contract.NotMine, with(func(e *contract.Execution) {
			e.Memo, e.WorkflowID, e.TaskQueue = nil, "dispatcher-a-b-host-17", "c"
		})},
		"an older ID of another project": {contract.NotMine, with(func(e *contract.Execution) { e.Memo, e.WorkflowID = nil, "dispatcher-z-host-17" })},
		"another older ID":               {contract.OlderScheme, with(func(e *contract.Execution) { e.Memo, e.WorkflowID = nil, "a.dispatcher.b-c" })},
		"an ID of no scheme":             {contract.NotMine, with(func(e *contract.Execution) { e.Memo, e.WorkflowID = nil, "a.dispatcher.b-c.d" })},
	}
	for name, test := range tests {
		require.Equal(t, test.is, contract.Belongs(mine, test.what, patterns), name)
	}
	require.Equal(t, contract.NotMine, contract.Belongs(mine, tests["an older ID"].what, nil), "only what was configured")
}

func TestPatterns(t *testing.T) {
	t.Parallel()
	for _, good := range []string{"{project}", "d_{project}_*", "{task_queue}/{project}"} {
		require.NoError(t, contract.ValidatePattern(good))
	}
	for _, bad := range []string{"", "*", "dispatcher-*", "{project}-{host}", "{project", "{project}}"} {
		require.Error(t, contract.ValidatePattern(bad), bad)
	}
	matches := func(pattern, id string) bool {
		return contract.Belongs(named("p", "q"), contract.Execution{WorkflowID: id, Type: contract.WorkflowType, TaskQueue: "q"}, []string{pattern}) ==
			contract.OlderScheme
	}
	require.True(t, matches("*{project}*x*", "abpxcxd"))
	require.True(t, matches("{project}*{project}", "pp"))
	require.False(t, matches("{project}*{project}", "p"), "a text is used once")
	require.False(t, matches("{project}*x", "pxy"))
}

func TestABeatFits(t *testing.T) {
	t.Parallel()
	b := contract.Beat{ServerID: "w", Build: "v1", Interpreter: 1, StartedAt: time.Now(), Facts: map[string]string{"contract": "abc"}}
	for i := range 2000 {
		b.Projects = append(b.Projects, fmt.Sprintf("project-%d", i))
	}
	b.Serves = len(b.Projects)
	value, err := b.Encode()
	require.NoError(t, err)
	require.LessOrEqual(t, len(value), lease.MaxValue)
	require.Contains(t, string(value), `"serves":2000`)
	require.Contains(t, string(value), `"contract":"abc"`)
	require.Len(t, b.Projects, 2000, "the beat itself is left alone")
	b.Facts["novel"] = strings.Repeat("x", lease.MaxValue)
	value, err = b.Encode()
	require.NoError(t, err, "what a process says too much of itself does not stop its heart")
	require.NotContains(t, string(value), "novel")
}
