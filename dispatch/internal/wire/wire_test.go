package wire_test

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

	"github.com/signalbox-dev/signalbox/dispatch/dispatchtype"
	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/dispatch/internal/wire"
	"github.com/signalbox-dev/signalbox/lease"
)

func named(project, queue string) inbox.Name {
	return inbox.Name{Project: project, TaskQueue: queue}
}

func TestNames(t *testing.T) {
	t.Parallel()
	name := named("default", "signalbox-default")
	require.Equal(t, "dispatcher-default-signalbox-default", name.DispatcherID())
	require.Equal(t, "dispatcher:default:signalbox-default", wire.OwnerKey(name))
	require.Equal(t, "handover:default:signalbox-default", wire.HandoverKey(name))
	require.Equal(t, "worker:w-1", wire.WorkerKey("w-1"))
	for _, key := range []string{wire.OwnerKey(name), wire.HandoverKey(name)} {
		got, ok := wire.NameOf(key)
		require.True(t, ok)
		require.Equal(t, name, got)
	}
	for _, key := range []string{
		"", "worker:x", "dispatcher:", "dispatcher:a", "dispatcher:a:", "dispatcher:A:b", "other:a:b", "dispatcher:a:b:c"} {
		_, ok := wire.NameOf(key)
		require.False(t, ok, key)
	}
	id, ok := wire.ServerOf("worker:w:1")
	require.True(t, ok)
	require.Equal(t, "w:1", id)
	_, ok = wire.ServerOf("worker:")
	require.False(t, ok)
}

