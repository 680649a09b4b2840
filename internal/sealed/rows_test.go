package sealed_test

import (
	"bytes"
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/keyring"
	"github.com/signalbox-dev/signalbox/internal/redact"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/sealed"
	"github.com/signalbox-dev/signalbox/internal/sealed/sealedtest"
	"github.com/signalbox-dev/signalbox/internal/store"
)

// versions has a second document in which no location is sensitive.
type versions struct{ documents }

func (v versions) Document(ctx context.Context, of string) (*dsl.Document, error) {
	if of == hash {
		return v.documents.Document(ctx, of)
	}
	doc, _ := dsl.Parse([]byte(
		"document: {dsl: 1.0.3, namespace: a, name: b, version: 2.0.0}\ndo: [{a: {set: {n: 1}}}]\n"))
	return doc, nil
}

var at = time.Unix(1767225600, 0)

func insert(t *testing.T, v *sealed.Sealer, kept *store.Store, id, of, replayOf, input string) {
	t.Helper()
	trigger := run.TriggerAPI
	if replayOf != "" {
		trigger = run.TriggerReplay
	}
	_, made, err := v.Rows(kept).InsertRun(t.Context(), run.Run{
		ID: id, Project: here, Workflow: "a/b", Version: "1.0.0", DocumentHash: of, Input: json.RawMessage(input),
		ReplayOf: replayOf,
		Status:   run.Queued, QueuedReason: run.QueuedStarting, StatusAt: at, CreatedAt: at, RequestID: id, Trigger: trigger,
	}, audit.NewEntry(t.Context(), at, audit.RunStart, here, id, ""))
	require.NoError(t, err)
	require.True(t, made)
}

func write(t *testing.T, v *sealed.Sealer, kept *store.Store, id, execution string, position int64, output string,
	p *run.Error) run.Step {
	t.Helper()
	_, err := v.Rows(kept).ApplyUpdates(t.Context(), []run.Update{{
		RunID: id, ExecutionID: execution, Position: position << 32,
		State: &run.State{Status: run.Running, Since: at, StartedAt: at},
		Steps: []run.Step{{Number: position, Path: "/do/0/a", Pointer: "/do/0/a", Task: "a", Kind: "set", Status: "completed",
			StartedAt: at,
			Output:    json.RawMessage(output), Error: p, Position: position << 32}},
	}})
	require.NoError(t, err)
	stepsPage, err := kept.ListSteps(t.Context(), here, id, run.StepFilter{After: position - 1, Limit: 1})
	require.NoError(t, err)
	steps := stepsPage.Steps
	require.Len(t, steps, 1)
	return steps[0]
}

func TestReplayHidesWhatTheReplayedRunHides(t *testing.T) {
	t.Parallel()
	kept, keys := newStore(t), keyring.Random("k1")
	fresh := func() *sealed.Sealer { return sealed.New(keys, kept.Originals(), versions{}) }
	v := fresh()
	insert(t, v, kept, "r1", hash, "", `{"card":"planted-card"}`)
	insert(t, v, kept, "r2", "sha256:bb", "r1", `{"card":"planted-card"}`)
	insert(t, fresh(), kept, "r3", "sha256:bb", "r2", `{"n":1}`)
	r, err := kept.GetRun(t.Context(), here, "r2")
	require.NoError(t, err)
	require.Equal(t, `{"card":"`+redact.Mark+`"}`, string(r.Input))
	plain, err := fresh().Input(t.Context(), r)
	require.NoError(t, err)
	require.Equal(t, `{"card":"planted-card"}`, string(plain))
	for _, id := range []string{"r2", "r3"} {
		for i, now := range []*sealed.Sealer{v, fresh()} {
			step := write(t, now, kept, id, "x", int64(i+1), `{"card":"0000","said":"planted-card"}`, nil)
			require.Equal(t, `{"card":"`+redact.Mark+`","said":"`+redact.Mark+`"}`, string(step.Output))
		}
	}
}

