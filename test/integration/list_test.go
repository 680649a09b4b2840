package integration_test

import (
	"encoding/json"
	"slices"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/test/platform"
)

func ids(runs []*signalboxv1.Run) []string {
	out := make([]string, len(runs))
	for i, r := range runs {
		out[i] = r.GetId()
	}
	return out
}

func TestListPagesAreStableUnderWrites(t *testing.T) {
	eachServer(t, func(t *testing.T, s *platform.Server) {
		name := s.Publish(t, platform.Document("listed", hello))
		const before = 23
		var started []string
		for range before {
			started = append(started, s.Start(t, name, "").GetId())
		}
		slices.Reverse(started)

		// Runs that start while a client reads pages neither repeat nor displace earlier runs.
		var paged []string
		token := ""
		for {
			res, err := s.Runs.ListRuns(t.Context(), connect.NewRequest(&signalboxv1.ListRunsRequest{
				Project: platform.DefaultProject, Filter: &signalboxv1.RunFilter{Workflow: name}, PageSize: 5, PageToken: token,
			}))
			require.NoError(t, err)
			paged = append(paged, ids(res.Msg.GetRuns())...)
			s.Start(t, name, "")
			if token = res.Msg.GetNextPageToken(); token == "" {
				break
			}
		}
		require.Equal(t, started, paged)
	})
}

func TestListFilters(t *testing.T) {
	eachServer(t, func(t *testing.T, s *platform.Server) {
		good := s.Publish(t, platform.Document("mixed", "  - check:\n      if: ${ .bad == true }\n      raise:\n        "+
			"error: {type: https://example.com/bad, status: 400, title: Bad}\n"))
		fine := s.Await(t, s.Start(t, good, `{}`).GetId(), soon, "completed")
		bad := s.Await(t, s.Start(t, good, `{"bad":true}`).GetId(), soon, "failed")

		list := func(change func(*signalboxv1.ListRunsRequest)) []string {
			req := &signalboxv1.ListRunsRequest{Project: platform.DefaultProject, Filter: &signalboxv1.RunFilter{Workflow: good}}
			change(req)
			res, err := s.Runs.ListRuns(t.Context(), connect.NewRequest(req))
			require.NoError(t, err)
			for _, r := range res.Msg.GetRuns() {
				require.Nil(t, r.GetInput(), "lists omit payloads")
				require.Nil(t, r.GetOutput())
			}
			return ids(res.Msg.GetRuns())
		}
		both := []string{bad.GetId(), fine.GetId()}
		require.Equal(t, both, list(func(*signalboxv1.ListRunsRequest) {}))
		require.Equal(t, both[:1], list(func(r *signalboxv1.ListRunsRequest) { r.Filter.Statuses = []string{"failed"} }))
		require.Equal(t, both, list(func(r *signalboxv1.ListRunsRequest) {
			r.Filter.Statuses = []string{"failed", "completed"}
		}))
		require.Empty(t, list(func(r *signalboxv1.ListRunsRequest) { r.Filter.Version = "7.0.0" }))
		require.Equal(t, both[1:], list(func(r *signalboxv1.ListRunsRequest) { r.RequestId = fine.GetRequestId() }))
		require.Equal(t, []string{fine.GetId(), bad.GetId()}, list(func(r *signalboxv1.ListRunsRequest) {
			r.Order = "oldest"
		}))
		require.Equal(t, both[:1], list(func(r *signalboxv1.ListRunsRequest) {
			r.Filter.Since = bad.GetCreateTime()
		}), "since is inclusive")
		require.Equal(t, both[1:], list(func(r *signalboxv1.ListRunsRequest) {
			r.Filter.Until = bad.GetCreateTime()
		}), "until is exclusive")

		r := s.CLI(t, "run", "list", "--workflow", good, "--status", "failed", "-o", "json")
		require.Equal(t, platform.ExitOK, r.Code, r.String())
		require.Contains(t, r.Stdout, bad.GetId())
		require.NotContains(t, r.Stdout, fine.GetId())
		requireOneLine(t, s.CLI(t, "run", "list", "--status", "finished"), platform.ExitUsage, "finished", "completed")
	})
}

func TestForeignPageTokensAreRefused(t *testing.T) {
	eachServer(t, func(t *testing.T, s *platform.Server) {
		name := s.Publish(t, platform.Document("tokens", hello))
		s.Start(t, name, "")
		s.Start(t, name, "")
		page := func(token string, statuses ...string) (*connect.Response[signalboxv1.ListRunsResponse], error) {
			return s.Runs.ListRuns(t.Context(), connect.NewRequest(&signalboxv1.ListRunsRequest{
				Project: platform.DefaultProject, Filter: &signalboxv1.RunFilter{Workflow: name, Statuses: statuses}, PageSize: 1,
				PageToken: token,
			}))
		}
		first, err := page("")
		require.NoError(t, err)
		require.NotEmpty(t, first.Msg.GetNextPageToken())
		for token, statuses := range map[string][]string{first.Msg.GetNextPageToken(): {"failed"}, "garbage!": nil} {
			_, err := page(token, statuses...)
			reason, code := platform.Reason(err)
			require.Equal(t, "INVALID_PAGE_TOKEN", reason)
			require.Equal(t, connect.CodeInvalidArgument, code)
		}
	})
}