func TestValidate(t *testing.T) {
	t.Parallel()
	for _, good := range []inbox.Name{
		named("a", "b"), named("a-b", "c--d"), named("0", "9"), named(strings.Repeat("p", 63), strings.Repeat("q", 127)),
	} {
		require.NoError(t, wire.Validate(good))
	}
	for _, bad := range []inbox.Name{
		named("", "b"), named("a", ""), named("-a", "b"), named("a", "b-"), named("A", "b"), named("a", "b_c"),
		named("a", "b c"), named("ä", "b"),
		named(strings.Repeat("p", 64), "q"), named("p", strings.Repeat("q", 128)), named("a:b", "c"),
	} {
		require.Error(t, wire.Validate(bad), "%+v", bad)
	}
	require.EqualError(t, wire.Validate(named("", "B")),
		"project: missing\ntask queue \"B\": only lower-case letters, digits and dashes")
	longest := named(strings.Repeat("p", 63), strings.Repeat("q", 127))
	for _, key := range []string{wire.OwnerKey(longest), wire.HandoverKey(longest)} {
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
	want := wire.Memo{Name: named("a", "b"), Owner: "w", Epoch: 7, Interpreter: 1}
	got, err := wire.ReadMemo(c, memo(t, want.Fields()))
	require.NoError(t, err)
	require.Equal(t, &want, got)
	require.Equal(t, []string{"epoch", "interpreter", "owner", "project", "task_queue"},
		slices.Sorted(maps.Keys(want.Fields())))

	for _, none := range []*commonpb.Memo{nil, {}, memo(t, map[string]any{"something": "else", "owner": "x"})} {
		got, err := wire.ReadMemo(c, none)
		require.NoError(t, err)
		require.Nil(t, got)
	}
	got, err = wire.ReadMemo(c, memo(t, map[string]any{"project": "a", "task_queue": "b"}))
	require.NoError(t, err)
	require.Equal(t, &wire.Memo{Name: named("a", "b")}, got)
	fields := want.Fields()
	fields["epoch"] = "seven"
	_, err = wire.ReadMemo(c, memo(t, fields))
	require.ErrorContains(t, err, `memo field "epoch"`)
}

func TestBelonging(t *testing.T) {
	t.Parallel()
	mine := named("a", "b-c")
	of := func(name inbox.Name) *wire.Memo { return &wire.Memo{Name: name, Epoch: 1} }
	base := wire.Execution{WorkflowID: "dispatcher-a-b-c", RunID: "r", Type: wire.WorkflowType, TaskQueue: "b-c",
		Memo: of(mine)}
	with := func(change func(*wire.Execution)) wire.Execution {
		e := base
		change(&e)
		return e
	}
	patterns := []string{"dispatcher-{project}-*", "{project}.dispatcher.{task_queue}"}
	tests := map[string]struct {
		is   wire.Belonging
		what wire.Execution
	}{
		"it":                         {wire.Mine, base},
		"the namesake":               {wire.Foreign, with(func(e *wire.Execution) { e.Memo = of(named("a-b", "c")) })},
		"another type":               {wire.Foreign, with(func(e *wire.Execution) { e.Type = "other" })},
		"a memo that cannot be read": {wire.Foreign, with(func(e *wire.Execution) { e.Unread = true })},
		"without a memo":             {wire.Legacy, with(func(e *wire.Execution) { e.Memo = nil })},
		"without an epoch":           {wire.Legacy, with(func(e *wire.Execution) { e.Memo = &wire.Memo{Name: mine} })},
		"on a queue of an old release": {wire.Legacy, with(func(e *wire.Execution) {
			e.Memo, e.TaskQueue = nil, "dispatchers"
		})},
		"the namesake without a memo": {wire.Foreign, with(func(e *wire.Execution) { e.Memo, e.TaskQueue = nil, "c" })},
		"an older ID": {wire.OlderScheme, with(func(e *wire.Execution) {
			e.Memo, e.WorkflowID = nil, "dispatcher-a-host-17"
		})},
		"an older ID with a memo": {wire.OlderScheme, with(func(e *wire.Execution) {
			e.WorkflowID = "dispatcher-a-host-17"
		})},
		"an older ID of another queue": {wire.Foreign, with(func(e *wire.Execution) {
			e.Memo, e.WorkflowID, e.TaskQueue = nil, "dispatcher-a-b-host-17", "c"
		})},
		"an older ID of another project": {wire.Foreign, with(func(e *wire.Execution) {
			e.Memo, e.WorkflowID = nil, "dispatcher-z-host-17"
		})},
		"another older ID": {wire.OlderScheme, with(func(e *wire.Execution) {
			e.Memo, e.WorkflowID = nil, "a.dispatcher.b-c"
		})},
		"an ID of no scheme": {wire.Foreign, with(func(e *wire.Execution) {
			e.Memo, e.WorkflowID = nil, "a.dispatcher.b-c.d"
		})},
	}
	for name, test := range tests {
		require.Equal(t, test.is, wire.Belongs(mine, test.what, patterns), name)
	}
	require.Equal(t, wire.Foreign, wire.Belongs(mine, tests["an older ID"].what, nil), "only with a configured pattern")
}

func TestPatterns(t *testing.T) {
	t.Parallel()
	for _, good := range []string{"{project}", "d_{project}_*", "{task_queue}/{project}"} {
		require.NoError(t, wire.ValidatePattern(good))
	}
	for _, bad := range []string{"", "*", "dispatcher-*", "{project}-{host}", "{project", "{project}}"} {
		require.Error(t, wire.ValidatePattern(bad), bad)
	}
	matches := func(pattern, id string) bool {
		return wire.Belongs(named("p", "q"), wire.Execution{WorkflowID: id, Type: wire.WorkflowType, TaskQueue: "q"},
			[]string{pattern}) ==
			wire.OlderScheme
	}
	require.True(t, matches("*{project}*x*", "abpxcxd"))
	require.True(t, matches("{project}*{project}", "pp"))
	require.False(t, matches("{project}*{project}", "p"), "a text is matched once")
	require.False(t, matches("{project}*x", "pxy"))
}

func TestEncodedBeatFitsEntry(t *testing.T) {
	t.Parallel()
	b := dispatchtype.Heartbeat{
		ServerID: "w", Build: "v1", Interpreter: 1, StartedAt: time.Now(), Facts: map[string]string{"contract": "abc"}}
	for i := range 2000 {
		b.Projects = append(b.Projects, fmt.Sprintf("project-%d", i))
	}
	b.Serves = len(b.Projects)
	value, err := wire.EncodeHeartbeat(b)
	require.NoError(t, err)
	require.LessOrEqual(t, len(value), lease.MaxValue)
	require.Contains(t, string(value), `"serves":2000`)
	require.Contains(t, string(value), `"contract":"abc"`)
	require.Len(t, b.Projects, 2000, "the heartbeat itself is unchanged")
	b.Facts["novel"] = strings.Repeat("x", lease.MaxValue)
	value, err = wire.EncodeHeartbeat(b)
	require.NoError(t, err, "facts that are too large are left out")
	require.NotContains(t, string(value), "novel")
}