func TestSecretsOfAnotherProcessAreHidden(t *testing.T) {
	t.Parallel()
	kept, keys := newStore(t), keyring.Random("k1")
	first, second := over(kept, keys), over(kept, keys)
	insert(t, first, kept, "r1", hash, "", `{}`)
	write(t, first, kept, "r1", "x", 1, `{"n":1}`, nil)
	write(t, second, kept, "r1", "y", 2, `{"password":"planted-word"}`, nil)
	step := write(t, first, kept, "r1", "z", 3, `{"said":"planted-word"}`, nil)
	require.Equal(t, `{"said":"`+redact.Mark+`"}`, string(step.Output))
}

func TestWithoutTheKeyErrorsAreHidden(t *testing.T) {
	t.Parallel()
	kept := newStore(t)
	insert(t, over(kept, keyring.Random("k1")), kept, "r1", hash, "", `{"card":"planted-card"}`)
	step := write(t, over(kept, keyring.Random("k2")), kept, "r1", "x", 1, "",
		&run.Error{Type: "urn:t", Title: "t", Detail: "planted-card"})
	require.Equal(t, run.Error{Type: "urn:t", Title: redact.Mark, Detail: redact.Mark}, *step.Error)
	text, err := over(kept, keyring.Random("k2")).Text(t.Context(), "r1", "it said planted-card")
	require.NoError(t, err)
	require.Equal(t, redact.Mark, text)
}

func TestReplayOfAnImportedRunHidesWhatIsUsuallySecret(t *testing.T) {
	t.Parallel()
	kept := newStore(t)
	v := sealed.New(keyring.Random("k1"), kept.Originals(), versions{})
	_, made, err := sealedtest.Rows(t, kept).InsertRun(t.Context(), run.Run{
		ID: "old", Project: here, Workflow: "a/b", Input: json.RawMessage(`{"n":1,"password":"` + redact.Mark + `"}`),
		Status: run.Queued, QueuedReason: run.QueuedWorker, StatusAt: at, CreatedAt: at, RequestID: "old",
		Trigger: run.TriggerImport,
	}, audit.NewEntry(t.Context(), at, audit.RunImport, here, "old", ""))
	require.NoError(t, err)
	require.True(t, made)
	insert(t, v, kept, "new", "sha256:bb", "old", `{"n":1,"password":"planted-word"}`)
	r, err := kept.GetRun(t.Context(), here, "new")
	require.NoError(t, err)
	require.Equal(t, `{"n":1,"password":"`+redact.Mark+`"}`, string(r.Input), "and nothing else")
	plain, err := v.Input(t.Context(), r)
	require.NoError(t, err)
	require.Equal(t, `{"n":1,"password":"planted-word"}`, string(plain))
	step := write(t, v, kept, "new", "x", 1, `{"said":"planted-word","n":2}`, nil)
	require.Equal(t, `{"said":"`+redact.Mark+`","n":2}`, string(step.Output))
}

// TestSecretsInUpdatesAreHiddenByEveryProcess moves a run back to a process that has cached fewer secrets: the update
// has the secrets that the interpretation found, also before they are stored.
func TestSecretsInUpdatesAreHiddenByEveryProcess(t *testing.T) {
	t.Parallel()
	kept, keys := newStore(t), keyring.Random("k1")
	first, second := over(kept, keys), over(kept, keys)
	insert(t, first, kept, "r1", hash, "", `{}`)
	write(t, first, kept, "r1", "x", 1, `{"n":1}`, nil)
	_, err := first.Rows(kept).ApplyUpdates(t.Context(), []run.Update{{
		RunID: "r1", ExecutionID: "x", Position: 3 << 32, State: &run.State{Status: run.Running, Since: at, StartedAt: at},
		Sensitive: []string{"planted-word"},
		Steps: []run.Step{{Number: 3, Path: "/do/0/a", Pointer: "/do/0/a", Task: "a", Kind: "set", Status: "completed",
			StartedAt: at, Position: 3 << 32,
			Input: json.RawMessage(`"{\"pin\":\"12\""`), InputShown: json.RawMessage(`"{\"pin\":\"⟦redacted⟧\""`),
			Output: json.RawMessage(`{"said":"planted-word"}`)}},
	}})
	require.NoError(t, err)
	stepsPage, err := kept.ListSteps(t.Context(), here, "r1", run.StepFilter{After: 2, Limit: 1})
	require.NoError(t, err)
	steps := stepsPage.Steps
	require.Equal(t, `{"said":"`+redact.Mark+`"}`, string(steps[0].Output))
	require.Equal(t, `"{\"pin\":\"`+redact.Mark+`\""`, string(steps[0].Input))
	opened, err := second.OpenSteps(t.Context(), here, "r1", steps)
	require.NoError(t, err)
	require.Equal(t, `"{\"pin\":\"12\""`, string(opened[0].Input))
	text, err := second.Text(t.Context(), "r1", "it said planted-word")
	require.NoError(t, err)
	require.Equal(t, "it said "+redact.Mark, text)
}

