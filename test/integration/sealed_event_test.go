package integration_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/signalbox-dev/signalbox/internal/redact"
	"github.com/signalbox-dev/signalbox/test/platform"
)

// roused begins with an event that is found by what is sensitive in it, tells of it in another one, and waits for a third, by a correlation
// key whose value is sensitive.
const roused = `  - tell:
      emit: {event: {with: {type: told, source: /roused, data: {note: '${ "it says " + .[0].data.password }'}}}}
  - hear:
      listen:
        to:
          one:
            with: {type: news, data: '${ (.token | length) == 19 }'}
            correlate: {who: {from: '("it says planted-in-an-" + .data.kind)', expect: '${ .data.note }'}}
  - measure:
      set: {heard: '${ .[0].token | length }', marked: '${ .[0].token | contains("redacted") }'}
`

// rouse has a run started by an event and woken by another, each with something sensitive in it, and returns its ID.
func rouse(t *testing.T, s *platform.Server) string {
	t.Helper()
	name := s.Publish(t, platform.Document("roused", roused, "schedule: {on: {one: {with: {type: rouse, data: '${ (.password | length) == 19 }'}}}}\n"))
	give(t, s, "rouse", `{"password":"`+plantedEvent+`", "n": 1.0}`)
	id := runsBy(t, s, name, 1)[0].GetId()
	s.Await(t, id, soon, "waiting")
	give(t, s, "news", `{"token":"`+plantedNews+`", "kind":"event"}`)
	r := s.Await(t, id, soon, "completed")
	require.JSONEq(t, `{"heard":19,"marked":false}`, r.GetOutput().GetJson(), "it was given what was sent")
	return id
}

func give(t *testing.T, s *platform.Server, typ, data string) {
	t.Helper()
	status, body, err := s.Do(t.Context(), http.MethodPost, "/v1/projects/default/events", http.Header{"Content-Type": {"application/cloudevents+json"}},
		strings.NewReader(fmt.Sprintf(`{"specversion":"1.0","type":%q,"source":"/test","id":%q,"data":%s}`, typ, typ, data)))
	require.NoError(t, err)
	require.Equal(t, http.StatusAccepted, status, body)
}

// told is everything that is shown of the events.
func told(t *testing.T, s *platform.Server) string {
	t.Helper()
	var all strings.Builder
	marked := 0
	commands := [][]string{{"event", "list"}, {"event", "show", "rouse"}, {"event", "show", "news", "-o", "json"}}
	for position := range 4 { // the first one tells of the dispatcher's owner
		commands = append(commands, []string{"event", "show", "--position", fmt.Sprint(position + 1)})
	}
	for _, args := range commands {
		text := s.CLI(t, args...).String()
		marked += strings.Count(text, redact.Mark)
		all.WriteString(text)
	}
	require.Equal(t, 5, marked, all.String())
	return all.String()
}

// visible is what Temporal shows of a run to a client that has no keys: its memo, its attributes and its history.
func visible(t *testing.T, address, id string) string {
	t.Helper()
	c, err := client.DialContext(t.Context(), client.Options{HostPort: address})
	require.NoError(t, err)
	defer c.Close()
	var all strings.Builder
	list, err := c.ListWorkflow(t.Context(), &workflowservice.ListWorkflowExecutionsRequest{Query: fmt.Sprintf("WorkflowId = %q", id)})
	require.NoError(t, err)
	require.NotEmpty(t, list.GetExecutions())
	for _, e := range list.GetExecutions() {
		all.WriteString(e.String())
	}
	for iter := c.GetWorkflowHistory(t.Context(), id, "", false, 0); iter.HasNext(); {
		e, err := iter.Next()
		require.NoError(t, err)
		all.WriteString(e.String())
	}
	return all.String()
}
