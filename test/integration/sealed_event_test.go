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

// eventRunDocument is started by an event with a filter on a sensitive value, emits another event with it, and waits
// for a third, by a correlation key with a sensitive value.
const eventRunDocument = `  - tell:
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

// startByEvent starts a run by an event and wakes it by another, each with a sensitive value, and returns its ID.
func startByEvent(t *testing.T, s *platform.Server) string {
	t.Helper()
	name := s.Publish(t, platform.Document("roused", eventRunDocument,
		"schedule: {on: {one: {with: {type: rouse, data: '${ (.password | length) == 19 }'}}}}\n"))
	postEvent(t, s, "rouse", `{"password":"`+plantedEvent+`", "n": 1.0}`)
	id := runsBy(t, s, name, 1)[0].GetId()
	s.Await(t, id, soon, "waiting")
	postEvent(t, s, "news", `{"token":"`+plantedNews+`", "kind":"event"}`)
	r := s.Await(t, id, soon, "completed")
	require.JSONEq(t, `{"heard":19,"marked":false}`, r.GetOutput().GetJson(), "it received the original values")
	return id
}

func postEvent(t *testing.T, s *platform.Server, typ, data string) {
	t.Helper()
	status, body, err := s.Do(t.Context(), http.MethodPost, "/v1/projects/default/events",
		http.Header{"Content-Type": {"application/cloudevents+json"}},
		strings.NewReader(fmt.Sprintf(`{"specversion":"1.0","type":%q,"source":"/test","id":%q,"data":%s}`, typ, typ, data)))
	require.NoError(t, err)
	require.Equal(t, http.StatusAccepted, status, body)
}

// eventOutput returns all output about the events.
func eventOutput(t *testing.T, s *platform.Server) string {
	t.Helper()
	var all strings.Builder
	marked := 0
	commands := [][]string{{"event", "list"}, {"event", "show", "rouse"}, {"event", "show", "news", "-o", "json"}}
	for position := range 4 { // the first one is about the dispatcher's owner
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

// temporalOutput returns the parts of a run that Temporal shows to a client without keys: its memo, its attributes and
// its history.
func temporalOutput(t *testing.T, address, id string) string {
	t.Helper()
	c, err := client.DialContext(t.Context(), client.Options{HostPort: address})
	require.NoError(t, err)
	defer c.Close()
	var all strings.Builder
	list, err := c.ListWorkflow(t.Context(),
		&workflowservice.ListWorkflowExecutionsRequest{Query: fmt.Sprintf("WorkflowId = %q", id)})
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
