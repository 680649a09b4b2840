package integration_test

import (
	"bytes"
	"crypto/rand"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/test/origin"
	"github.com/signalbox-dev/signalbox/test/platform"
)

func TestVersionsAreImmutable(t *testing.T) {
	eachServer(t, func(t *testing.T, s *platform.Server) {
		source := platform.Document("versions", hello)
		name := s.Publish(t, source)
		changed := strings.Replace(source, "Hello", "Goodbye", 1)

		requireOneLine(t, s.CLI(t, "workflow", "publish", file(t, "w.yaml", changed)), platform.ExitConflict, name, "1.0.0")
		_, err := s.Workflows.PublishWorkflow(t.Context(), connect.NewRequest(&signalboxv1.PublishWorkflowRequest{
			Project: platform.DefaultProject, Source: changed,
		}))
		reason, code := platform.Reason(err)
		require.Equal(t, "VERSION_TAKEN", reason)
		require.Equal(t, connect.CodeAlreadyExists, code)

		s.Publish(t, version(changed, "1.1.0"))
		r := s.CLI(t, "workflow", "versions", name, "-o", "json")
		require.Equal(t, platform.ExitOK, r.Code, r.String())
		require.Less(t, strings.Index(r.Stdout, "1.1.0"), strings.Index(r.Stdout, "1.0.0"), "newest first")

		diff := s.CLI(t, "workflow", "diff", name, "1.0.0", "1.1.0")
		require.Equal(t, platform.ExitOK, diff.Code, diff.String())
		require.Contains(t, diff.Stdout, "Goodbye")

		old := s.CLI(t, "run", "start", name, "--version", "1.0.0", "--wait", "-o", "json")
		require.Contains(t, old.Stdout, "Hello, world!")
		newest := s.CLI(t, "run", "start", name, "--wait", "-o", "json")
		require.Contains(t, newest.Stdout, "Goodbye, world!")
		requireOneLine(t, s.CLI(t, "run", "start", name, "--version", "9.9.9"), platform.ExitNotFound, "9.9.9")
	})
}

func TestRunKeepsItsDocument(t *testing.T) {
	eachServer(t, func(t *testing.T, s *platform.Server) {
		o := origin.New(t)
		gate := o.Hold("POST /step", 200, `{}`)
		source := platform.Document("pinned", postStep("step", o.URL+"/step")+"  - last:\n      set: {edition: first}\n")
		id := s.Start(t, s.Publish(t, source), "").GetId()
		<-gate.Arrived
		s.Publish(t, version(strings.Replace(source, "first", "second", 1), "2.0.0"))
		gate.Open()
		require.JSONEq(t, `{"edition":"first"}`, s.Await(t, id, soon, "completed").GetOutput().GetJson())
	})
}

func TestInvalidDraftIsStoredButNotPublished(t *testing.T) {
	eachServer(t, func(t *testing.T, s *platform.Server) {
		source := platform.Document("draft", hello)
		broken := strings.Replace(source, "set:", "sett:", 1)
		saved := s.CLI(t, "workflow", "save", file(t, "w.yaml", broken), "-o", "json")
		require.Equal(t, platform.ExitOK, saved.Code, saved.String())

		name := namespaceOf(source) + "/draft"
		_, err := s.TryStart(t.Context(), name, "")
		reason, code := platform.Reason(err)
		require.Equal(t, "WORKFLOW_NOT_PUBLISHED", reason)
		require.Equal(t, connect.CodeFailedPrecondition, code)
		requireOneLine(t, s.CLI(t, "run", "start", name), platform.ExitRefused, name, "publish")

		_, err = s.Workflows.PublishWorkflow(t.Context(), connect.NewRequest(&signalboxv1.PublishWorkflowRequest{
			Project: platform.DefaultProject, Workflow: name,
		}))
		reason, _ = platform.Reason(err)
		require.Equal(t, "INVALID_DOCUMENT", reason)

		s.CLI(t, "workflow", "save", file(t, "w.yaml", source))
		res, err := s.Workflows.PublishWorkflow(t.Context(), connect.NewRequest(&signalboxv1.PublishWorkflowRequest{
			Project: platform.DefaultProject, Workflow: name,
		}))
		require.NoError(t, err)
		require.True(t, res.Msg.GetCreated())
		s.Await(t, s.Start(t, name, "").GetId(), soon, "completed")
	})
}

func TestPausedWorkflowStartsNoRun(t *testing.T) {
	eachServer(t, func(t *testing.T, s *platform.Server) {
		o := origin.New(t)
		gate := o.Hold("POST /step", 200, `{}`)
		name := s.Publish(t, platform.Document("paused", postStep("step", o.URL+"/step")))
		open := s.Start(t, name, "").GetId()
		<-gate.Arrived

		paused := s.CLI(t, "workflow", "pause", name, "--reason", "supplier is down")
		require.Equal(t, platform.ExitOK, paused.Code, paused.String())
		requireOneLine(t, s.CLI(t, "run", "start", name), platform.ExitRefused, name, "paused", "supplier is down")
		_, err := s.TryStart(t.Context(), name, "")
		reason, code := platform.Reason(err)
		require.Equal(t, "WORKFLOW_PAUSED", reason)
		require.Equal(t, connect.CodeFailedPrecondition, code)
		require.Len(t, s.AllRuns(t, name, 50), 1)

		gate.Open()
		s.Await(t, open, soon, "completed") // open runs continue
		require.Equal(t, platform.ExitOK, s.CLI(t, "workflow", "unpause", name).Code)
		s.Await(t, s.Start(t, name, "").GetId(), soon, "completed")
	})
}

