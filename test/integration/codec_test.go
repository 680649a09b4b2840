package integration_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"google.golang.org/protobuf/encoding/protojson"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/engine/codec"
	"github.com/signalbox-dev/signalbox/test/platform"
)

const (
	codecPath = "/codec/default/decode"
	uiOrigin  = "http://127.0.0.1:8233"
)

// sealedBody returns the request that Temporal's UI sends to decrypt a payload.
func sealedBody(t *testing.T, text string) string {
	t.Helper()
	payloads, err := codec.NewCodec(platform.Keys(t)).Encode([]*commonpb.Payload{{
		Metadata: map[string][]byte{"encoding": []byte("json/plain")}, Data: []byte(text),
	}})
	require.NoError(t, err)
	body, err := protojson.Marshal(&commonpb.Payloads{Payloads: payloads})
	require.NoError(t, err)
	require.NotContains(t, string(body), text)
	return string(body)
}

// decode sends the request of a page of an origin, and returns the response and the text of its payload, if there is
// one.
func (g *tokenServer) decode(t *testing.T, method, origin, token, body string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, g.url+codecPath, strings.NewReader(body))
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/json")
	for name, value := range map[string]string{"Origin": origin, "Authorization": "Bearer " + token} {
		if strings.TrimPrefix(value, "Bearer ") != "" {
			req.Header.Set(name, value)
		}
	}
	if method == http.MethodOptions {
		req.Header.Set("Access-Control-Request-Method", http.MethodPost)
	}
	res, err := g.client.Do(req)
	require.NoError(t, err)
	defer func() { require.NoError(t, res.Body.Close()) }()
	var text bytes.Buffer
	_, err = text.ReadFrom(res.Body)
	require.NoError(t, err)
	var opened commonpb.Payloads
	if protojson.Unmarshal(text.Bytes(), &opened) != nil || len(opened.GetPayloads()) == 0 {
		return res, ""
	}
	return res, string(opened.GetPayloads()[0].GetData())
}

// The test sends requests as Temporal's UI does, as a page of a foreign origin does, and without a browser.
func TestCodecDecryptsPayloadsForAdministrators(t *testing.T) {
	t.Parallel()
	g := startTokenServer(t, platform.SQLite(t), "SIGNALBOX_ENCRYPTION_CODEC_ENDPOINT=true",
		"SIGNALBOX_ENCRYPTION_CODEC_ORIGINS="+uiOrigin)
	root := g.create(t, "", "root")
	require.Equal(t, platform.ExitOK, g.cli(t, root, "project", "create", "shop").Code)
	operator, owner := g.create(t, root, "operator", "*=operator"), g.create(t, root, "owner", "shop=admin")
	const text = `{"note":"only for administrators"}`
	body, opened := sealedBody(t, text), 0
	for _, origin := range []string{"", uiOrigin} {
		for token, want := range map[string]int{"": 401, "none": 401, operator: 403, owner: 403, root: 200} {
			res, got := g.decode(t, http.MethodPost, origin, token, body)
			require.Equal(t, want, res.StatusCode, "from %q", origin)
			require.Equal(t, origin, res.Header.Get("Access-Control-Allow-Origin"))
			require.Equal(t, want == 200, got == text, got)
			if want == 200 {
				opened++
			}
		}
	}
	res, _ := g.decode(t, http.MethodOptions, uiOrigin, "", "")
	require.Equal(t, []any{http.StatusNoContent, uiOrigin, http.MethodPost, "true"}, []any{
		res.StatusCode, res.Header.Get("Access-Control-Allow-Origin"), res.Header.Get("Access-Control-Allow-Methods"),
		res.Header.Get("Access-Control-Allow-Credentials"),
	})
	require.Contains(t, res.Header.Get("Access-Control-Allow-Headers"), "Authorization")
	require.Contains(t, res.Header.Values("Vary"), "Origin")
	// Browsers send a preflight request before a token, and hide responses that are not allowed.
	for _, foreign := range []string{"https://evil.example", "null", uiOrigin + "0", "http://127.0.0.1"} {
		res, _ := g.decode(t, http.MethodOptions, foreign, "", "")
		require.Equal(t, http.StatusUnauthorized, res.StatusCode, foreign)
		asked, _ := g.decode(t, http.MethodPost, foreign, operator, body)
		require.Equal(t, http.StatusForbidden, asked.StatusCode, foreign)
		for name := range res.Header {
			require.NotContains(t, name, "Access-Control", foreign)
		}
		require.Empty(t, asked.Header.Get("Access-Control-Allow-Origin"), foreign)
	}

	export := g.cli(t, root, "audit", "export", "--project", "-", "--format", "json")
	require.Equal(t, platform.ExitOK, export.Code, export.String())
	for line := range strings.Lines(export.Stdout) {
		var entry struct{ Action, Actor, Subject string }
		require.NoError(t, json.Unmarshal([]byte(line), &entry), line)
		if entry.Action == "payloads.open" {
			require.Equal(t, "default", entry.Subject, line)
			require.Contains(t, entry.Actor, "root", line)
			opened--
		}
	}
	require.Zero(t, opened, "one entry per decrypted payload")
}

// A signal that is not sealed, or is sealed for another run, does not reach a run: the run waits, and its diagnosis
// contains the reason.
func TestForeignPayloadsAreRefused(t *testing.T) {
	t.Parallel()
	temporal := platform.StartTemporal(t)
	s := platform.StartServer(t, platform.ServerOptions{
		Temporal: temporal.Address, Store: platform.SQLite(t), Args: []string{"--encryption-require-sealed"},
		Env: []string{stuckAfter},
	})
	name := s.Publish(t, platform.Document("patient", "  - sleep:\n      wait: {hours: 1}\n"))
	sealing := platform.DialTemporal(t, temporal.Address)
	plain, err := client.DialContext(t.Context(),
		client.Options{HostPort: temporal.Address, Logger: log.NewStructuredLogger(slog.New(slog.DiscardHandler))})
	require.NoError(t, err)
	t.Cleanup(plain.Close)
	copied, err := codec.For(platform.Keys(t), "another-run").ToPayload("x")
	require.NoError(t, err)
	for want, send := range map[string]func(id string) error{
		"it is not sealed, and encryption.require_sealed refuses that": func(id string) error {
			return plain.SignalWorkflow(t.Context(), id, "", "signalbox.control", "x")
		},
		`it was sealed for workflow "another-run", and stands in the history of workflow `: func(id string) error {
			_, err := sealing.WorkflowService().SignalWorkflowExecution(t.Context(),
				&workflowservice.SignalWorkflowExecutionRequest{
					Namespace: client.DefaultNamespace, WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: id},
					SignalName: "signalbox.control",
					Input:      &commonpb.Payloads{Payloads: []*commonpb.Payload{copied}},
				})
			return err
		},
	} {
		id := s.Start(t, name, "").GetId()
		s.Await(t, id, soon, "waiting")
		require.NoError(t, send(id))
		require.Contains(t, awaitStuck(t, s, id, "TASK_FAILING", 2*soon).GetDetail(), want)
		_, err := s.Runs.TerminateRun(t.Context(),
			connect.NewRequest(&signalboxv1.TerminateRunRequest{Project: platform.DefaultProject, Id: id, Reason: "it is over"}))
		require.NoError(t, err)
		s.Await(t, id, soon, "terminated")
	}
}
