package integration_test

import (
	"encoding/csv"
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/test/platform"
)

// hostileLabel is a value with the signs of a filter, a shell, a table and a page.
const hostileLabel = `<img src=x onerror=alert(1)>, a:b=c&d'"; --`

// labelled is a workflow that computes labels, with a run that has others as well.
type labelled struct {
	*platform.Server

	name, id string
}

func newLabelled(t *testing.T, s *platform.Server) labelled {
	t.Helper()
	document := platform.Document("labelled", "  - pause: {if: '${ .wait == true }', wait: {minutes: 10}}\n",
		"  metadata:\n    sensitive: [/input/card]\n    labels: {order: '${ .order.id }', team: payments}\n")
	l := labelled{Server: s, name: s.Publish(t, document)}
	l.id = l.start(t, `{"order":{"id":4711}}`, "--label", "customer="+hostileLabel, "--label", "team=support").ID
	return l
}

// labelledRun is a run as the tool and REST print it.
type labelledRun struct {
	ID     string
	Labels map[string]string
}

func (l labelled) start(t *testing.T, input string, args ...string) (run labelledRun) {
	t.Helper()
	r := l.CLI(t, append([]string{"run", "start", l.name, "--input", input, "-o", "json"}, args...)...)
	require.Equal(t, platform.ExitOK, r.Code, r.String())
	r.JSON(t, &run)
	return run
}

// listed returns the IDs of the runs with labels, which the tool and REST must list alike.
func (l labelled) listed(t *testing.T, labels ...string) (byTool []string) {
	t.Helper()
	args, query := []string{"run", "list", "--workflow", l.name, "-o", "json"},
		url.Values{"workflow": {l.name}, "labels": labels}
	for _, label := range labels {
		args = append(args, "--label", label)
	}
	r := l.CLI(t, args...)
	require.Equal(t, platform.ExitOK, r.Code, r.String())
	var printed []labelledRun
	r.JSON(t, &printed)
	for _, run := range printed {
		byTool = append(byTool, run.ID)
	}
	status, body, err := l.Get(t.Context(), "/v1/projects/default/runs?"+query.Encode())
	require.NoError(t, err)
	require.Equal(t, 200, status, body)
	var answer struct{ Runs []labelledRun }
	require.NoError(t, json.Unmarshal([]byte(body), &answer))
	var byREST []string
	for _, run := range answer.Runs {
		byREST = append(byREST, run.ID)
	}
	require.Equal(t, byTool, byREST)
	return byTool
}

func TestLabels(t *testing.T) {
	eachServer(t, func(t *testing.T, s *platform.Server) {
		l := newLabelled(t, s)
		t.Run("found", func(t *testing.T) { l.found(t) })
		t.Run("exported", func(t *testing.T) { l.exported(t) })
		t.Run("refused", func(t *testing.T) { l.refused(t) })
		t.Run("replayed", func(t *testing.T) { l.replayed(t) })
		t.Run("selected for a batch", func(t *testing.T) { l.batch(t) })
	})
}

func (l labelled) found(t *testing.T) {
	want := map[string]string{"order": "4711", "team": "support", "customer": hostileLabel}
	require.Equal(t, want, l.Run(t, l.id).GetLabels(), "labels of the request replace those of the document")
	other := l.start(t, `{"order":{"id":"4712"}}`)
	require.Equal(t, map[string]string{"order": "4712", "team": "payments"}, other.Labels)
	none := l.start(t, `{}`)
	require.Equal(t, map[string]string{"team": "payments"}, none.Labels, "an expression without a result is no label")

	require.Equal(t, []string{l.id}, l.listed(t, "order=4711"))
	require.Equal(t, []string{l.id}, l.listed(t, "order=4711", "customer="+hostileLabel))
	require.Equal(t, []string{none.ID, other.ID}, l.listed(t, "team=payments"))
	require.Empty(t, l.listed(t, "order=4711", "team=payments"), "a run needs all of the labels")
	require.Empty(t, l.listed(t, "order=471"), "values are equal as a whole")
	require.Empty(t, l.listed(t, "order=4711 "))
	require.Empty(t, l.listed(t, "order=%"))
}

func (l labelled) exported(t *testing.T) {
	query := url.Values{"workflow": {l.name}, "labels": {"order=4711", "team=support"}, "format": {"csv"}}
	status, body, err := l.Get(t.Context(), "/v1/projects/default/runs:export?"+query.Encode())
	require.NoError(t, err)
	require.Equal(t, 200, status, body)
	rows, err := csv.NewReader(strings.NewReader(strings.TrimPrefix(body, "\ufeff"))).ReadAll()
	require.NoError(t, err)
	require.Len(t, rows, 2, body)
	require.Equal(t, "id", rows[0][0])
	require.Equal(t, l.id, rows[1][0])
	require.Equal(t, "labels", rows[0][len(rows[0])-1])
	var labels map[string]string
	require.NoError(t, json.Unmarshal([]byte(rows[1][len(rows[1])-1]), &labels), rows[1])
	require.Equal(t, l.Run(t, l.id).GetLabels(), labels)

	r := l.CLI(t, "run", "export", "--label", "customer="+hostileLabel, "--workflow", l.name, "--format", "json")
	require.Equal(t, platform.ExitOK, r.Code, r.String())
	var run labelledRun
	require.NoError(t, json.Unmarshal([]byte(r.Stdout), &run), "one run: %s", r)
	require.Equal(t, l.id, run.ID)
}

