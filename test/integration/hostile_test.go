package integration_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/test/platform"
	"github.com/signalbox-dev/signalbox/test/promise"
)

const (
	// hostileTime is how long the requests are sent.
	hostileTime = 8 * time.Second
	// hostileCallers is the number of requests of the viewer at a time.
	hostileCallers = 12
	// hostileMemory is the memory of a small server, in MB.
	hostileMemory = 1024
)

// hostileRequests are requests of a viewer that once took a server all its memory, its processors or its database.
func hostileRequests(t *testing.T) (all []struct{ name, path, body string }) {
	t.Helper()
	add := func(name, method string, message map[string]any) {
		message["project"] = "shop"
		body, err := json.Marshal(message)
		require.NoError(t, err)
		all = append(all, struct{ name, path, body string }{name, "/signalbox.v1." + method, string(body)})
	}
	validate := func(name, head, set string) {
		source := "document: {dsl: 1.0.3, namespace: a, name: b, version: 1.0.0}\n" + head + "do: [{a: {set: {x: " + set +
			"}}}]\n"
		add(name, "WorkflowService/ValidateWorkflow", map[string]any{"source": source})
	}
	schema := func(document string) string { return "input: {schema: {document: " + document + "}}\n" }
	numbered := func(n int, part string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, part, i)
		}
		return b.String()
	}
	validate("an expression of 150,000 terms", "", "'${ 1"+strings.Repeat(" + 1", 150_000)+" }'")
	validate("expressions at their limit", "", "["+strings.Repeat("'${ 1"+strings.Repeat(" + 1", 1_900)+" }',", 60)+"]")
	validate("many expressions", "", "["+numbered(60_000, "'${ .a%d }',")+"]")
	validate("a schema of 50,000 parts", schema("{allOf: ["+strings.Repeat("{},", 50_000)+"{}]}"), "1")
	validate("a schema at its limit", schema("{allOf: ["+strings.Repeat("{},", 9_900)+"{}]}"), "1")
	validate("patterns", schema("{properties: {"+numbered(3_000, "a%d: {pattern: '(b{900}){1}c{900}'},")+"}}"), "1")
	validate("aliases", "", "[&x "+strings.Repeat("a", 400_000)+", "+strings.Repeat("*x,", 900)+"]")
	add("a large workflow", "WorkflowService/GetWorkflow", map[string]any{"workflow": "large"})
	add("its graph", "WorkflowService/GetVersionGraph", map[string]any{"workflow": "large"})
	for _, n := range []int{1_000, 20_000, 50_000} {
		statuses := make([]string, n)
		for i := range statuses {
			statuses[i] = "failed"
		}
		add(fmt.Sprint(n, " statuses"), "RunService/ListRuns", map[string]any{"statuses": statuses})
	}
	return all
}

// A viewer that sends the most expensive requests that it can find takes no other caller its server.
func TestHostileViewerDoesNotStopOthers(t *testing.T) {
	t.Parallel()
	g := startTokenServer(t, platform.SQLite(t), fmt.Sprintf("GOMEMLIMIT=%dMiB", hostileMemory*9/10))
	root := g.create(t, "", "root")
	require.Equal(t, platform.ExitOK, g.cli(t, root, "project", "create", "shop").Code)
	hostile, other := g.create(t, root, "hostile", "shop=viewer"), g.create(t, root, "other", "shop=viewer")

	var source strings.Builder
	source.WriteString("document: {dsl: 1.0.3, namespace: a, name: large, version: 1.0.0}\ndo:\n")
	for i := range 9_999 {
		fmt.Fprintf(&source, "- a%d: {set: {x: '${ .a%d }'}}\n", i, i)
	}
	body, err := json.Marshal(map[string]string{"project": "shop", "source": source.String()})
	require.NoError(t, err)
	status, reason := g.ask(t, http.MethodPost, "/signalbox.v1.WorkflowService/PublishWorkflow", root, string(body))
	require.Equal(t, http.StatusOK, status, reason)

	requests := hostileRequests(t)
	for _, r := range requests {
		if strings.HasSuffix(r.name, "statuses") {
			status, reason = g.ask(t, http.MethodPost, r.path, hostile, r.body)
			require.Equal(t, "INVALID_ARGUMENT", reason, "%s: %d", r.name, status)
		}
	}

	ctx, cancel := context.WithTimeout(t.Context(), hostileTime)
	defer cancel()
	var flood sync.WaitGroup
	for caller := range hostileCallers {
		flood.Go(func() {
			for i := caller; ctx.Err() == nil; i++ {
				g.send(ctx, requests[i%len(requests)].path, hostile, requests[i%len(requests)].body)
			}
		})
	}
	slowest, answers, memory := time.Duration(0), 0, 0.0
	pace := time.NewTicker(25 * time.Millisecond) // within its own rate
	defer pace.Stop()
	for ctx.Err() == nil {
		<-pace.C
		began := time.Now()
		status, reason = g.ask(t, http.MethodPost, "/signalbox.v1.RunService/ListRuns", other, `{"project":"shop"}`)
		require.Equal(t, http.StatusOK, status, reason)
		slowest, memory = max(slowest, time.Since(began)), max(memory, g.process.Memory(t))
		answers++
	}
	flood.Wait()
	t.Logf("another caller was answered %d times, in %s at most; the server used %.0f MB", answers,
		slowest.Round(time.Millisecond), memory)
	promise.Within(t, "an answer to another caller", slowest, time.Second)
	require.Less(t, memory, float64(hostileMemory))
	status, reason = g.ask(t, http.MethodPost, "/signalbox.v1.WorkflowService/ValidateWorkflow", other,
		`{"project":"shop","source":"a: 1"}`)
	require.Equal(t, http.StatusOK, status, "the server has stopped working for the one that has gone: %s", reason)
}

// send sends a request and ignores the answer.
func (g *tokenServer) send(ctx context.Context, path, token, body string) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, g.url+path, strings.NewReader(body))
	if err != nil {
		return
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+token)
	if res, err := g.client.Do(req); err == nil {
		_ = res.Body.Close()
	}
}
