package rest

import (
	"net/http"

	"google.golang.org/protobuf/proto"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/event/cloudevents"
	"github.com/signalbox-dev/signalbox/internal/rpc/handler"
)

// eventsPath is the path of the CloudEvents HTTP binding: events posted in the structured, the binary or the batch mode
// are a call of EventService's PublishEvents. The response is 202 once the events are durable.
const eventsPath = "/v1/projects/{project}/events"

// addEvents reads the events of a body, in the mode that the headers name, into the request message.
func (h *transcoder) addEvents(request proto.Message, header http.Header, body []byte) error {
	events, err := cloudevents.Parse(header, body, h.opts.EventLimits)
	if err != nil {
		return err
	}
	proto.Merge(request, &signalboxv1.PublishEventsRequest{Events: handler.EventMessages(events)})
	return nil
}