// The test gives wrong labels in every way. Each is named, and no run is made.
func (l labelled) refused(t *testing.T) {
	before := len(l.AllRuns(t, l.name, 100))
	for body, field := range map[string]string{
		`{"labels":{"a b":"1"}}`:                   "labels.a b",
		`{"labels":{"order":""}}`:                  "labels.order",
		`{"labels":{"order":"a\nb"}}`:              "labels.order",
		`{"labels":{"note":"card 4111111111111"}}`: "labels.note",
		`{"input":{"order":{"id":[1]}}}`:           "labels.order",
		`{"input":{"order":"4711"}}`:               "labels.order",
	} {
		var request map[string]any
		require.NoError(t, json.Unmarshal([]byte(body), &request))
		request["workflow"] = l.name
		if request["input"] == nil {
			request["input"] = map[string]any{"card": "4111111111111"}
		}
		text, err := json.Marshal(request)
		require.NoError(t, err)
		status, answer, err := l.Post(t.Context(), "/v1/projects/default/runs", string(text))
		require.NoError(t, err)
		require.Equal(t, 400, status, answer)
		require.Contains(t, answer, `"`+field+`"`, body)
		require.NotContains(t, answer, "4111111111111")
	}
	args := []string{"run", "start", l.name, "--input", "{}"}
	requireOneLine(t, l.CLI(t, append(args, "--label", "order")...), platform.ExitUsage, "key=value")
	requireOneLine(t, l.CLI(t, append(args, "--label", "order=1", "--label", "order=2")...), platform.ExitUsage,
		"order has two values")
	requireOneLine(t, l.CLI(t, append(args, "--label", "a b=1")...), platform.ExitFailed, `label "a b"`,
		"INVALID_ARGUMENT")
	requireOneLine(t, l.CLI(t, "run", "list", "--label", "order"), platform.ExitUsage, "key=value")
	require.Len(t, l.AllRuns(t, l.name, 100), before, "no run was made")

	status, answer, err := l.Get(t.Context(), "/v1/projects/default/runs?labels=order")
	require.NoError(t, err)
	require.Equal(t, 400, status, answer)
	require.Contains(t, answer, `"labels"`)
}

func (l labelled) replayed(t *testing.T) {
	original := l.Run(t, l.id).GetLabels()
	replay := func(args ...string) map[string]string {
		r := l.CLI(t, append([]string{"run", "replay", l.id, "--reason", "once more", "-o", "json"}, args...)...)
		require.Equal(t, platform.ExitOK, r.Code, r.String())
		var run labelledRun
		r.JSON(t, &run)
		return run.Labels
	}
	require.Equal(t, original, replay())
	require.Equal(t, original, replay("--input", `{"order":{"id":"9"}}`), "the order stays the one of the original")
	want := map[string]string{"order": "4711", "team": "billing", "customer": hostileLabel, "ticket": "T-1"}
	require.Equal(t, want, replay("--label", "team=billing", "--label", "ticket=T-1"))
}

func (l labelled) batch(t *testing.T) {
	first := l.start(t, `{"wait":true}`, "--label", "wave=1")
	second := l.start(t, `{"wait":true}`, "--label", "wave=2")
	l.Await(t, first.ID, soon, "waiting")
	l.Await(t, second.ID, soon, "waiting")
	r := l.CLI(t, "batch", "start", "--action", "cancel", "--label", "wave=1", "--reason", "wrong wave", "--wait")
	require.Equal(t, platform.ExitOK, r.Code, r.String())
	l.Await(t, first.ID, soon, "canceled")
	l.Await(t, second.ID, soon, "waiting")

	b := startBatch(t, l.Server, &signalboxv1.StartBatchRequest{
		Action: "replay", Filter: &signalboxv1.RunFilter{Workflow: l.name, Labels: []string{"wave=1"}},
	})
	require.EqualValues(t, 1, awaitBatch(t, l.Server, b.GetId(), soon, replayed).GetOutcomes().GetStarted())
	res, err := l.Runs.ListRuns(t.Context(), connect.NewRequest(&signalboxv1.ListRunsRequest{
		Project: platform.DefaultProject, Filter: &signalboxv1.RunFilter{Labels: []string{"wave=1"}, ReplayOf: first.ID},
	}))
	require.NoError(t, err)
	require.Len(t, res.Msg.GetRuns(), 1, "the replay has the labels of its original")
}