// TestWholeValuesHideWhatTheRowsHide reads a value in which a secret of an earlier step occurs, and one of its own.
func TestWholeValuesHideWhatTheRowsHide(t *testing.T) {
	t.Parallel()
	kept, keys := newStore(t), keyring.Random("k1")
	v := over(kept, keys)
	insert(t, v, kept, "r1", hash, "", `{}`)
	write(t, v, kept, "r1", "x", 1, `{"password":"planted-word"}`, nil)
	value := json.RawMessage(`{"said":"it was planted-word, then own-secret","token":"own-secret","n":1.10}`)
	at := redact.Location{Pointer: "/do/0/a", Task: "a", Output: true}
	for name, sealer := range map[string]*sealed.Sealer{"the writer": v, "another process": over(kept, keys)} {
		shown, err := sealer.StepValue(t.Context(), "r1", at, value)
		require.NoError(t, err)
		require.Equal(t, `{"said":"it was `+redact.Mark+`, then `+redact.Mark+`","token":"`+redact.Mark+`","n":1.10}`,
			string(shown), name)
	}
	shown, err := over(kept, keyring.Random("k2")).StepValue(t.Context(), "r1", at, json.RawMessage(`{"n":1}`))
	require.NoError(t, err)
	require.Equal(t, `"`+redact.Mark+`"`, string(shown), "without the key of the secrets nothing is shown")
}

// TestKeysRotateInTheMiddleOfARun checks that values sealed before and after a rotation open with a ring of both keys,
// and that all secrets stay hidden, also in a replay of a replay.
func TestKeysRotateInTheMiddleOfARun(t *testing.T) {
	t.Parallel()
	kept := newStore(t)
	old, next := bytes.Repeat([]byte{1}, keyring.KeySize), bytes.Repeat([]byte{2}, keyring.KeySize)
	ring := func(active string) *sealed.Sealer {
		keys, err := keyring.New(active, map[string][]byte{"k1": old, "k2": next})
		require.NoError(t, err)
		return sealed.New(keys, kept.Originals(), versions{})
	}
	insert(t, ring("k1"), kept, "r1", hash, "", `{"card":"planted-card"}`)
	write(t, ring("k1"), kept, "r1", "x", 1, `{"password":"planted-first"}`, nil)
	write(t, ring("k2"), kept, "r1", "x", 2, `{"password":"planted-second"}`, nil)
	step := write(t, ring("k1"), kept, "r1", "x", 3, `{"said":"planted-card planted-first planted-second"}`, nil)
	mark := redact.Mark
	require.Equal(t, `{"said":"`+mark+` `+mark+` `+mark+`"}`, string(step.Output))
	stepsPage, err := kept.ListSteps(t.Context(), here, "r1", run.StepFilter{Limit: 9})
	require.NoError(t, err)
	steps := stepsPage.Steps
	steps, err = ring("k2").OpenSteps(t.Context(), here, "r1", steps)
	require.NoError(t, err)
	require.JSONEq(t, `{"password":"planted-first"}`, string(steps[0].Output))
	require.JSONEq(t, `{"password":"planted-second"}`, string(steps[1].Output))

	insert(t, ring("k2"), kept, "r2", hash, "r1", `{"card":"planted-card"}`)
	insert(t, ring("k2"), kept, "r3", hash, "r2", `{"card":"planted-card","said":"planted-first planted-second"}`)
	r, err := kept.GetRun(t.Context(), here, "r3")
	require.NoError(t, err)
	require.Equal(t, `{"card":"`+mark+`","said":"`+mark+` `+mark+`"}`, string(r.Input))
	plain, err := ring("k1").Input(t.Context(), r)
	require.NoError(t, err)
	require.JSONEq(t, `{"card":"planted-card","said":"planted-first planted-second"}`, string(plain))

	// Without the old key, the secrets sealed with it are unknown: the rest of the run is hidden as a whole.
	gone, err := keyring.New("k2", map[string][]byte{"k2": next})
	require.NoError(t, err)
	step = write(t, sealed.New(gone, kept.Originals(), versions{}), kept, "r1", "y", 4, `{"said":"planted-first"}`, nil)
	require.Equal(t, `"`+mark+`"`, string(step.Output))
}

