package integration_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/test/origin"
	"github.com/signalbox-dev/signalbox/test/platform"
)

// A run fails after a retry, an event and a call that is refused. The case that is written of it expects that failure,
// and passes without the service.
func TestFailedRunsBecomeTests(t *testing.T) {
	eachServer(t, func(t *testing.T, s *platform.Server) {
		o := origin.New(t)
		o.Sequence("GET /stock", origin.Answer{Status: 503, Body: `{}`}, origin.Answer{Status: 200, Body: `{"left": 1.10}`})
		o.Sequence("GET /order", origin.Answer{Status: 409, Body: `{"why": "taken"}`})
		source := platform.Document("recorded", `  - stock:
      try: [{get: {call: http, with: {method: get, endpoint: '`+o.URL+`/stock'}}}]
      catch: {errors: {with: {status: 503}}, retry: {delay: {milliseconds: 10}, limit: {attempt: {count: 3}}}}
  - check: {set: {left: '${ .left }'}}
  - order: {call: http, with: {method: get, endpoint: '`+o.URL+`/order'}}
`)
		name := s.Publish(t, source)
		id := s.Start(t, name, `{"id": 7}`).GetId()
		s.Await(t, id, soon, "failed")

		folder := t.TempDir()
		r := s.CLI(t, "workflow", "test", "--from-run", id)
		require.Equal(t, platform.ExitOK, r.Code, r.String())
		require.NoError(t, os.WriteFile(filepath.Join(folder, "recorded.yaml"), []byte(source), 0o600))
		require.NoError(t, os.WriteFile(filepath.Join(folder, "recorded.test.yaml"), []byte(r.Stdout), 0o600))
		r = s.CLI(t, "workflow", "test", folder)
		require.Equal(t, platform.ExitOK, r.Code, r.String())
		require.Contains(t, r.Stderr, "1 case, 0 failed")
		require.Len(t, o.Calls("GET /order"), 1, "the test sends no request")
	})
}
