package eventcmd

import (
	"context"
	"encoding/json"
	"fmt"
	"mime"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/cli/exit"
	"github.com/signalbox-dev/signalbox/internal/cli/invocation"
	"github.com/signalbox-dev/signalbox/internal/cli/output"
)

type sendFlags struct {
	kind, source, id, subject, data, contentType, file string
	extensions                                         []string
}

func sendCommand(s *invocation.Invocation) *cobra.Command {
	var flags sendFlags
	cmd := &cobra.Command{
		Use:   "send",
		Short: "Send an event, or a file of events",
		Long: `Send a CloudEvent, made of the flags, or with --file one or several in the JSON form of CloudEvents. The command returns when
the events are durable; runs are started and woken afterwards, also after an outage of Temporal: "event show" has the outcome.
A file may contain any number of events: up to 1000 are sent in one request, of which the server accepts all or none.

The same ID and source are accepted once: sent again, the event is reported as a duplicate and changes nothing. An ID is
generated if none is given.`,
		Example: `  signalbox event send --type com.example.order.created --source /shop --data '{"order": 4711}'
  signalbox event send --type com.example.photo --source /camera --data photo.jpg --content-type image/jpeg
  signalbox event send --file events.json`,
		Args: invocation.Args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			events, err := flags.events(cmd, s)
			if err != nil {
				return err
			}
			return send(cmd.Context(), s, events)
		},
	}
	cmd.Flags().StringVar(&flags.kind, "type", "", "`type` of the event, such as com.example.order.created")
	cmd.Flags().StringVar(&flags.source, "source", "", "source of the event, as a `URI` reference such as /shop")
	cmd.Flags().StringVar(&flags.id, "id", "", "its `ID`, unique in its source; generated when empty")
	cmd.Flags().StringVar(&flags.subject, "subject", "", "its subject, such as an order's ID")
	cmd.Flags().StringVar(&flags.data, "data", "", "its data: a `file`, - for standard input, or JSON itself")
	cmd.Flags().StringVar(&flags.contentType, "content-type", "",
		"media `type` of the data; JSON when empty. Text is sent as text, anything else as bytes")
	cmd.Flags().StringArrayVar(&flags.extensions, "extension", nil, "further attribute as `name=text`; may be repeated")
	cmd.Flags().StringVar(&flags.file, "file", "",
		"`file` with a CloudEvent or an array of them in JSON, - for standard input; instead of all other flags")
	s.BindClient(cmd)
	return cmd
}

// events are what the flags describe.
func (f *sendFlags) events(cmd *cobra.Command, s *invocation.Invocation) ([]*signalboxv1.CloudEvent, error) {
	if cmd.Flags().Changed("file") {
		for _, name := range []string{"type", "source", "id", "subject", "data", "content-type", "extension"} {
			if cmd.Flags().Changed(name) {
				return nil, exit.Usagef("--%s: the file says it; leave out either --file or --%s", name, name)
			}
		}
		text, err := invocation.ReadJSON("file", f.file, s.In)
		if err != nil {
			return nil, err
		}
		return readEvents(text)
	}
	for name, value := range map[string]string{"type": f.kind, "source": f.source} {
		if value == "" {
			return nil, exit.Usagef("%s: an event needs --type and --source, or --file; --%s is missing", cmd.CommandPath(),
				name)
		}
	}
	event := &signalboxv1.CloudEvent{
		Id: f.id, Type: f.kind, Source: f.source, Subject: f.subject, DataContentType: f.contentType}
	if event.GetId() == "" {
		event.Id = uuid.NewString()
	}
	if err := f.extend(event); err != nil {
		return nil, err
	}
	return []*signalboxv1.CloudEvent{event}, f.fill(event, cmd, s)
}

// extend adds the further attributes.
func (f *sendFlags) extend(event *signalboxv1.CloudEvent) error {
	if len(f.extensions) == 0 {
		return nil
	}
	extensions := map[string]string{}
	for _, pair := range f.extensions {
		name, value, ok := strings.Cut(pair, "=")
		if _, twice := extensions[name]; !ok || name == "" || twice {
			return exit.Usagef("--extension: %q is not one more name=text", pair)
		}
		extensions[name] = value
	}
	text, err := json.Marshal(extensions)
	if err != nil {
		return fmt.Errorf("write the extensions: %w", err)
	}
	event.Extensions = &signalboxv1.JsonValue{Json: string(text)}
	return nil
}