// TestEndsOfRunsAreRedacted checks ends that the platform itself writes, which may quote the run's input.
func TestEndsOfRunsAreRedacted(t *testing.T) {
	t.Parallel()
	kept, keys := newStore(t), keyring.Random("k1")
	insert(t, over(kept, keys), kept, "r1", hash, "", `{"card":"planted-card"}`)
	_, _, err := over(kept, keys).Rows(kept).EnqueueRun(t.Context(), run.Run{
		ID: "r2", Project: here, Workflow: "a/b", Version: "1.0.0", DocumentHash: hash,
		Input:  json.RawMessage(`{"card":"planted-card"}`),
		Status: run.Queued, QueuedReason: run.QueuedEngine, StatusAt: at, CreatedAt: at, RequestID: "r2",
		Trigger: run.TriggerAPI,
	}, 10, audit.NewEntry(t.Context(), at, audit.RunStart, here, "r2", ""))
	require.NoError(t, err)
	p := run.Error{Type: "t", Title: "refused planted-card",
		Detail: "temporal answered: planted-card, or 706c616e7465642d63617264"}
	e := audit.NewEntry(t.Context(), at, audit.RunCancel, here, "r1", "")
	rows := over(kept, keys).Rows(kept)
	ended, err := rows.FinishMissing(t.Context(), "r1", run.Failed, &p, at, e)
	require.NoError(t, err)
	require.True(t, ended)
	ended, err = rows.FinishQueued(t.Context(), run.Run{ID: "r2", Status: run.Failed, Error: &p, EndedAt: at}, e)
	require.NoError(t, err)
	require.True(t, ended)
	for _, id := range []string{"r1", "r2"} {
		r, err := kept.GetRun(t.Context(), here, id)
		require.NoError(t, err)
		require.Equal(t, run.Error{
			Type: "t", Title: "refused " + redact.Mark, Detail: "temporal answered: " + redact.Mark + ", or " +
				redact.Mark}, *r.Error, id)
	}
	require.Contains(t, p.Detail, "planted-card", "the argument is unchanged")
}

func TestLogsAreRedacted(t *testing.T) {
	t.Parallel()
	kept, keys := newStore(t), keyring.Random("k1")
	v := sealed.New(keys, kept.Originals(), versions{})
	insert(t, v, kept, "r1", hash, "", `{"card":"planted-card"}`)
	_, err := v.Rows(kept).ApplyUpdates(t.Context(), []run.Update{{RunID: "r1", ExecutionID: "e", Position: 1,
		Logs: []run.AttemptLog{{Step: 1, Attempt: 1, Task: "p", Stdout: run.LogStream{Text: "paid with planted-card\n"},
			Stderr: run.LogStream{Text: "planted-card is expired\n"}}}}})
	require.NoError(t, err)
	logs, err := kept.ListLogs(t.Context(), here, "r1", run.LogFilter{Limit: 10})
	require.NoError(t, err)
	require.Equal(t, []run.AttemptLog{{Step: 1, Attempt: 1, Task: "p",
		Stdout: run.LogStream{Text: "paid with " + redact.Mark + "\n"},
		Stderr: run.LogStream{Text: redact.Mark + " is expired\n"}}}, logs)
}
