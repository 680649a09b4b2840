package start_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/redact"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/control"
	"github.com/signalbox-dev/signalbox/internal/run/start"
	"github.com/signalbox-dev/signalbox/internal/workflow"
)

// publishLabelled publishes a workflow with labels, as YAML.
func (b *bench) publishLabelled(t *testing.T, version, labels string) {
	t.Helper()
	_, err := b.workflows.Publish(b.ctx, here, workflow.Submission{Source: fmt.Sprintf(
		"document: {dsl: 1.0.3, namespace: shop, name: order, version: '%s', metadata: {labels: %s}}\ndo:\n  - a: {set: "+
			"{n: 1}}\n", version, labels)}, "ada")
	require.NoError(t, err)
}

func labelledRequest(input string, labels map[string]string) start.Request {
	return start.Request{Project: here, Workflow: "shop/order", Input: json.RawMessage(input), Trigger: run.TriggerAPI,
		Labels: labels}
}

func TestRunHasTheLabelsOfTheRequestAndOfTheDocument(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.publishLabelled(t, "1.0.0", `{order: '${ .order }', region: '${ .region }', team: payments}`)
	given := map[string]string{"region": "us", "ticket": "OPS-1"}
	r, _, err := b.Start(b.ctx, labelledRequest(`{"order": 12345678901234567890, "region": "eu"}`, given))
	require.NoError(t, err)
	want := map[string]string{"order": "12345678901234567890", "region": "us", "team": "payments", "ticket": "OPS-1"}
	require.Equal(t, want, r.Labels)
	require.Equal(t, map[string]string{"region": "us", "ticket": "OPS-1"}, given, "the request stays unchanged")
	found, err := b.List(b.ctx,
		run.Filter{Project: here, Labels: map[string]string{"order": "12345678901234567890"}, Limit: 10})
	require.NoError(t, err)
	require.Len(t, found, 1)
	require.Equal(t, want, found[0].Labels)

	r, _, err = b.Start(b.ctx, labelledRequest(`{"order": null, "region": ""}`, nil))
	require.NoError(t, err)
	require.Equal(t, map[string]string{"team": "payments"}, r.Labels, "a run has no label without a value")
}

func TestStartRefusesInvalidLabels(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.publishLabelled(t, "1.0.0", `{order: '${ .order.id }'}`)
	many := map[string]string{}
	for i := range 17 {
		many[fmt.Sprint("k", i)] = "v"
	}
	input := `{"order": {"id": 7}}`
	for _, tt := range []struct {
		name    string
		request start.Request
		reason  string
		says    string
		fields  []apperror.Field
	}{
		{"key", labelledRequest(input, map[string]string{"a b": "x", "": "x"}), apperror.InvalidArgument,
			`label "": the key is empty`, []apperror.Field{
				{Path: "labels.", Message: "the key is empty"},
				{Path: "labels.a b", Message: "the key has other characters than letters, digits and . _ - /"},
			}},
		{"value", labelledRequest(input, map[string]string{"order": "a\nb"}), apperror.InvalidArgument,
			`label "order": the value has the character U+000A`, nil},
		{"empty value", labelledRequest(input, map[string]string{"order": ""}), apperror.InvalidArgument,
			`label "order": the value is empty`, nil},
		{"long value", labelledRequest(input, map[string]string{"order": strings.Repeat("v", 257)}), apperror.InvalidArgument,
			`has 257 bytes`, nil},
		{"too many", labelledRequest(input, many), apperror.InvalidArgument, "17 labels: a run can have at most 16",
			[]apperror.Field{{Path: "labels", Message: "at most 16"}}},
		{"expression", labelledRequest(`{"order": "x"}`, nil), apperror.InvalidInput,
			`label "order": the expression of the workflow fails for this input`, []apperror.Field{
				{Path: "labels.order", Message: `the expression of the workflow fails for this input: evaluate " .order.id ": expected an object but got: string ("x")`},
			}},
		{"result", labelledRequest(`{"order": {"id": ["secret"]}}`, nil), apperror.InvalidInput,
			`label "order": the value is an array instead of`, nil},
	} {
		_, _, err := b.Start(b.ctx, tt.request)
		requireError(t, err, apperror.Invalid, tt.reason, tt.says)
		f, _ := apperror.From(err)
		if tt.fields != nil {
			require.Equal(t, tt.fields, f.Fields, tt.name)
		}
		require.NotContains(t, err.Error(), "secret")
	}
	delete(many, "k16")
	_, _, err := b.Start(b.ctx, labelledRequest(input, many))
	requireError(t, err, apperror.Invalid, apperror.InvalidArgument, "17 labels")
	require.Empty(t, b.rows(t))
	// A label of the request replaces one that cannot be computed.
	r, _, err := b.Start(b.ctx, labelledRequest(`{"order": "x"}`, map[string]string{"order": "7"}))
	require.NoError(t, err)
	require.Equal(t, map[string]string{"order": "7"}, r.Labels)
}

// TestRunOfAnEventIsStartedWithoutAFailedLabel also has runs of the clock and of other runs.
func TestRunOfAnEventIsStartedWithoutAFailedLabel(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.publishLabelled(t, "1.0.0", `{order: '${ .order.id }', team: payments}`)
	for _, trigger := range []string{run.TriggerEvent, run.TriggerSchedule, run.TriggerParent} {
		req := labelledRequest(`{"order": "customer ada"}`, nil)
		req.Trigger = trigger
		r, _, err := b.Start(b.ctx, req)
		require.NoError(t, err)
		require.Equal(t, map[string]string{"team": "payments"}, r.Labels)
		entries, err := b.store.ListAudit(b.ctx, audit.Filter{Subject: r.ID, Limit: 10})
		require.NoError(t, err)
		require.Len(t, entries, 1)
		var detail struct{ MissingLabels map[string]string }
		require.NoError(t, json.Unmarshal(entries[0].Detail, &detail))
		require.Equal(t, map[string]string{"order": "the expression of the workflow fails for this input"},
			detail.MissingLabels)
		require.NotContains(t, string(entries[0].Detail), "ada")
	}
}

