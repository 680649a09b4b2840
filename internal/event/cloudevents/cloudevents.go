// Package cloudevents reads and writes events as CloudEvents 1.0 defines them: the HTTP binding (structured, binary and
// batch) and the JSON form that runs and expressions get.
//
//	events, err := cloudevents.Parse(request.Header, body, event.DefaultLimits())
//
// Numbers in JSON payloads keep every digit, and attributes keep their spelling. That is why the package does not use
// the official CloudEvents SDK, which converts numbers to floating point, rewrites URIs and stops at the first mistake.
// Parse reports all mistakes of a request at once, each with its event and attribute.
//
// The package does not depend on HTTP methods, status codes or paths, and stores nothing.
package cloudevents

import (
	"encoding/json"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/event"
)

// Media types of the HTTP binding.
const (
	Structured = "application/cloudevents+json"
	Batch      = "application/cloudevents-batch+json"
)

const (
	version = "1.0"
	family  = "application/cloudevents"
)

// Parse reads the events of one HTTP request, in order. Its errors are of type [apperror.Error]:
// [apperror.EventInvalid] with a field for each mistake, and [apperror.EventTooLarge] where the request only exceeds a
// limit.
//
// The publisher sets the attributes that identify an event. An event without an ID is refused, because a repetition
// could not be distinguished from a new event.
func Parse(header http.Header, body []byte, limits event.Limits) ([]event.Event, error) {
	contentType := header.Get("Content-Type")
	media, params, err := mime.ParseMediaType(contentType)
	if err != nil && contentType != "" && !isBinary(header) {
		return nil, invalid("the Content-Type %q is not a media type: %v", contentType, err).
			WithField("Content-Type", "%v", err)
	}
	if charset := params["charset"]; strings.HasPrefix(media, family) && charset != "" &&
		!strings.EqualFold(charset, "utf-8") {
		return nil, invalid("a CloudEvent in JSON has the charset UTF-8, not %q", charset).
			WithField("Content-Type", "has another charset than UTF-8")
	}
	switch {
	case media == Structured:
		e, err := FromJSON(body, limits)
		if err != nil {
			return nil, err
		}
		return []event.Event{e}, nil
	case media == Batch:
		return parseBatch(body, limits)
	case strings.HasPrefix(media, family):
		return nil, invalid("the Content-Type %q is not supported; send %s, %s, or the binary form with ce-* headers", media,
			Structured, Batch).
			WithField("Content-Type", "is not supported")
	case isBinary(header):
		e, found := readBinary(header, media, body)
		return finish([]event.Event{e}, found, limits)
	}
	return nil, invalid("the request is not a CloudEvent: send one as %s, several as %s, or any content with the headers "+
		"ce-specversion, ce-id, ce-source and ce-type", Structured, Batch).
		WithField("Content-Type", "%q needs the headers ce-specversion, ce-id, ce-source and ce-type", contentType)
}

// FromJSON reads one event in the JSON form of CloudEvents, under the rules of [Parse].
func FromJSON(body []byte, limits event.Limits) (event.Event, error) {
	e, found := readJSON("", body)
	events, err := finish([]event.Event{e}, found, limits)
	if err != nil {
		return event.Event{}, err
	}
	return events[0], nil
}

func parseBatch(body []byte, limits event.Limits) ([]event.Event, error) {
	var items []json.RawMessage
	if err := json.Unmarshal(body, &items); err != nil || items == nil {
		f := invalid("a batch of events is a JSON array of CloudEvents")
		if err != nil {
			f = f.WithField("events", "%v", err)
		}
		return nil, f
	}
	if err := limits.CheckBatch(len(items)); err != nil {
		return nil, err
	}
	var found []apperror.Field
	events := make([]event.Event, 0, len(items))
	for i, item := range items {
		e, violations := readJSON(fmt.Sprintf("events[%d].", i), item)
		found = append(found, violations...)
		events = append(events, e)
	}
	return finish(events, found, limits)
}

// finish validates the values of the events, unless their form has mistakes already.
func finish(events []event.Event, found []apperror.Field, limits event.Limits) ([]event.Event, error) {
	if len(found) > 0 {
		// An event with a wrong form has empty attributes; to report them as missing would be misleading.
		return nil, event.Refusal(found)
	}
	if err := limits.Validate(events); err != nil {
		return nil, err
	}
	return events, nil
}

func invalid(format string, args ...any) *apperror.Error {
	return apperror.New(apperror.Invalid, apperror.EventInvalid, format, args...)
}

// JSON returns an event in the JSON form of CloudEvents: the input of runs and of expressions. Its time is in UTC.
func JSON(e event.Event) json.RawMessage {
	var b strings.Builder
	member(&b, "{", "specversion", version)
	member(&b, ",", "id", e.ID)
	member(&b, ",", "source", e.Source)
	member(&b, ",", "type", e.Type)
	if e.Subject != "" {
		member(&b, ",", "subject", e.Subject)
	}
	if !e.Time.IsZero() {
		member(&b, ",", "time", e.Time.UTC().Format(time.RFC3339Nano))
	}
	if e.DataContentType != "" {
		member(&b, ",", "datacontenttype", e.DataContentType)
	}
	if e.DataSchema != "" {
		member(&b, ",", "dataschema", e.DataSchema)
	}
	var extensions map[string]json.RawMessage
	if len(e.Extensions) > 0 && json.Unmarshal(e.Extensions, &extensions) == nil {
		for _, name := range slices.Sorted(maps.Keys(extensions)) {
			raw(&b, ",", name, extensions[name])
		}
	}
	switch {
	case e.DataBase64:
		raw(&b, ",", "data_base64", e.Data)
	case e.Data != nil:
		raw(&b, ",", "data", e.Data)
	}
	b.WriteByte('}')
	return json.RawMessage(b.String())
}

func member(b *strings.Builder, before, name, value string) {
	text, _ := json.Marshal(value) //nolint:errchkjson // strings always encode
	raw(b, before, name, text)
}

func raw(b *strings.Builder, before, name string, value json.RawMessage) {
	quoted, _ := json.Marshal(name) //nolint:errchkjson // strings always encode
	b.WriteString(before)
	b.Write(quoted)
	b.WriteByte(':')
	b.Write(value)
}
