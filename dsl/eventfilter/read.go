package eventfilter

import (
	"encoding/base64"
	"mime"
	"strings"

	"github.com/signalbox-dev/signalbox/dsl/jq"
)

// Form is the part of a consumed event that a workflow receives.
type Form string

// The forms.
const (
	Data     Form = "data"     // the payload: its value where it is JSON, text as a string, bytes in base64
	Envelope Form = "envelope" // the whole event in its CloudEvents JSON form
	Raw      Form = "raw"      // the payload's bytes in base64; of JSON, those of its canonical text
)

// Read returns an event in a form. The result shares the event's values.
func (f Form) Read(event map[string]any) any {
	switch f {
	case Envelope:
		return event
	case Raw:
		if bytes, binary := event["data_base64"]; binary {
			return bytes
		}
		data, given := event["data"]
		if !given {
			return nil
		}
		text, isText := data.(string)
		if !isText || jsonType(event["datacontenttype"]) {
			encoded, err := jq.EncodeJSON(data)
			if err != nil {
				return nil
			}
			text = string(encoded)
		}
		return base64.StdEncoding.EncodeToString([]byte(text))
	}
	return attributeOf(event, "data")
}

// jsonType reports whether a content type is JSON. An event without a content type holds JSON.
func jsonType(contentType any) bool {
	text, given := contentType.(string)
	if !given {
		return true
	}
	media, _, err := mime.ParseMediaType(text)
	return err == nil && (media == "application/json" || media == "text/json" || strings.HasSuffix(media, "+json"))
}
