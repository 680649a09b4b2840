package integration_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/test/origin"
	"github.com/signalbox-dev/signalbox/test/platform"
)

// planted is a text of large values, which no store of payloads may have in plain text.
const planted = "planted-in-a-large-value "

// payloadStores returns the variables of stores of payloads apart from the database.
func payloadStores(t *testing.T) map[string][]string {
	t.Helper()
	return map[string][]string{
		"folder":   {"SIGNALBOX_PAYLOADS_STORE=folder", "SIGNALBOX_PAYLOADS_FOLDER=" + t.TempDir()},
		"postgres": {"SIGNALBOX_PAYLOADS_STORE=postgres", "SIGNALBOX_PAYLOADS_DSN=" + platform.Postgres(t).DSN},
	}
}

// readsBoth publishes a workflow that waits for an event, and needs its large input and a large response after that.
func readsBoth(t *testing.T, s *platform.Server) string {
	t.Helper()
	o := origin.New(t)
	o.Answer("GET /large", 200, `"`+strings.Repeat(planted, 2000)+`"`)
	return s.Publish(t, platform.Document("reads-both",
		"  - fetch: {call: http, with: {method: get, endpoint: "+o.URL+"/large}, export: {as: '${ {fetched: .} }'}}\n"+
			"  - ask: {listen: {to: {one: {with: {type: go}}}}}\n"+
			"  - sum: {set: '${ {given: ($workflow.input.v | length), fetched: ($context.fetched | length)} }'}\n"))
}

// startLarge starts a run with a large input, and waits until it waits for the event.
func startLarge(t *testing.T, s *platform.Server, workflow string) (id string) {
	t.Helper()
	id = s.Start(t, workflow, `{"v":"`+strings.Repeat(planted, 1000)+`"}`).GetId()
	s.Await(t, id, soon, "waiting")
	return id
}

// An older backup of the database is restored, and the store of payloads is not: a run that was started in between has
// its large values.
func TestPayloadsApartOutliveARestoredDatabase(t *testing.T) {
	t.Parallel()
	needPostgres(t)
	for name, env := range payloadStores(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := &installation{environment: newEnvironment(t, platform.Postgres(t), env...)}
			workflow := readsBoth(t, i.Server)
			dump := i.dump(t)
			id := startLarge(t, i.Server, workflow)
			temporal := i.copyTemporal(t)
			i.Kill()
			i.temporal.Kill()
			i.restore(t, history{first: dump, second: temporal, firstIsOfDatabase: true}, env...)

			i.agree(t, id, "waiting")
			require.Empty(t, i.Run(t, id).GetWarnings(), "the input is not missing")
			i.listensFor(t, id, "go")
			sendTogether(t, i.Server, "go", 1)
			r := i.Await(t, id, 2*agreed, "completed")
			require.JSONEq(t, fmt.Sprintf(`{"given":%d,"fetched":%d}`, 1000*len(planted), 2000*len(planted)),
				r.GetOutput().GetJson())
		})
	}
}

// Values that are in the database before the store is changed are read from there, and new ones are sealed in the new
// store.
func TestStoreOfPayloadsIsChangedWithoutCopying(t *testing.T) {
	t.Parallel()
	temporal, store := platform.StartTemporal(t), platform.SQLite(t)
	options := platform.ServerOptions{Temporal: temporal.Address, Store: store}
	s := platform.StartServer(t, options)
	workflow := readsBoth(t, s)
	before := startLarge(t, s, workflow)
	s.Kill()

	root := t.TempDir()
	options.Env = []string{"SIGNALBOX_PAYLOADS_STORE=folder", "SIGNALBOX_PAYLOADS_FOLDER=" + root}
	s = platform.StartServer(t, options)
	awaitConnected(t, s)
	after := startLarge(t, s, workflow)
	require.Equal(t, map[string]int{after: 2}, sealedFiles(t, root))
	sendTogether(t, s, "go", 1)
	for _, id := range []string{before, after} {
		s.Await(t, id, soon, "completed")
	}
	_, report, err := s.Get(t.Context(), "/readyz")
	require.NoError(t, err)
	require.Contains(t, report, `"payloads"`)

	// A value is lost.
	lost := startLarge(t, s, workflow)
	check := func() string { return s.CLI(t, "restore", "check").Stdout }
	require.Contains(t, check(), "none is lost of the 1 open run searched")
	require.NoError(t, os.RemoveAll(filepath.Join(root, folderOf(t, root, lost))))
	require.Contains(t, check(), "1 of 1 open run searched: stuck with PAYLOAD_MISSING where they need it: "+lost)

	// The disk of the folder is lost: it is shown, and the platform goes on.
	require.NoError(t, os.RemoveAll(root))
	platform.Eventually(t, soon, func() string {
		if r := s.CLI(t, "system", "status"); !strings.Contains(r.Stdout, `folder "`+root+`"`) {
			return r.String()
		}
		return ""
	})
}

// folderOf returns the folder of a run's values, below the root.
func folderOf(t *testing.T, root, runID string) (folder string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && entry.Name() == runID {
			folder, err = filepath.Rel(root, path)
		}
		return err
	}))
	require.NotEmpty(t, folder)
	return folder
}

// sealedFiles counts the files below a folder by run, and requires that none has the planted text.
func sealedFiles(t *testing.T, root string) map[string]int {
	t.Helper()
	found := map[string]int{}
	require.NoError(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		require.NoError(t, err)
		require.False(t, bytes.Contains(content, []byte(planted[:8])), "%s is not sealed", path)
		found[filepath.Base(filepath.Dir(path))]++
		return nil
	}))
	return found
}