func TestAuditRecordsActorAndAction(t *testing.T) {
	eachServer(t, func(t *testing.T, s *platform.Server) {
		name := s.Publish(t, platform.Document("audited", waits(600)))
		id := s.Start(t, name, "").GetId()
		s.Await(t, id, soon, "waiting")
		require.Equal(t, platform.ExitOK, s.CLI(t, "run", "cancel", id, "--reason", "audit me").Code)
		s.Await(t, id, soon, "canceled")
		require.Equal(t, platform.ExitOK, s.CLI(t, "workflow", "pause", name, "--reason", "enough").Code)
		require.Equal(t, platform.ExitOK, s.CLI(t, "workflow", "delete", name).Code)

		actions := func(subject string) []string {
			res, err := s.Audit.ListAudit(t.Context(), connect.NewRequest(&signalboxv1.ListAuditRequest{
				Project: platform.DefaultProject, Subject: subject,
			}))
			require.NoError(t, err)
			var out []string
			for _, e := range res.Msg.GetEntries() {
				require.Equal(t, "local", e.GetActorKind())
				require.NotEmpty(t, e.GetActor())
				require.WithinDuration(t, time.Now(), e.GetTime().AsTime(), 5*time.Minute)
				out = append(out, e.GetAction()+":"+e.GetReason())
			}
			return out
		}
		require.Equal(t, []string{"run.cancel:audit me", "run.start:"}, actions(id))
		require.Equal(t, []string{"workflow.delete:", "workflow.pause:enough", "workflow.publish:"}, actions(name))

		// A call that is refused or changes nothing leaves no entry.
		require.NotEqual(t, platform.ExitOK, s.CLI(t, "run", "cancel", id, "--reason", "again").Code)
		require.Len(t, actions(id), 2)
		r := s.CLI(t, "audit", "list", "--subject", id, "-o", "json")
		require.Equal(t, platform.ExitOK, r.Code, r.String())
		require.Contains(t, r.Stdout, "audit me")
	})
}

// Many concurrent clients receive the same answers.
func TestManyRunsInParallel(t *testing.T) {
	eachServer(t, func(t *testing.T, s *platform.Server) {
		name := s.Publish(t, platform.Document("many", "  - add:\n      set: {n: \"${ .n + 1 }\"}\n"))
		const runs, callers = 200, 10
		var wg sync.WaitGroup
		failures := make(chan string, runs)
		for c := range callers {
			wg.Go(func() {
				for i := c; i < runs; i += callers {
					run, err := s.TryStart(t.Context(), name, `{"n":`+itoa(i)+`}`)
					if err == nil {
						run, err = s.Watch(t.Context(), run.GetId())
					}
					if err != nil {
						failures <- err.Error()
						continue
					}
					if want := `{"n":` + itoa(i+1) + `}`; run.GetOutput().GetJson() != want {
						failures <- run.GetStatus() + " " + run.GetOutput().GetJson() + " instead of " + want
					}
				}
			})
		}
		wg.Wait()
		close(failures)
		for f := range failures {
			t.Error(f)
		}
		require.Len(t, s.AllRuns(t, name, 500), runs)
	})
}

func TestREST(t *testing.T) {
	eachServer(t, func(t *testing.T, s *platform.Server) {
		name := s.Publish(t, platform.Document("rest", hello))
		status, body, err := s.Post(t.Context(), "/v1/projects/default/runs",
			`{"workflow":"`+name+`","input":{"name":"curl"}}`)
		require.NoError(t, err)
		require.Equal(t, 200, status, body)
		var started struct{ Run printedRun }
		require.NoError(t, json.Unmarshal([]byte(body), &started))
		s.Await(t, started.Run.ID, soon, "completed")
		_, body, err = s.Get(t.Context(), "/v1/projects/default/runs/"+started.Run.ID)
		require.NoError(t, err)
		var got struct{ Run printedRun }
		require.NoError(t, json.Unmarshal([]byte(body), &got))
		require.Equal(t, map[string]any{"message": "Hello, curl!"}, got.Run.Output)

		status, body, err = s.Post(t.Context(), "/v1/projects/default/runs/"+started.Run.ID+":cancel", `{"reason":"late"}`)
		require.NoError(t, err)
		require.Equal(t, 400, status, body) // FAILED_PRECONDITION
		require.Contains(t, body, "RUN_ENDED")

		for path, want := range map[string]int{
			"/livez": 200, "/readyz": 200, "/metrics": 200, "/nowhere": 404, "/v1/version": 200} {
			status, body, err := s.Get(t.Context(), path)
			require.NoError(t, err)
			require.Equal(t, want, status, "%s: %s", path, body)
		}
		_, metrics, err := s.Get(t.Context(), "/metrics")
		require.NoError(t, err)
		require.Contains(t, metrics, "signalbox_runs_total")
		require.NotContains(t, metrics, started.Run.ID)
	})
}