func TestWorkflowWithOpenRunsIsNotDeleted(t *testing.T) {
	eachServer(t, func(t *testing.T, s *platform.Server) {
		o := origin.New(t)
		gate := o.Hold("POST /step", 200, `{}`)
		name := s.Publish(t, platform.Document("deleted", postStep("step", o.URL+"/step")))
		id := s.Start(t, name, "").GetId()
		<-gate.Arrived

		requireOneLine(t, s.CLI(t, "workflow", "delete", name), platform.ExitRefused, name, "open")
		_, err := s.Workflows.DeleteWorkflow(t.Context(), connect.NewRequest(&signalboxv1.DeleteWorkflowRequest{
			Project: platform.DefaultProject, Workflow: name,
		}))
		reason, code := platform.Reason(err)
		require.Equal(t, "WORKFLOW_HAS_OPEN_RUNS", reason)
		require.Equal(t, connect.CodeFailedPrecondition, code)

		gate.Open()
		s.Await(t, id, soon, "completed")
		deleted := s.CLI(t, "workflow", "delete", name)
		require.Equal(t, platform.ExitOK, deleted.Code, deleted.String())
		requireOneLine(t, s.CLI(t, "run", "start", name), platform.ExitNotFound, name)
		require.Equal(t, "completed", s.Run(t, id).GetStatus(), "finished runs stay readable")
		require.Len(t, s.Steps(t, id), 1)
	})
}

// A short name stands for a workflow only while no other workflow has that name.
func TestShortNameResolvesWhileUnique(t *testing.T) {
	eachServer(t, func(t *testing.T, s *platform.Server) {
		source := platform.Document("short", hello)
		name := s.Publish(t, source)
		short := "short-" + strings.Split(name, "/")[0]
		source = strings.Replace(source, "name: short", "name: "+short, 1)
		s.Publish(t, source)
		require.Equal(t, platform.ExitOK, s.CLI(t, "run", "start", short, "--wait").Code)

		twin := s.Publish(t, strings.Replace(source, "namespace: t", "namespace: u", 1))
		requireOneLine(t, s.CLI(t, "run", "start", short), platform.ExitFailed, twin)
		_, err := s.TryStart(t.Context(), short, "")
		reason, code := platform.Reason(err)
		require.Equal(t, "WORKFLOW_AMBIGUOUS", reason)
		require.Equal(t, connect.CodeInvalidArgument, code)
	})
}

// A first workflow is written, run, broken, mended and run again, by one command each.
func TestWorkflowRunPublishesAndRuns(t *testing.T) {
	eachServer(t, func(t *testing.T, s *platform.Server) {
		path := filepath.Join(t.TempDir(), "first-"+strings.ToLower(rand.Text()[:8])+".yaml")
		require.Equal(t, platform.ExitOK, s.CLI(t, "workflow", "init", path).Code)
		run := func(args ...string) platform.Result {
			return s.CLI(t, append([]string{"workflow", "run", path, "-i", `{"url": "` + s.URL + `/livez"}`}, args...)...)
		}
		r := run("--jq", ".output")
		require.Equal(t, platform.ExitOK, r.Code, r.String())
		require.JSONEq(t, `{"status": 200, "healthy": true}`, r.Stdout)
		require.Contains(t, r.Stderr, "published default/first-")
		again := run("--detach", "-o", "name")
		require.Equal(t, platform.ExitOK, again.Code, again.String())
		require.NotContains(t, again.Stderr, "published")
		require.Contains(t, s.CLI(t, "run", "watch", again.Stdout[:18]).Stdout, "completed summarize (set)",
			"the beginning of the ID is enough")

		source, err := os.ReadFile(path)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path, bytes.ReplaceAll(source, []byte("healthy:"), []byte("well:")), 0o600))
		requireOneLine(t, run(), platform.ExitConflict, "0.1.0", "VERSION_TAKEN", "--bump")
		r = run("--bump", "--jq", ".version, .output.well")
		require.Equal(t, "0.1.1\ntrue\n", r.Stdout, r.String())
		short := regexp.MustCompile(`type: https://\S*/communication`).ReplaceAll(source, []byte("type: communication"))
		require.NoError(t, os.WriteFile(path, short, 0o600))
		r = run("--bump")
		require.Equal(t, platform.ExitOK, r.Code, r.String())
		require.Contains(t, r.Stderr, "warning: never_matches", "a filter that matches nothing is mentioned")
		require.NoError(t, os.WriteFile(path, bytes.ReplaceAll(source, []byte("set:"), []byte("sett:")), 0o600))
		r = run("--bump")
		require.Equal(t, platform.ExitFailed, r.Code, r.String())
		require.Contains(t, r.Stderr, path+":", "the problems have positions")
	})
}
