package cloudevents

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/signalbox-dev/signalbox/dsl/jq"
	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/event"
)

// prefix begins the headers of a binary event, in the form of net/http.
const prefix = "Ce-"

// isBinary reports whether a request has the headers of an event.
func isBinary(header http.Header) bool {
	for name := range header {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// readBinary reads an event whose attributes are headers and whose payload is the body.
func readBinary(header http.Header, media string, body []byte) (event.Event, []apperror.Field) {
	r := &reader{}
	e := event.Event{DataContentType: header.Get("Content-Type")}
	extensions := map[string]string{}
	for key, values := range header {
		name, ok := strings.CutPrefix(key, prefix)
		if !ok {
			continue
		}
		name = strings.ToLower(name)
		if len(values) != 1 {
			r.add(name, "is given %d times", len(values))
			continue
		}
		text, violation := headerText(values[0])
		if violation != "" {
			r.add(name, "%s", violation)
			continue
		}
		switch name {
		case "datacontenttype", "data", "data_base64":
			r.add(name, "is not allowed as a header; the body is the payload and Content-Type its type")
			continue
		}
		value, _ := json.Marshal(text) //nolint:errchkjson // strings always encode
		if !r.attribute(&e, namedValue{name, value}) {
			extensions[name] = text
		}
	}
	if header.Get(prefix+"Specversion") == "" {
		r.add("specversion", "is required: the header ce-specversion must be %q", version)
	}
	if len(extensions) > 0 {
		e.Extensions, _ = json.Marshal(extensions) //nolint:errchkjson // strings always encode
	}
	r.payload(&e, media, body)
	return e, r.found
}

// headerText decodes the percent-encoding of CloudEvents' HTTP binding.
func headerText(value string) (text, violation string) {
	text, err := url.PathUnescape(strings.TrimSpace(value))
	if err != nil {
		return "", "is not percent-encoded as headers are: " + err.Error()
	}
	if !utf8.ValidString(text) {
		return "", "is not valid UTF-8"
	}
	return text, ""
}

// payload stores JSON unchanged, text as a string and everything else as bytes. Without a media type, a body that is
// valid JSON is JSON.
func (r *reader) payload(e *event.Event, media string, body []byte) {
	if len(body) == 0 {
		return
	}
	kind := kindOf(media)
	if kind == kindUnknown {
		kind = kindBytes
		if _, err := jq.DecodeJSON(body); err == nil && utf8.Valid(body) {
			kind = kindJSON
		}
	}
	switch {
	case kind == kindJSON:
		var compact bytes.Buffer
		if err := json.Compact(&compact, body); err != nil {
			r.add("data", "is not valid JSON although its Content-Type is %q: %v", media, err)
			return
		}
		if !utf8.Valid(body) {
			r.add("data", "is not valid UTF-8")
			return
		}
		e.Data = compact.Bytes()
	case kind == kindText && utf8.Valid(body):
		e.Data, _ = jq.EncodeJSON(string(body))
	default:
		e.Data, _ = json.Marshal(base64.StdEncoding.EncodeToString(body)) //nolint:errchkjson // strings always encode
		e.DataBase64 = true
	}
}

type kind int

const (
	kindUnknown kind = iota
	kindJSON
	kindText
	kindBytes
)

func kindOf(media string) kind {
	switch {
	case media == "":
		return kindUnknown
	case media == "application/json", media == "text/json", strings.HasSuffix(media, "+json"):
		return kindJSON
	case strings.HasPrefix(media, "text/"), media == "application/xml", strings.HasSuffix(media, "+xml"):
		return kindText
	}
	return kindBytes
}
