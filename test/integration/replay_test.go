package integration_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/redact"
	"github.com/signalbox-dev/signalbox/test/platform"
)

// oddInput is valid JSON in an unusual format: any reformatting changes its bytes.
const oddInput = "{ \"card\" : {\"number\":\"4111-0000\"},\n\t\"password\":\"p\\u00e9\", \"note\": \"a&b<c>\", " +
	"\"n\": 1.0, \"big\": 12345678901234567890 }"

// replayedRun is a run that the test replays in several ways.
type replayedRun struct {
	*platform.Server

	name, source, id string
}

// newReplayed starts a run of a workflow that returns its input.
func newReplayed(t *testing.T, s *platform.Server) replayedRun {
	t.Helper()
	source := strings.Replace(platform.Document("echo", "  - same:\n      set: ${ . }\n"), "do:\n",
		"  metadata: {sensitive: [/input/card/number]}\ndo:\n", 1)
	r := replayedRun{Server: s, name: s.Publish(t, source), source: source}
	r.id = s.Start(t, r.name, oddInput).GetId()
	s.Await(t, r.id, soon, "completed")
	return r
}

// replay replays the run by command, and returns the new run without redaction.
func (r replayedRun) replay(t *testing.T, args ...string) *signalboxv1.Run {
	t.Helper()
	res := r.CLI(t, append([]string{"run", "replay", r.id, "--reason", "once more", "--wait", "-o", "json"}, args...)...)
	require.Equal(t, platform.ExitOK, res.Code, res.String())
	var made printedRun
	res.JSON(t, &made)
	require.NotEqual(t, r.id, made.ID)
	return unredactedRun(t, r.Server, made.ID)
}

// refused replays the run and requires that no run was made.
func (r replayedRun) refused(t *testing.T, code int, reason string, args ...string) {
	t.Helper()
	before := len(r.AllRuns(t, r.name, 100))
	res := r.CLI(t, append([]string{"run", "replay", r.id, "--reason", "once more"}, args...)...)
	requireOneLine(t, res, code, "["+reason+"]")
	require.NotContains(t, res.Stderr, "4111")
	require.Len(t, r.AllRuns(t, r.name, 100), before, "no run was made")
}

// unredactedRun returns a run with its sensitive values.
func unredactedRun(t *testing.T, s *platform.Server, id string) *signalboxv1.Run {
	t.Helper()
	res, err := s.Runs.GetRun(t.Context(),
		connect.NewRequest(&signalboxv1.GetRunRequest{Project: platform.DefaultProject, Id: id, Unredacted: true}))
	require.NoError(t, err)
	return res.Msg.GetRun()
}

// The test replays a run with sensitive values in several ways. The output of a run shows its input.
func TestReplayOfRunWithSensitiveValues(t *testing.T) {
	eachServer(t, func(t *testing.T, s *platform.Server) {
		r := newReplayed(t, s)
		t.Run("unedited and edited", func(t *testing.T) { r.edits(t) })
		t.Run("refused edits", func(t *testing.T) { r.wrongEdits(t) })
		t.Run("once for a request", func(t *testing.T) { r.once(t) })
		t.Run("versions", func(t *testing.T) { r.versions(t) })
		t.Run("another project, paused and deleted workflow", func(t *testing.T) { r.gone(t) })
	})
}

func (r replayedRun) edits(t *testing.T) {
	shown := r.Run(t, r.id).GetInput().GetJson()
	require.Equal(t, strings.NewReplacer("4111-0000", redact.Mark, "p\\u00e9", redact.Mark).Replace(oddInput), shown)
	for _, same := range [][]string{nil, {"--patch", "[]"}, {"--patch", " [\n\t] "}} {
		made := r.replay(t, same...)
		require.Equal(t, oddInput, made.GetInput().GetJson(), "byte-identical")
		require.JSONEq(t, oddInput, made.GetOutput().GetJson(), "the run has that input")
		require.Equal(t, shown, r.Run(t, made.GetId()).GetInput().GetJson(), "and redacts the same values")
		require.Equal(t, r.id, made.GetReplayOf())
		require.Contains(t, r.Run(t, r.id).GetReplays(), made.GetId())
	}
	for patch, edit := range map[string]func(map[string]any){
		`[{"op":"replace","path":"/n","value":2}]`:            func(m map[string]any) { m["n"] = json.Number("2") },
		"[ {\n\"op\" : \"remove\" , \"path\" : \"/note\" } ]": func(m map[string]any) { delete(m, "note") },
		`[{"op":"replace","path":"/password","value":"another one"}]`: func(m map[string]any) {
			m["password"] = "another one"
		},
	} {
		made := r.replay(t, "--patch", patch)
		want, _ := platform.Decode(t, &signalboxv1.JsonValue{Json: oddInput}).(map[string]any)
		edit(want)
		require.Equal(t, want, platform.Decode(t, made.GetInput()), patch)
		require.JSONEq(t, made.GetInput().GetJson(), made.GetOutput().GetJson(), patch)
		hidden := r.Run(t, made.GetId()).GetInput().GetJson()
		require.NotContains(t, hidden, "4111")
		require.NotContains(t, hidden, "another one")
	}
	made := r.replay(t, "--input", "{}")
	require.Equal(t, []string{"{}", "{}"}, []string{made.GetInput().GetJson(), made.GetOutput().GetJson()})
}

