package eventcmd

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/cli/exit"
)

// readEvents reads CloudEvents in their JSON form: one, or an array. What their values have to be is up to the server;
// the data's digits stay as they are.
func readEvents(text string) ([]*signalboxv1.CloudEvent, error) {
	var items []json.RawMessage
	if !strings.HasPrefix(text, "[") {
		items = []json.RawMessage{json.RawMessage(text)}
	} else if err := json.Unmarshal([]byte(text), &items); err != nil {
		return nil, exit.Usagef("--file: %w", err)
	}
	if len(items) == 0 {
		return nil, exit.Usagef("--file: there are no events in it")
	}
	events := make([]*signalboxv1.CloudEvent, len(items))
	for i, item := range items {
		event, err := readEvent(item)
		if err != nil && len(items) > 1 {
			err = fmt.Errorf("event %d of %d: %w", i+1, len(items), err)
		}
		if err != nil {
			return nil, exit.Usagef("--file: %w", err)
		}
		events[i] = event
	}
	return events, nil
}

func readEvent(item json.RawMessage) (*signalboxv1.CloudEvent, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(item, &members); err != nil || members == nil {
		return nil, errors.New("it is no JSON object, as a CloudEvent is")
	}
	event := &signalboxv1.CloudEvent{}
	if data, ok := members["data"]; ok { // null is data; an attribute that is null is none
		event.Data = &signalboxv1.JsonValue{Json: string(data)}
		delete(members, "data")
	}
	texts := map[string]*string{
		"specversion": new(string), "time": new(string), "data_base64": new(string), "id": &event.Id, "source": &event.Source,
		"type":    &event.Type,
		"subject": &event.Subject, "datacontenttype": &event.DataContentType, "dataschema": &event.DataSchema,
	}
	extensions := map[string]json.RawMessage{}
	for name, value := range members {
		target, known := texts[name]
		switch {
		case string(value) == "null":
		case !known:
			extensions[name] = value
		case json.Unmarshal(value, target) != nil:
			return nil, fmt.Errorf("its %s is no text", name)
		}
	}
	if *texts["specversion"] != "1.0" {
		return nil, fmt.Errorf(`its specversion is %q; a CloudEvent has "1.0"`, *texts["specversion"])
	}
	if len(extensions) > 0 {
		text, err := json.Marshal(extensions)
		if err != nil {
			return nil, fmt.Errorf("its extensions: %w", err)
		}
		event.Extensions = &signalboxv1.JsonValue{Json: string(text)}
	}
	return event, readValues(event, *texts["time"], *texts["data_base64"])
}

// readValues reads what is more than text.
func readValues(event *signalboxv1.CloudEvent, moment, encoded string) error {
	if moment != "" {
		at, err := time.Parse(time.RFC3339Nano, moment)
		if err != nil {
			return fmt.Errorf("its time %q is none; write it as 2026-01-31T12:00:00Z", moment)
		}
		event.Time = timestamppb.New(at)
	}
	if encoded != "" {
		if event.GetData() != nil {
			return errors.New("it has both data and data_base64")
		}
		content, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil {
			return fmt.Errorf("its data_base64 is no base64: %w", err)
		}
		event.DataBase64 = content
	}
	return nil
}