func TestLabelsOfAReplay(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.publishLabelled(t, "1.0.0", `{order: '${ .order }'}`)
	first, _, err := b.Start(b.ctx, labelledRequest(`{"order": 1}`, map[string]string{"region": "eu"}))
	require.NoError(t, err)
	b.publishLabelled(t, "2.0.0", `{order: '${ .order }', team: payments}`)
	req := control.ReplayRequest{
		Project: here, RunID: first.ID, Reason: "again", Input: json.RawMessage(`{"order": 2}`), Version: control.Latest,
		RequestID: "q"}
	second, _, err := b.Replay(b.ctx, req)
	require.NoError(t, err)
	require.Equal(t, map[string]string{"order": "1", "region": "eu"}, second.Labels,
		"the labels of the replayed run, whatever the version and the input are")

	req.Labels, req.RequestID = map[string]string{"order": "2", "attempt": "3"}, "q3"
	third, _, err := b.Replay(b.ctx, req)
	require.NoError(t, err)
	require.Equal(t, map[string]string{"order": "2", "attempt": "3", "region": "eu"}, third.Labels)
	again, created, err := b.Replay(b.ctx, req)
	require.NoError(t, err)
	require.Equal(t, []any{third.ID, false}, []any{again.ID, created})
	req.Labels = map[string]string{"order": "3"}
	_, _, err = b.Replay(b.ctx, req)
	requireError(t, err, apperror.Exists, apperror.RequestIDReused, "other arguments")
}

func TestRepeatedRequestWithOtherLabelsIsRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.publishLabelled(t, "1.0.0", `{}`)
	req := labelledRequest(`{}`, map[string]string{"order": "1", "region": "eu"})
	req.RequestID = "q"
	first, _, err := b.Start(b.ctx, req)
	require.NoError(t, err)
	req.Labels = maps.Clone(req.Labels)
	again, created, err := b.Start(b.ctx, req)
	require.NoError(t, err)
	require.Equal(t, []any{first.ID, false}, []any{again.ID, created})
	req.Labels["order"] = "2"
	_, _, err = b.Start(b.ctx, req)
	requireError(t, err, apperror.Exists, apperror.RequestIDReused, "other arguments")
}

func TestQueuedRunKeepsItsLabels(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, b *bench) {
		b.publishLabelled(t, "1.0.0", `{order: '${ .order }'}`)
		b.engine.check = func(context.Context) error { return unavailable() }
		service := b.process(t, b.store, func(o *start.Options) {
			o.Queue = start.QueueOptions{Enabled: true, MaxRuns: 10, TTL: startTimeout}
		})
		r, _, err := service.Start(b.ctx, labelledRequest(`{"order": 4711}`, nil))
		require.NoError(t, err)
		require.Equal(t, run.QueuedEngine, r.QueuedReason)
		require.Equal(t, map[string]string{"order": "4711"}, r.Labels)
		require.Equal(t, r.Labels, b.row(t, r.ID).Labels)
	})
}

// masking hides the member card of the input.
func masking(_ context.Context, r run.Run) (json.RawMessage, func(string) bool, error) {
	return json.RawMessage(strings.ReplaceAll(string(r.Input), "4111-1111", redact.Mark)),
		func(text string) bool { return strings.Contains(text, "4111-1111") }, nil
}

func TestNoLabelHasASensitiveValue(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.publishLabelled(t, "1.0.0", `{card: '${ "card \(.card)" }', length: '${ .card | length }'}`)
	service := b.process(t, b.store, func(o *start.Options) { o.Mask = masking })
	input := `{"card": "4111-1111"}`
	_, _, err := service.Start(b.ctx, labelledRequest(input, nil))
	requireError(t, err, apperror.Invalid, apperror.InvalidInput, `label "card": the value contains a sensitive value`)
	req := labelledRequest(input, nil)
	req.Trigger = run.TriggerEvent
	r, _, err := service.Start(b.ctx, req)
	require.NoError(t, err)
	require.Equal(t, map[string]string{"length": fmt.Sprint(len([]rune(redact.Mark)))}, r.Labels,
		"expressions see the input with marks")
	_, _, err = service.Start(b.ctx, labelledRequest(input, map[string]string{"card": "x4111-1111x"}))
	requireError(t, err, apperror.Invalid, apperror.InvalidArgument, `label "card": the value contains a sensitive value`)
}

func TestLabelsOfAFilter(t *testing.T) {
	t.Parallel()
	parsed, err := run.ParseLabels("labels", []string{"order=4711", "text=a=b", "order=4711"})
	require.NoError(t, err)
	require.Equal(t, map[string]string{"order": "4711", "text": "a=b"}, parsed)
	require.Equal(t, []string{"order=4711", "text=a=b"}, run.LabelTexts(parsed))
	for _, texts := range [][]string{{"order"}, {"order=1", "order=2"}} {
		_, err := run.ParseLabels("labels", texts)
		require.Error(t, err)
	}
	b := newBench(t)
	for _, filter := range []map[string]string{{"a b": "x"}, {"order": ""}} {
		_, err := b.List(b.ctx, run.Filter{Project: here, Labels: filter, Limit: 1})
		requireError(t, err, apperror.Invalid, apperror.InvalidArgument, "label")
	}
}
