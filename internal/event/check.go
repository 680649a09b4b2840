package event

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"mime"
	"net/url"
	"slices"
	"unicode"
	"unicode/utf8"

	"github.com/signalbox-dev/signalbox/dsl/jq"
	"github.com/signalbox-dev/signalbox/internal/fault"
)

// Limits bound the events that are accepted.
type Limits struct {
	// MaxDataBytes is the largest payload of one event, as it is kept.
	MaxDataBytes int
	// MaxBatch is how many events one request may bring.
	MaxBatch int
}

// DefaultLimits are those of a platform that was told nothing else.
func DefaultLimits() Limits { return Limits{MaxDataBytes: 256 << 10, MaxBatch: 1000} }

// Bounds that hold everywhere: what identifies an event is part of an index.
const (
	// MaxAttribute is the longest text of an attribute, in bytes.
	MaxAttribute = 1024
	// MaxName is the longest name of an attribute, in bytes.
	MaxName = 64
	// MaxExtensions is how many attributes of its own an event may have.
	MaxExtensions = 50
)

// Own is what the types of the platform's own events begin with; nobody else may give such events.
const Own = "io.signalbox."

// maxFindings is how many mistakes of one request are told.
const maxFindings = 50

// CheckBatch refuses more events than one request may bring.
func (l Limits) CheckBatch(count int) error {
	if count <= l.MaxBatch {
		return nil
	}
	return fault.New(fault.Exhausted, fault.EventTooLarge,
		"the request has %d events, more than the limit of %d (events.max_batch); send them in several requests", count, l.MaxBatch).
		WithField("events", "are too many")
}

// Validate refuses events that [Limits.Check] finds anything wrong with, all at once. Where it is several, the paths begin with events[i].
func (l Limits) Validate(events []Event) error {
	if err := l.CheckBatch(len(events)); err != nil {
		return err
	}
	var found []fault.Field
	for i, e := range events {
		prefix := ""
		if len(events) > 1 {
			prefix = fmt.Sprintf("events[%d].", i)
		}
		if n := len(e.Data); n > l.MaxDataBytes {
			return fault.New(fault.Exhausted, fault.EventTooLarge,
				"the data of event %q has %d bytes, more than the limit of %d (events.max_data_bytes); nothing was kept", e.ID, n, l.MaxDataBytes).
				WithField(prefix+"data", "is too large")
		}
		found = append(found, l.Check(prefix, e)...)
	}
	if len(found) == 0 {
		return nil
	}
	return Refusal(found)
}

// Refusal is the answer to a request with mistakes: the first one in the message, all of them as fields.
func Refusal(found []fault.Field) error {
	message := fmt.Sprintf("%s %s", found[0].Path, found[0].Message)
	if more := len(found) - 1; more > 0 {
		message += fmt.Sprintf(" (and %d more)", more)
	}
	f := fault.New(fault.Invalid, fault.EventInvalid, "no CloudEvent 1.0: %s; nothing was kept", message)
	f.Fields = found[:min(len(found), maxFindings)]
	return f
}

// Check finds everything that is wrong with an event by the rules of CloudEvents 1.0 and by the limits. Each finding's path begins with
// prefix and names an attribute.
func (l Limits) Check(prefix string, e Event) []fault.Field {
	c := checker{prefix: prefix}
	c.required("id", e.ID)
	c.required("source", e.Source)
	c.required("type", e.Type)
	c.text("subject", e.Subject)
	c.text("datacontenttype", e.DataContentType)
	c.text("dataschema", e.DataSchema)
	if _, err := url.Parse(e.Source); err != nil {
		c.add("source", "is no URI reference: %v", err)
	}
	if e.DataSchema != "" {
		if u, err := url.Parse(e.DataSchema); err != nil || !u.IsAbs() {
			c.add("dataschema", "is no absolute URI")
		}
	}
	if e.DataContentType != "" {
		if _, _, err := mime.ParseMediaType(e.DataContentType); err != nil {
			c.add("datacontenttype", "is no media type: %v", err)
		}
	}
	if y := e.Time.Year(); !e.Time.IsZero() && (y < 1 || y > 9999) {
		c.add("time", "has no year between 1 and 9999")
	}
	c.extensions(e.Extensions)
	c.data(e, l.MaxDataBytes)
	return c.found
}

// Reserved tells whether a name is an attribute of CloudEvents itself, or its payload.
func Reserved(name string) bool {
	return slices.Contains([]string{
		"specversion", "id", "source", "type", "subject", "time", "datacontenttype", "dataschema", "data", "data_base64",
	}, name)
}

type checker struct {
	prefix string
	found  []fault.Field
}

func (c *checker) add(name, format string, args ...any) {
	c.found = append(c.found, fault.Field{Path: c.prefix + name, Message: fmt.Sprintf(format, args...)})
}

func (c *checker) required(name, value string) {
	if value == "" {
		c.add(name, "is required")
		return
	}
	c.text(name, value)
}

// text holds a value against the rules for CloudEvents' strings.
func (c *checker) text(name, value string) {
	switch {
	case len(value) > MaxAttribute:
		c.add(name, "has %d bytes, more than %d", len(value), MaxAttribute)
	case !utf8.ValidString(value):
		c.add(name, "is no UTF-8")
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
		c.add("extensions", "are no JSON object: %v", err)
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
	if problem := badName(name); problem != "" {
		c.add(name, "%s", problem)
		return
	}
	value, err := jq.DecodeJSON(raw)
	if err != nil {
		c.add(name, "is no JSON: %v", err)
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

// badName tells what is wrong with the name of an extension.
func badName(name string) string {
	switch {
	case name == "":
		return "an attribute without a name"
	case len(name) > MaxName:
		return fmt.Sprintf("its name has %d bytes, more than %d", len(name), MaxName)
	case Reserved(name):
		return "belongs to CloudEvents itself and is no extension"
	}
	for _, r := range name {
		if (r < 'a' || r > 'z') && (r < '0' || r > '9') {
			return "names of attributes have lower-case letters and digits only"
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
		c.add("data", "is no JSON: %v", err)
	case !utf8.Valid(e.Data):
		c.add("data", "is no UTF-8")
	case e.DataBase64:
		text, ok := value.(string)
		if _, err := base64.StdEncoding.DecodeString(text); !ok || err != nil {
			c.add("data_base64", "is no string in base64")
		}
	}
}
