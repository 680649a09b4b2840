package event

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"mime"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/signalbox-dev/signalbox/dsl/jq"
	"github.com/signalbox-dev/signalbox/internal/apperror"
)

// Limits bound the events that the service accepts.
type Limits struct {
	// MaxDataBytes is the largest payload of one event, as it is stored.
	MaxDataBytes int
	// MaxBatch is the largest number of events in one request.
	MaxBatch int
}

// DefaultLimits returns the limits of a platform without settings of its own.
func DefaultLimits() Limits { return Limits{MaxDataBytes: 256 << 10, MaxBatch: 1000} }

// These bounds hold on every platform: an index contains the attributes that identify an event.
const (
	// MaxAttribute is the longest text of an attribute, in bytes.
	MaxAttribute = 1024
	// MaxName is the longest name of an attribute, in bytes.
	MaxName = 64
	// MaxExtensions is the largest number of extension attributes of one event.
	MaxExtensions = 50
)

// Own is the prefix of the types of the platform's own events. Callers cannot publish such events.
const Own = "io.signalbox."

// maxFindings is the number of mistakes that the answer to one request reports.
const maxFindings = 50

// CheckBatch returns an error for more events than one request may contain.
func (l Limits) CheckBatch(count int) error {
	if count <= l.MaxBatch {
		return nil
	}
	return apperror.New(apperror.Exhausted, apperror.EventTooLarge,
		"the request has %d events, more than the limit of %d (events.max_batch); send them in several requests", count,
		l.MaxBatch).
		WithField("events", "is too long")
}

// Validate returns one error with everything that [Limits.Check] finds in the events. With several events, the paths
// begin with events[i].
func (l Limits) Validate(events []Event) error {
	if err := l.CheckBatch(len(events)); err != nil {
		return err
	}
	var found []apperror.Field
	for i, e := range events {
		prefix := ""
		if len(events) > 1 {
			prefix = fmt.Sprintf("events[%d].", i)
		}
		if n := len(e.Data); n > l.MaxDataBytes {
			return apperror.New(apperror.Exhausted, apperror.EventTooLarge,
				"the data of event %q has %d bytes, more than the limit of %d (events.max_data_bytes); no event was stored", e.ID,
				n, l.MaxDataBytes).
				WithField(prefix+"data", "is too large")
		}
		found = append(found, l.Check(prefix, e)...)
	}
	if len(found) == 0 {
		return nil
	}
	return Refusal(found)
}

// Refusal returns the error for a request with mistakes: the first one in the message, all of them as fields.
func Refusal(found []apperror.Field) error {
	message := fmt.Sprintf("%s %s", found[0].Path, found[0].Message)
	if more := len(found) - 1; more > 0 {
		message += fmt.Sprintf(" (and %d more)", more)
	}
	f := apperror.New(apperror.Invalid, apperror.EventInvalid, "not a valid CloudEvent 1.0: %s; no event was stored",
		message)
	f.Fields = found[:min(len(found), maxFindings)]
	return f
}

// Check reports everything that is wrong with an event by the rules of CloudEvents 1.0 and by the limits. The path of
// each finding begins with prefix and names an attribute.
func (l Limits) Check(prefix string, e Event) []apperror.Field {
	c := checker{prefix: prefix}
	c.required("id", e.ID)
	c.required("source", e.Source)
	c.required("type", e.Type)
	c.text("subject", e.Subject)
	c.text("datacontenttype", e.DataContentType)
	c.text("dataschema", e.DataSchema)
	if _, err := url.Parse(e.Source); err != nil {
		c.add("source", "is not a URI reference: %v", err)
	}
	if e.DataSchema != "" {
		if u, err := url.Parse(e.DataSchema); err != nil || !u.IsAbs() {
			c.add("dataschema", "is not an absolute URI")
		}
	}
	if e.DataContentType != "" {
		if _, _, err := mime.ParseMediaType(e.DataContentType); err != nil {
			c.add("datacontenttype", "is not a media type: %v", err)
		}
	}
	if y := e.Time.Year(); !e.Time.IsZero() && (y < 1 || y > 9999) {
		c.add("time", "is not in the years 1 to 9999")
	}
	c.extensions(e.Extensions)
	c.data(e, l.MaxDataBytes)
	return c.found
}