func (r replayedRun) wrongEdits(t *testing.T) {
	shown := r.Run(t, r.id).GetInput().GetJson()
	const redacted, invalid = "INPUT_REDACTED", "INVALID_ARGUMENT"
	for args, reason := range map[[2]string]string{
		{"--input", shown}: redacted,
		{"--input", strings.ReplaceAll(shown, " ", "\n ")}:                       redacted,
		{"--patch", `[{"op":"add","path":"/x","value":"a` + redact.Mark + `"}]`}: redacted,
		{"--patch", `[{"op":"test","path":"/card/number","value":"4111-0000"}]`}: redacted,
		{"--patch", `[{"op":"copy","from":"/password","path":"/note"}]`}:         redacted,
		{"--patch", `[{"op":"move","from":"/card","path":"/note"}]`}:             redacted,
		{"--patch", `[{"op":"replace","path":"/none","value":1}]`}:               invalid,
		{"--patch", `[{"op":"test","path":"/n","value":5}]`}:                     invalid,
		{"--patch", `{"op":"remove","path":"/n"}`}:                               invalid,
		{"--version", "9.9.9"}: "VERSION_NOT_FOUND",
	} {
		code := platform.ExitFailed
		if reason == "VERSION_NOT_FOUND" {
			code = platform.ExitNotFound
		}
		r.refused(t, code, reason, args[:]...)
	}
}

// once requests the same replay from several clients at the same time.
func (r replayedRun) once(t *testing.T) {
	request := fmt.Sprintf("once-%d", rand.Uint64())
	before := len(r.AllRuns(t, r.name, 100))
	ids := make(chan string, 10)
	require.NoError(t, platform.Concurrently(cap(ids), 5, func() error {
		res, err := r.Runs.ReplayRun(t.Context(), connect.NewRequest(&signalboxv1.ReplayRunRequest{
			Project: platform.DefaultProject, Id: r.id, Reason: "once more", RequestId: request,
			Patch: &signalboxv1.JsonValue{Json: `[{"op":"remove","path":"/n"}]`},
		}))
		ids <- res.Msg.GetRun().GetId()
		return err
	}))
	close(ids)
	first := <-ids
	for id := range ids {
		require.Equal(t, first, id)
	}
	require.Len(t, r.AllRuns(t, r.name, 100), before+1)
	other := newReplayed(t, r.Server)
	other.refused(t, platform.ExitConflict, "REQUEST_ID_REUSED", "--request-id", request)
}

func (r replayedRun) versions(t *testing.T) {
	r.Publish(t, strings.NewReplacer("1.0.0", "2.0.0", "${ . }", "{v: 2}").Replace(r.source))
	for args, want := range map[string]string{"": "1.0.0", "latest": "2.0.0", "2.0.0": "2.0.0", "1.0.0": "1.0.0"} {
		made := r.replay(t, "--version", args)
		require.Equal(t, want, made.GetVersion(), "requested by %q", args)
		if want == "2.0.0" {
			require.JSONEq(t, `{"v":2}`, made.GetOutput().GetJson())
		}
	}
}

func (r replayedRun) gone(t *testing.T) {
	project := fmt.Sprintf("p%08x", rand.Uint32())
	require.Equal(t, platform.ExitOK, r.CLI(t, "project", "create", project).Code)
	r.refused(t, platform.ExitNotFound, "RUN_NOT_FOUND", "--project", project)
	r.refused(t, platform.ExitNotFound, "PROJECT_NOT_FOUND", "--project", "not-there")
	require.Equal(t, platform.ExitOK, r.CLI(t, "workflow", "pause", r.name, "--reason", "bad data").Code)
	r.refused(t, platform.ExitRefused, "WORKFLOW_PAUSED")
	r.refused(t, platform.ExitRefused, "WORKFLOW_PAUSED", "--version", "latest")
	require.Equal(t, platform.ExitOK, r.CLI(t, "workflow", "unpause", r.name).Code)

	platform.Eventually(t, soon, func() string { // open runs keep their workflow
		if res := r.CLI(t, "workflow", "delete", r.name); res.Code != platform.ExitOK {
			return res.String()
		}
		return ""
	})
	r.refused(t, platform.ExitNotFound, "WORKFLOW_NOT_FOUND")
	r.Publish(t, strings.ReplaceAll(r.source, "${ . }", "{v: 3}"))
	r.refused(t, platform.ExitNotFound, "VERSION_NOT_FOUND")
	require.JSONEq(t, `{"v":3}`, r.replay(t, "--version", "latest").GetOutput().GetJson(), "an explicit version is used")
}
