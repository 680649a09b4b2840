package cloudevents

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/event"
)

// reader reads one event and collects what is wrong with it.
type reader struct {
	prefix string
	found  []apperror.Field
}

func (r *reader) add(name, format string, args ...any) {
	r.found = append(r.found, apperror.Field{Path: r.prefix + name, Message: fmt.Sprintf(format, args...)})
}

// readJSON reads an event in the JSON form, and returns what is wrong with the form.
func readJSON(prefix string, body []byte) (event.Event, []apperror.Field) {
	r := &reader{prefix: prefix}
	members, err := object(body)
	if err != nil {
		r.add("event", "%v", err)
		return event.Event{}, r.found
	}
	var e event.Event
	extensions := map[string]json.RawMessage{}
	seen := map[string]bool{}
	for _, m := range members {
		if seen[m.name] {
			r.add(m.name, "is given twice")
			continue
		}
		seen[m.name] = true
		// A payload may be null; an attribute that is null counts as absent.
		if m.name != "data" && string(m.value) == "null" {
			delete(seen, m.name)
			continue
		}
		switch m.name {
		case "data":
			e.Data = m.value
		case "data_base64":
			e.Data, e.DataBase64 = m.value, true
		default:
			if !r.attribute(&e, m) {
				extensions[m.name] = m.value
			}
		}
	}
	if !seen["specversion"] {
		r.add("specversion", "is required: %q", version)
	}
	if seen["data"] && seen["data_base64"] {
		r.add("data_base64", "is given together with data; one of them is the payload")
	}
	if len(extensions) > 0 {
		e.Extensions, _ = json.Marshal(extensions) //nolint:errchkjson // values read from JSON always encode
	}
	return e, r.found
}

// attribute stores one of CloudEvents' own attributes and reports whether it is one.
func (r *reader) attribute(e *event.Event, m namedValue) bool {
	var target *string
	switch m.name {
	case "specversion", "time":
		target = new(string)
	case "id":
		target = &e.ID
	case "source":
		target = &e.Source
	case "type":
		target = &e.Type
	case "subject":
		target = &e.Subject
	case "datacontenttype":
		target = &e.DataContentType
	case "dataschema":
		target = &e.DataSchema
	default:
		return false
	}
	if json.Unmarshal(m.value, target) != nil {
		r.add(m.name, "is not a string")
		return true
	}
	r.value(e, m.name, *target)
	return true
}

// value checks and stores the value of an attribute.
func (r *reader) value(e *event.Event, name, text string) {
	switch {
	case name == "specversion":
		if text != version {
			r.add(name, "is %q; only %q is supported", text, version)
		}
	case text == "":
		r.add(name, "is empty; omit it or give a value")
	case name == "time":
		at, err := parseTime(text)
		if err != nil {
			r.add(name, "%q is not an RFC 3339 time, such as 2026-03-01T12:00:00Z", text)
			return
		}
		e.Time = at.UTC()
	}
}

// parseTime reads a time of RFC 3339. Other than package time, it accepts the letters t and z in lower case, and the
// second 60: a leap second is the first instant of the next day, as in POSIX time.
func parseTime(text string) (time.Time, error) {
	text = strings.ToUpper(text)
	const second = len("2006-01-02T15:04:")
	leap := len(text) > second+2 && text[second:second+2] == "60"
	if leap {
		text = text[:second] + "59" + text[second+2:]
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	if _, offset := at.Zone(); err == nil &&
		(strings.Contains(text, ",") || text[second-1] != ':' || max(offset, -offset) >= 24*60*60) {
		err = errors.New("a comma, an hour of one digit, or an offset of a day, which package time accepts")
	}
	if err != nil || !leap {
		return at, err //nolint:wrapcheck // the caller quotes the text instead
	}
	if last := at.UTC(); last.Hour() != 23 || last.Minute() != 59 {
		return time.Time{}, errors.New("the second 60 is not the last of a day in UTC")
	}
	return at.Add(time.Second), nil
}

type namedValue struct {
	name  string
	value json.RawMessage
}

// object reads the members of a JSON object in order, duplicates included, with their values in compact form.
func object(body []byte) ([]namedValue, error) {
	if !utf8.Valid(body) {
		return nil, errors.New("is not valid UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(body))
	if start, err := d.Token(); err != nil {
		return nil, fmt.Errorf("is not valid JSON: %w", err)
	} else if start != json.Delim('{') {
		return nil, errors.New("is not a JSON object")
	}
	var members []namedValue
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, fmt.Errorf("is not valid JSON: %w", err)
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, fmt.Errorf("is not valid JSON: %w", err)
		}
		text, _ := name.(string)
		var compact bytes.Buffer
		if err := json.Compact(&compact, value); err != nil {
			return nil, fmt.Errorf("is not valid JSON: %w", err)
		}
		members = append(members, namedValue{text, compact.Bytes()})
	}
	if _, err := d.Token(); err != nil {
		return nil, fmt.Errorf("is not valid JSON: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("has data after its end")
	}
	return members, nil
}
