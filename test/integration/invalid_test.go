package integration_test

import (
	"strings"
	"testing"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/test/platform"
)

type wrongDocument struct {
	source string
	where  string // line:column
	parts  []string
}

func wrongDocuments(good string) map[string]wrongDocument {
	return map[string]wrongDocument{
		"broken YAML":           {strings.Replace(good, "do:", "do: [", 1), "", []string{"syntax"}},
		"unknown key":           {strings.Replace(good, "set:", "sett:", 1), "8:7", []string{"sett", "set"}},
		"unknown top-level key": {good + "dos: []\n", "10:1", []string{"unknown_key", "dos"}},
		"unknown task in then": {
			good + "  - last:\n      set: {a: 1}\n      then: lost\n", "12:13", []string{"unknown_reference", "lost"}},
		"jq that does not parse": {strings.Replace(good, `.name // "world"`, `.name // `, 1), "9:", []string{"expression"}},
		"unknown variable": {
			strings.Replace(good, ".name", "$nobody", 1), "9:", []string{"unknown_variable", "nobody"}},
		"two kinds in one task": {
			good + "  - both:\n      set: {a: 1}\n      wait: {seconds: 1}\n", "", []string{"task_kind"}},
		"missing version": {strings.Replace(good, "  version: '1.0.0'\n", "", 1), "", []string{"missing_key", "version"}},
		"not run yet":     {good + "  - on:\n      call: grpc\n      with: {}\n", "", []string{"unsupported", "grpc"}},
		"duplicate task":  {good + hello, "10:5", []string{"duplicate_name", "greet"}},
		"tab":             {strings.Replace(good, "  - greet", "\t- greet", 1), "", []string{"syntax"}},
		"nothing":         {"", "", []string{"document"}},
	}
}

func TestInvalidDocumentsAreRefused(t *testing.T) {
	eachServer(t, func(t *testing.T, s *platform.Server) {
		good := platform.Document("wrong", hello)
		for name, tc := range wrongDocuments(good) {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				path := file(t, "bad.yaml", tc.source)
				local := platform.Run(t, platform.Command{Binary: platform.Binary(t), Args: []string{"workflow", "validate", path}})
				require.Equal(t, platform.ExitFailed, local.Code, local.String())
				for _, part := range append(tc.parts, "bad.yaml:"+tc.where) {
					require.Contains(t, local.Stdout+local.Stderr, part, local.String())
				}

				published := s.CLI(t, "workflow", "publish", path)
				require.Equal(t, platform.ExitFailed, published.Code, published.String())
				for _, part := range tc.parts {
					require.Contains(t, published.Stdout+published.Stderr, part, published.String())
				}

				_, err := s.Workflows.PublishWorkflow(t.Context(), connect.NewRequest(&signalboxv1.PublishWorkflowRequest{
					Project: platform.DefaultProject, Source: tc.source,
				}))
				reason, code := platform.Reason(err)
				require.Equal(t, connect.CodeInvalidArgument, code, "%v", err)
				if tc.source != "" { // an empty source requests a stored draft
					require.Equal(t, "INVALID_DOCUMENT", reason)
				}
			})
		}
		t.Cleanup(func() { // nothing of it was stored
			namespace := namespaceOf(good)
			res, err := s.Workflows.ListWorkflows(t.Context(), connect.NewRequest(&signalboxv1.ListWorkflowsRequest{
				Project: platform.DefaultProject, Text: namespace,
			}))
			if err == nil && len(res.Msg.GetWorkflows()) > 0 {
				t.Errorf("a refused document left %v", res.Msg.GetWorkflows())
			}
		})
	})
}

func TestAllViolationsAreReportedTogether(t *testing.T) {
	t.Parallel()
	source := platform.Document("wrong",
		"  - a:\n      sett: {}\n  - b:\n      set: ${ .x | }\n  - c:\n      set: {}\n      then: nowhere\n")
	r := platform.Run(t, platform.Command{
		Binary: platform.Binary(t), Args: []string{"workflow", "validate", file(t, "bad.yaml", source)}})
	require.Equal(t, platform.ExitFailed, r.Code, r.String())
	for _, part := range []string{"sett", "expression", "nowhere"} {
		require.Contains(t, r.Stdout+r.Stderr, part)
	}
	ok := platform.Run(t, platform.Command{Binary: platform.Binary(t), Args: []string{
		"workflow", "validate", file(t, "good.yaml", platform.Document("right", hello)),
	}})
	require.Equal(t, platform.ExitOK, ok.Code, ok.String())
}