// Reserved reports whether a name is an attribute of CloudEvents itself, or its payload.
func Reserved(name string) bool {
	return slices.Contains([]string{
		"specversion", "id", "source", "type", "subject", "time", "datacontenttype", "dataschema", "data", "data_base64",
	}, name)
}

type checker struct {
	prefix string
	found  []apperror.Field
}

func (c *checker) add(name, format string, args ...any) {
	c.found = append(c.found, apperror.Field{Path: c.prefix + name, Message: fmt.Sprintf(format, args...)})
}

func (c *checker) required(name, value string) {
	if strings.TrimSpace(value) == "" {
		c.add(name, "is required")
		return
	}
	c.text(name, value)
}

// text checks a value against the rules for strings in CloudEvents.
func (c *checker) text(name, value string) {
	switch {
	case len(value) > MaxAttribute:
		c.add(name, "has %d bytes, more than %d", len(value), MaxAttribute)
	case !utf8.ValidString(value):
		c.add(name, "is not valid UTF-8")
	default:
		for _, r := range value {
			if unicode.IsControl(r) || r&0xFFFE == 0xFFFE || r >= 0xFDD0 && r <= 0xFDEF {
				c.add(name, "has the character %U, which attributes must not have", r)
				return
			}
		}
	}
}

func (c *checker) extensions(raw json.RawMessage) {
	if raw == nil {
		return
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(raw, &all); err != nil {
		c.add("extensions", "are not a JSON object: %v", err)
		return
	}
	if len(all) > MaxExtensions {
		c.add("extensions", "are %d attributes, more than %d", len(all), MaxExtensions)
		return
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		c.extension(name, all[name])
	}
}

func (c *checker) extension(name string, raw json.RawMessage) {
	if violation := badName(name); violation != "" {
		c.add(name, "%s", violation)
		return
	}
	value, err := jq.DecodeJSON(raw)
	if err != nil {
		c.add(name, "is not valid JSON: %v", err)
		return
	}
	switch v := value.(type) {
	case string:
		c.text(name, v)
	case bool:
	case int:
		const limit = 1 << 31
		if v < -limit || v >= limit {
			c.add(name, "is an integer of more than 32 bits; give it as a string")
		}
	default:
		c.add(name, "is %s; an attribute is a string, a boolean or an integer", jq.TypeName(value))
	}
}

// badName returns what is wrong with the name of an extension; empty for a valid name.
func badName(name string) string {
	switch {
	case name == "":
		return "has no name"
	case len(name) > MaxName:
		return fmt.Sprintf("its name has %d bytes, more than %d", len(name), MaxName)
	case Reserved(name):
		return "is an attribute of CloudEvents and cannot be an extension"
	}
	for _, r := range name {
		if (r < 'a' || r > 'z') && (r < '0' || r > '9') {
			return "has other characters than lower-case letters and digits in its name"
		}
	}
	return ""
}

func (c *checker) data(e Event, limit int) {
	if e.Data == nil {
		return
	}
	if len(e.Data) > limit {
		c.add("data", "has %d bytes, more than the limit of %d (events.max_data_bytes)", len(e.Data), limit)
		return
	}
	value, err := jq.DecodeJSON(e.Data)
	switch {
	case err != nil:
		c.add("data", "is not valid JSON: %v", err)
	case !utf8.Valid(e.Data):
		c.add("data", "is not valid UTF-8")
	case e.DataBase64:
		text, ok := value.(string)
		if _, err := base64.StdEncoding.DecodeString(text); !ok || err != nil {
			c.add("data_base64", "is not a base64 string")
		}
	}
}