// fill adds the data, in the form that its media type asks for.
func (f *sendFlags) fill(event *signalboxv1.CloudEvent, cmd *cobra.Command, s *invocation.Invocation) error {
	if !cmd.Flags().Changed("data") {
		return nil
	}
	if isJSON(f.contentType) {
		text, err := invocation.ReadJSON("data", f.data, s.In)
		event.Data = &signalboxv1.JsonValue{Json: text}
		return err
	}
	content, err := invocation.ReadBytes("data", f.data, s.In)
	if err != nil {
		return err
	}
	if !strings.HasPrefix(f.contentType, "text/") || !utf8.Valid(content) {
		event.DataBase64 = content
		return nil
	}
	text, err := json.Marshal(string(content))
	if err != nil {
		return fmt.Errorf("write the data: %w", err)
	}
	event.Data = &signalboxv1.JsonValue{Json: string(text)}
	return nil
}

// isJSON reports whether a media type is one of JSON; an empty one is, too.
func isJSON(contentType string) bool {
	media, _, err := mime.ParseMediaType(contentType)
	return contentType == "" || err == nil && (strings.HasSuffix(media, "/json") || strings.HasSuffix(media, "+json"))
}

func send(ctx context.Context, s *invocation.Invocation, events []*signalboxv1.CloudEvent) error {
	response, err := publish(ctx, s, events)
	if err != nil {
		return err
	}
	accepted := response.GetAccepted()
	if err := showAccepted(s, response); err != nil {
		return err
	}
	var duplicates, different int64
	for _, a := range accepted {
		if a.GetDuplicate() {
			duplicates++
		}
		if a.GetDifferent() {
			different++
		}
	}
	total := output.Count(int64(len(events)), "event")
	if different > 0 {
		return exit.Errorf(exit.Conflict,
			"send %s: %d not stored: other data was accepted before with the same ID and source; "+
				"give an event with new data an ID of its own, or see the earlier one with %s", total, different,
			s.Command("event show ID"))
	}
	if duplicates > 0 && !s.Format().Structured() {
		s.Note("%d of %s had been accepted before, by ID and source, and changed nothing", duplicates, total)
	}
	return nil
}

func showAccepted(s *invocation.Invocation, response *signalboxv1.PublishEventsResponse) error {
	if s.Format().Structured() {
		return output.Message(s.Out, s.Format(), response)
	}
	rows := make([]output.Row, len(response.GetAccepted()))
	for i, a := range response.GetAccepted() {
		result := "accepted"
		switch {
		case a.GetDifferent():
			result = "duplicate, with different data"
		case a.GetDuplicate():
			result = "duplicate"
		}
		rows[i] = output.Cells(
			"POSITION", fmt.Sprint(a.GetPosition()), "ID", a.GetId(), "SOURCE", a.GetSource(), "RESULT", result,
		)
	}
	return output.Rows(s.Out, s.Format(), s.Style(), rows)
}

// publish sends the events in as few requests as the default limits of servers allow, and returns one answer for all of
// them.
func publish(ctx context.Context, s *invocation.Invocation,
	events []*signalboxv1.CloudEvent) (*signalboxv1.PublishEventsResponse, error) {
	progress := s.Progress()
	defer progress.Clear()
	total := int64(len(events))
	all := &signalboxv1.PublishEventsResponse{}
	for _, part := range parts(events) {
		accepted := int64(len(all.GetAccepted()))
		if total > 1 {
			progress.Of(accepted, total, "event")
		}
		request := &signalboxv1.PublishEventsRequest{Project: s.Project(), Events: part}
		response, err := invocation.Send(ctx, s, s.Events().PublishEvents, request)
		if err != nil {
			return nil, s.FailedHint(err, sendHint(invocation.UnknownOutcome(ctx, err), accepted, events), "send %s",
				output.Count(total, "event"))
		}
		all.Accepted = append(all.Accepted, response.GetAccepted()...)
	}
	return all, nil
}

// sendHint is what to do after a request failed when so many events had been accepted. Repeating the command is safe:
// an event is accepted once.
func sendHint(unknown bool, accepted int64, events []*signalboxv1.CloudEvent) string {
	switch {
	case unknown && len(events) == 1:
		return "it is unknown whether the event was accepted: repeated with --id " + events[0].GetId() +
			", the command sends it once"
	case unknown && accepted == 0:
		return "it is unknown whether the events were accepted: repeated, the command sends each once"
	case accepted > 0:
		return fmt.Sprintf("the first %d were accepted before: repeated, the command sends each event once", accepted)
	default:
		return ""
	}
}

// parts divides events among requests that a server with the default limits accepts: events.max_batch, and
// api.max_request_bytes with a margin.
func parts(events []*signalboxv1.CloudEvent) [][]*signalboxv1.CloudEvent {
	const maxEvents, maxBytes = 1000, 3 << 20
	var all [][]*signalboxv1.CloudEvent
	begin, bytes := 0, 0
	for i, event := range events {
		size := proto.Size(event)
		if i > begin && (i-begin == maxEvents || bytes+size > maxBytes) {
			all = append(all, events[begin:i])
			begin, bytes = i, 0
		}
		bytes += size
	}
	return append(all, events[begin:])
}