func TestValuesOverLimitsAreRefused(t *testing.T) {
	eachServer(t, func(t *testing.T, s *platform.Server) {
		name := s.Publish(t, platform.Document("limits", hello))
		input := func(kib int) string { return `{"name":"` + strings.Repeat("a", kib<<10) + `"}` }

		s.Await(t, s.Start(t, name, input(500)).GetId(), soon, "completed")
		requireOneLine(t, s.CLI(t, "run", "start", name, "--input", file(t, "big.json", input(513))), platform.ExitFailed,
			"input", "524288")
		_, err := s.TryStart(t.Context(), name, input(513))
		reason, code := platform.Reason(err)
		require.Equal(t, "INPUT_TOO_LARGE", reason)
		require.Equal(t, connect.CodeResourceExhausted, code)
		_, err = s.TryStart(t.Context(), name, input(5000))
		reason, code = platform.Reason(err)
		require.Equal(t, "REQUEST_TOO_LARGE", reason)
		require.Equal(t, connect.CodeResourceExhausted, code)
		require.Len(t, s.AllRuns(t, name, 50), 1)

		huge := platform.Document("huge", hello) + "# " + strings.Repeat("a", 1<<20) + "\n"
		_, err = s.Workflows.PublishWorkflow(t.Context(), connect.NewRequest(&signalboxv1.PublishWorkflowRequest{
			Project: platform.DefaultProject, Source: huge,
		}))
		reason, code = platform.Reason(err)
		require.Equal(t, "DEFINITION_TOO_LARGE", reason)
		require.Equal(t, connect.CodeResourceExhausted, code)
	})
}

func TestUnknownNamesAreNotFound(t *testing.T) {
	eachServer(t, func(t *testing.T, s *platform.Server) {
		const missing = "00000000-0000-4000-8000-000000000000"
		for _, args := range [][]string{
			{"run", "show", missing}, {"run", "steps", missing}, {"run", "watch", missing},
			{"run", "cancel", missing, "--reason", "x"},
		} {
			requireOneLine(t, s.CLI(t, args...), platform.ExitNotFound, missing, "RUN_NOT_FOUND")
		}
		for _, args := range [][]string{
			{"run", "start", "nobody/nothing"}, {"workflow", "show", "nobody/nothing"},
			{"workflow", "versions", "nobody/nothing"},
			{"workflow", "pause", "nobody/nothing", "--reason", "x"}, {"workflow", "delete", "nobody/nothing"},
		} {
			requireOneLine(t, s.CLI(t, args...), platform.ExitNotFound, "nobody/nothing", "WORKFLOW_NOT_FOUND")
		}
		requireOneLine(t, s.CLI(t, "run", "list", "--project", "nowhere"), platform.ExitNotFound, "nowhere",
			"PROJECT_NOT_FOUND")
		_, err := s.Runs.GetRun(t.Context(),
			connect.NewRequest(&signalboxv1.GetRunRequest{Project: platform.DefaultProject, Id: missing}))
		reason, code := platform.Reason(err)
		require.Equal(t, "RUN_NOT_FOUND", reason)
		require.Equal(t, connect.CodeNotFound, code)
		status, body, err := s.Get(t.Context(), "/v1/projects/default/runs/"+missing)
		require.NoError(t, err)
		require.Equal(t, 404, status, body)
	})
}

func TestInvalidCommandLinesAreRefused(t *testing.T) {
	eachServer(t, func(t *testing.T, s *platform.Server) {
		name := s.Publish(t, platform.Document("usage", hello))
		for line, parts := range map[string][]string{
			"run start":                           {"NAME"},
			"run start " + name + " --inputt x":   {"--input"},
			"run start " + name + " --input {":    {"JSON"},
			"run start " + name + " -o xml":       {"xml", "json"},
			"run strat " + name:                   {"strat", "start"},
			"nothing":                             {"nothing"},
			"run list --limit many":               {"many"},
			"workflow validate":                   {"FILE"},
			"run start " + name + " one-too-many": {"NAME"},
		} {
			r := s.CLI(t, strings.Fields(line)...)
			requireOneLine(t, r, platform.ExitUsage, parts...)
		}
		requireOneLine(t, s.CLI(t, "workflow", "publish", "/no/such/file.yaml"), platform.ExitFailed, "/no/such/file.yaml")
		require.Empty(t, s.AllRuns(t, name, 50))
	})
}

func TestUnreachableServerIsReported(t *testing.T) {
	t.Parallel()
	address := platform.Address(platform.FreePort(t))
	r := platform.Run(t, platform.Command{Binary: platform.Binary(t), Args: []string{"run", "list", "--address", address}})
	requireOneLine(t, r, platform.ExitUnavailable, address)
}

func TestInvalidRequestsAreRefused(t *testing.T) {
	eachServer(t, func(t *testing.T, s *platform.Server) {
		for body, part := range map[string]string{
			`{"workflow":`:                   "",
			`{"workflow":"a/b","inputt":{}}`: "inputt",
			`{"workflow":7}`:                 "workflow",
			`[]`:                             "",
		} {
			status, text, err := s.Post(t.Context(), "/v1/projects/default/runs", body)
			require.NoError(t, err)
			require.Equal(t, 400, status, "%s: %s", body, text)
			require.Contains(t, text, part)
			require.NotContains(t, text, "goroutine")
		}
	})
}
