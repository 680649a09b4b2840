package legacy

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
)

// rawOf returns a column that holds JSON. Other text becomes a JSON string; NULL and JSON's null become nil.
func rawOf(v any) json.RawMessage {
	text := sqlrow.Mended(Text(v))
	switch {
	case text == "" || text == "null":
		return nil
	case json.Valid([]byte(text)):
		return json.RawMessage(text)
	}
	quoted, err := json.Marshal(text)
	if err != nil {
		return nil // text always has a JSON form
	}
	return quoted
}

// timeOf returns a column that holds a time: one of the database, a text, or a number of seconds, milliseconds or
// microseconds.
func timeOf(v any) time.Time {
	switch v := v.(type) {
	case time.Time:
		return v.UTC()
	case int64:
		return epoch(v)
	case float64:
		return time.UnixMicro(int64(v * 1e6)).UTC()
	case string:
		for _, layout := range []string{
			time.RFC3339Nano, "2006-01-02 15:04:05.999999999Z07:00", "2006-01-02 15:04:05.999999999-07",
			"2006-01-02 15:04:05.999999999"} {
			if t, err := time.Parse(layout, v); err == nil {
				return t.UTC()
			}
		}
		if n, err := strconv.ParseInt(v, 10, 64); err == nil {
			return epoch(n)
		}
	}
	return time.Time{}
}

// epoch infers the unit of a time from its size: for times from 1973 to 5138 the ranges of the units do not overlap.
func epoch(n int64) time.Time {
	const seconds, millis = int64(1e11), int64(1e14)
	switch {
	case n == 0:
		return time.Time{}
	case n < seconds:
		return time.Unix(n, 0).UTC()
	case n < millis:
		return time.UnixMilli(n).UTC()
	}
	return time.UnixMicro(n).UTC()
}

// errorOf returns a column that holds an error: Problem Details, an object with a message, or a text.
func errorOf(v any) *run.Error {
	raw := rawOf(v)
	if raw == nil {
		return nil
	}
	var said struct {
		Type     string `json:"type"`
		Title    string `json:"title"`
		Detail   string `json:"detail"`
		Message  string `json:"message"`
		Error    string `json:"error"`
		Instance string `json:"instance"`
		Status   int    `json:"status"`
	}
	p := &run.Error{Type: errorType, Status: 500, Title: "Failed on another engine", Instance: "/"}
	var text string
	switch {
	case json.Unmarshal(raw, &text) == nil:
		p.Detail = text
	case json.Unmarshal(raw, &said) == nil && raw[0] == '{':
		for _, found := range []string{said.Detail, said.Message, said.Error} {
			if p.Detail == "" {
				p.Detail = found
			}
		}
		if said.Type != "" {
			p.Type = said.Type
		}
		if said.Title != "" {
			p.Title = said.Title
		}
		if said.Instance != "" {
			p.Instance = said.Instance
		}
		if said.Status > 0 {
			p.Status = said.Status
		}
	}
	if p.Detail == "" {
		p.Detail = string(raw)
	}
	return p
}
