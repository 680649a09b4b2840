package cloudevents_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/event/cloudevents"
)

func structured() http.Header {
	return http.Header{"Content-Type": {"application/cloudevents+json; charset=UTF-8"}}
}

// binary returns the headers of a binary event; more are pairs of header and value.
func binary(contentType string, more ...string) http.Header {
	h := http.Header{}
	h.Set("Ce-Specversion", "1.0")
	h.Set("Ce-Id", "e-1")
	h.Set("Ce-Source", "https://shop.example/orders")
	h.Set("Ce-Type", "order.placed")
	if contentType != "" {
		h.Set("Content-Type", contentType)
	}
	for i := 0; i < len(more); i += 2 {
		h.Set(more[i], more[i+1])
	}
	return h
}

func parse(t *testing.T, header http.Header, body string) event.Event {
	t.Helper()
	events, err := cloudevents.Parse(header, []byte(body), event.DefaultLimits())
	require.NoError(t, err)
	require.Len(t, events, 1)
	return events[0]
}

func TestStructured(t *testing.T) {
	t.Parallel()
	e := parse(t, structured(), `{
		"specversion": "1.0", "id": "e-1", "source": "https://Shop.example/%7Eorders", "type": "order.placed", "subject": "o/1",
		"time": "2026-03-01T13:00:00.123456+01:00", "datacontenttype": "application/json", "dataschema": "https://shop.example/s",
		"priority": 3, "urgent": true, "tenant": "a", "nothing": null,
		"data": {"n": 12345678901234567890.50, "list": [1, 2], "text": "<ä>"}}`)
	require.Equal(t, event.Event{
		ID: "e-1", Source: "https://Shop.example/%7Eorders", Type: "order.placed", Subject: "o/1",
		Time:            time.Date(2026, 3, 1, 12, 0, 0, 123456000, time.UTC),
		DataContentType: "application/json", DataSchema: "https://shop.example/s",
		Extensions: json.RawMessage(`{"priority":3,"tenant":"a","urgent":true}`),
		Data:       json.RawMessage(`{"n":12345678901234567890.50,"list":[1,2],"text":"<ä>"}`),
	}, e)
	require.Equal(t, `{"specversion":"1.0","id":"e-1","source":"https://Shop.example/%7Eorders","type":"order.placed","subject":"o/1",`+
		`"time":"2026-03-01T12:00:00.123456Z","datacontenttype":"application/json","dataschema":"https://shop.example/s",`+
		`"priority":3,"tenant":"a","urgent":true,"data":{"n":12345678901234567890.50,"list":[1,2],"text":"<ä>"}}`, string(
		cloudevents.JSON(e)))
}

func TestPayloads(t *testing.T) {
	t.Parallel()
	head := `{"specversion":"1.0","id":"e-1","source":"/s","type":"t"`
	tests := map[string]struct {
		header http.Header
		body   string
		data   string // nil where empty
		base64 bool
	}{
		"none":                         {structured(), head + `}`, "", false},
		"null":                         {structured(), head + `,"data":null}`, "null", false},
		"text":                         {structured(), head + `,"datacontenttype":"text/plain","data":"hi"}`, `"hi"`, false},
		"bytes":                        {structured(), head + `,"data_base64":"AAE="}`, `"AAE="`, true},
		"binary none":                  {binary("application/json"), "", "", false},
		"binary JSON":                  {binary("application/json"), ` {"n": 1.0} `, `{"n":1.0}`, false},
		"binary JSON by suffix":        {binary("application/vnd.order+json; v=1"), `7`, `7`, false},
		"binary text":                  {binary("text/plain"), "a \"b\"\n", `"a \"b\"\n"`, false},
		"binary XML":                   {binary("application/xml"), "<a/>", `"<a/>"`, false},
		"binary text that is none":     {binary("text/plain"), "\xff", `"/w=="`, true},
		"binary bytes":                 {binary("application/octet-stream"), "\x00\x01", `"AAE="`, true},
		"binary without type":          {binary(""), `{"a": 1}`, `{"a":1}`, false},
		"binary without type, no JSON": {binary(""), `{"a"`, `"eyJhIg=="`, true},
		"binary, wrong type":           {binary("a b"), `1`, `"MQ=="`, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name == "binary, wrong type" {
				_, err := cloudevents.Parse(tt.header, []byte(tt.body), event.DefaultLimits())
				require.ErrorContains(t, err, "datacontenttype")
				return
			}
			e := parse(t, tt.header, tt.body)
			require.Equal(t, tt.data, string(e.Data))
			require.Equal(t, tt.data == "", e.Data == nil)
			require.Equal(t, tt.base64, e.DataBase64)
		})
	}
}

func TestBinaryHeaders(t *testing.T) {
	t.Parallel()
	e := parse(t, binary("text/plain", "ce-subject", "caf%C3%A9%20%22x%22", "ce-time", "2026-03-01T12:00:00Z", "ce-tenant",
		"a"), "hi")
	require.Equal(t, event.Event{
		ID: "e-1", Source: "https://shop.example/orders", Type: "order.placed", Subject: `café "x"`,
		Time: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), DataContentType: "text/plain",
		Extensions: json.RawMessage(`{"tenant":"a"}`), Data: json.RawMessage(`"hi"`),
	}, e)
}

// TestTimes checks all forms of RFC 3339: lower case, leap seconds, nanoseconds, and what is no such time.
func TestTimes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"2026-03-01T12:00:00.123456789Z":      "2026-03-01T12:00:00.123456789Z",
		"2026-03-01t12:00:00z":                "2026-03-01T12:00:00Z",
		"2026-03-01t12:00:00.5+02:00":         "2026-03-01T10:00:00.5Z",
		"2016-12-31T23:59:60Z":                "2017-01-01T00:00:00Z",
		"2016-12-31t15:59:60.25-08:00":        "2017-01-01T00:00:00.25Z",
		"2026-03-01T12:00:60Z":                "",
		"2026-03-01T12:00:61Z":                "",
		"2026-03-01 12:00:00Z":                "",
		"2026-03-01T12:00:00":                 "",
		"2026-03-01T12:00:00,5Z":              "",
		"2026-03-01T12:00:00+24:00":           "",
		"2026-03-01T1:00:00Z":                 "",
		"2026-03-01T12:00:6":                  "",
		"2026-03-01T12:00:60":                 "",
		"2026-02-30T12:00:00Z":                "",
		"2026-03-01T12:00:00.1234567891Z":     "2026-03-01T12:00:00.123456789Z",
		"2026-03-01T12:00:00.123456789+00:00": "2026-03-01T12:00:00.123456789Z",
	} {
		body := fmt.Sprintf(`{"specversion":"1.0","id":"e-1","source":"/s","type":"t","time":%q}`, text)
		events, err := cloudevents.Parse(structured(), []byte(body), event.DefaultLimits())
		if want == "" {
			require.ErrorContains(t, err, "is not an RFC 3339 time", text)
			continue
		}
		require.NoError(t, err, text)
		require.Contains(t, string(cloudevents.JSON(events[0])), `"time":"`+want+`"`, text)
	}
}

func TestBatch(t *testing.T) {
	t.Parallel()
	header := http.Header{"Content-Type": {cloudevents.Batch}}
	one := `{"specversion":"1.0","id":"%d","source":"/s","type":"t"}`
	events, err := cloudevents.Parse(header, []byte("["+fmt.Sprintf(one, 1)+","+fmt.Sprintf(one, 2)+"]"),
		event.DefaultLimits())
	require.NoError(t, err)
	require.Equal(t, []string{"1", "2"}, []string{events[0].ID, events[1].ID})
	events, err = cloudevents.Parse(header, []byte("[]"), event.DefaultLimits())
	require.NoError(t, err)
	require.Empty(t, events)

	_, err = cloudevents.Parse(header, []byte("["+fmt.Sprintf(one, 1)+","+fmt.Sprintf(one, 2)+"]"),
		event.Limits{MaxBatch: 1, MaxDataBytes: 9})
	require.True(t, apperror.Is(err, apperror.EventTooLarge), "%v", err)
	require.ErrorContains(t, err, "2 events, more than the limit of 1")
}

// TestMistakes checks that errors name the attribute, and the event in a batch.
func TestMistakes(t *testing.T) {
	t.Parallel()
	batch := http.Header{"Content-Type": {cloudevents.Batch}}
	good := `"specversion":"1.0","id":"e-1","source":"/s","type":"t"`
	long := strings.Repeat("x", event.MaxAttribute+1)
	tests := map[string]struct {
		header http.Header
		body   string
		want   map[string]string // path → part of the message
	}{
		"no event": {
			http.Header{"Content-Type": {"application/json"}}, `{}`, map[string]string{"Content-Type": "ce-specversion"}},
		"nothing":       {http.Header{}, ``, map[string]string{"Content-Type": "ce-specversion"}},
		"no media type": {http.Header{"Content-Type": {";"}}, ``, map[string]string{"Content-Type": "no media type"}},
		"another format": {
			http.Header{"Content-Type": {"application/cloudevents+avro"}}, ``,
			map[string]string{"Content-Type": "is not supported"}},
		"another charset": {
			http.Header{"Content-Type": {cloudevents.Structured + "; charset=latin1"}}, `{}`,
			map[string]string{"Content-Type": "UTF-8"}},
		"no JSON":         {structured(), `{"a"`, map[string]string{"event": "is not valid JSON"}},
		"no object":       {structured(), `[]`, map[string]string{"event": "is not a JSON object"}},
		"something after": {structured(), `{} {}`, map[string]string{"event": "after its end"}},
		"no UTF-8":        {structured(), "{\"a\":\"\xff\"}", map[string]string{"event": "not valid UTF-8"}},
		"no version": {
			structured(), `{"id":"1","source":"/s","type":"t"}`, map[string]string{"specversion": "is required"}},
		"an old version": {
			structured(), `{"specversion":"0.3","id":"1","source":"/s","type":"t"}`, map[string]string{"specversion": `"0.3"`}},
		"nothing that must": {
			structured(), `{"specversion":"1.0"}`,
			map[string]string{"id": "is required", "source": "is required", "type": "is required"}},
		"an empty ID": {
			structured(), `{"specversion":"1.0","id":"","source":"/s","type":"t"}`, map[string]string{"id": "is empty"}},
		"a number": {
			structured(), `{"specversion":"1.0","id":1,"source":"/s","type":"t"}`, map[string]string{"id": "is not a string"}},
		"twice":               {structured(), `{` + good + `,"id":"e-2"}`, map[string]string{"id": "is given twice"}},
		"a time that is none": {structured(), `{` + good + `,"time":"yesterday"}`, map[string]string{"time": "RFC 3339"}},
		"a source": {
			structured(), `{"specversion":"1.0","id":"1","source":":","type":"t"}`,
			map[string]string{"source": "URI reference"}},
		"a schema": {
			structured(), `{` + good + `,"dataschema":"/relative"}`, map[string]string{"dataschema": "absolute URI"}},
		"a media type": {
			structured(), `{` + good + `,"datacontenttype":"a b"}`, map[string]string{"datacontenttype": "media type"}},
		"a name": {
			structured(), `{` + good +
				`,"myTenant":"x","a-b":"x"}`, map[string]string{"myTenant": "lower-case", "a-b": "lower-case"}},
		"a long name": {
			structured(), `{` + good + `,"` + strings.Repeat("a", 65) +
				`":"x"}`, map[string]string{strings.Repeat("a", 65): "65 bytes"}},
		"an object":           {structured(), `{` + good + `,"tenant":{}}`, map[string]string{"tenant": "an object"}},
		"a fraction":          {structured(), `{` + good + `,"tenant":1.5}`, map[string]string{"tenant": "a number"}},
		"a large integer":     {structured(), `{` + good + `,"tenant":2147483648}`, map[string]string{"tenant": "32 bits"}},
		"a control character": {structured(), `{` + good + `,"subject":"a\nb"}`, map[string]string{"subject": "U+000A"}},
		"a long subject": {
			structured(), `{` + good + `,"subject":"` + long + `"}`, map[string]string{"subject": "more than 1024"}},
		"two payloads": {
			structured(), `{` + good +
				`,"data":1,"data_base64":"AA=="}`, map[string]string{"data_base64": "together with data"}},
		"no base64": {
			structured(), `{` + good + `,"data_base64":"?"}`, map[string]string{"data_base64": "base64"}},
		"base64 of a number": {structured(), `{` + good + `,"data_base64":1}`, map[string]string{"data_base64": "base64"}},
		"deep data": {
			structured(), `{` + good + `,"data":` + strings.Repeat("[", 1500) + strings.Repeat("]", 1500) +
				`}`, map[string]string{"data": "is not valid JSON"}},
		"binary, no version": {
			http.Header{"Ce-Id": {"1"}, "Ce-Source": {"/s"}, "Ce-Type": {"t"}}, ``, map[string]string{"specversion": "header"}},
		"binary, twice": {
			http.Header{"Ce-Specversion": {"1.0"}, "Ce-Id": {"1", "2"}, "Ce-Source": {"/s"}, "Ce-Type": {"t"}}, ``,
			map[string]string{"id": "2 times"}},
		"binary, percent":  {binary("", "ce-subject", "%zz"), ``, map[string]string{"subject": "percent"}},
		"binary, no UTF-8": {binary("", "ce-subject", "%ff"), ``, map[string]string{"subject": "not valid UTF-8"}},
		"binary, a type": {
			binary("", "ce-datacontenttype", "text/plain"), ``, map[string]string{"datacontenttype": "Content-Type"}},
		"binary, no JSON":      {binary("application/json"), `{`, map[string]string{"data": "application/json"}},
		"binary, no text":      {binary("application/json"), "\"\xff\"", map[string]string{"data": "UTF-8"}},
		"a batch that is none": {batch, `{}`, map[string]string{"events": "cannot unmarshal"}},
		"in a batch": {
			batch, `[{` + good + `},{` + good +
				`,"time":"x"},7]`, map[string]string{"events[1].time": "RFC 3339", "events[2].event": "not a JSON object"}},
		"values in a batch": {batch, `[{` + good + `},{` + good + `,"a_b":"x"}]`,
			map[string]string{"events[1].a_b": "lower-case"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := cloudevents.Parse(tt.header, []byte(tt.body), event.DefaultLimits())
			f, ok := apperror.From(err)
			require.True(t, ok, "%v", err)
			require.Equal(t, []any{apperror.Invalid, apperror.EventInvalid}, []any{f.Class, f.Reason})
			got := map[string]string{}
			for _, field := range f.Fields {
				got[field.Path] = field.Message
			}
			require.Len(t, got, len(tt.want), "%v", f.Fields)
			for path, message := range tt.want {
				require.Contains(t, got[path], message)
			}
		})
	}
}

func TestTooLarge(t *testing.T) {
	t.Parallel()
	body := `{"specversion":"1.0","id":"e-1","source":"/s","type":"t","data":"` + strings.Repeat("x", 300<<10) + `"}`
	_, err := cloudevents.Parse(structured(), []byte(body), event.DefaultLimits())
	require.True(t, apperror.Is(err, apperror.EventTooLarge))
	require.ErrorContains(t, err, `event "e-1" has 307202 bytes, more than the limit of 262144`)
}

// FuzzParse checks that an accepted event is unchanged after writing and reading it.
func FuzzParse(f *testing.F) {
	f.Add("application/cloudevents+json", "",
		`{"specversion":"1.0","id":"1","source":"/s","type":"t","time":"2026-03-01T12:00:00Z","x":1,"data":[1.0]}`)
	f.Add("application/cloudevents-batch+json", "",
		`[{"specversion":"1.0","id":"1","source":"/s","type":"t","data_base64":"AA=="}]`)
	f.Add("text/plain", "x%20y", "hi")
	f.Fuzz(func(t *testing.T, contentType, subject, body string) {
		header := http.Header{"Content-Type": {contentType}}
		if subject != "" {
			header = binary(contentType, "ce-subject", subject)
		}
		events, err := cloudevents.Parse(header, []byte(body), event.DefaultLimits())
		if err != nil {
			_, ok := apperror.From(err)
			require.True(t, ok, "%v", err)
			return
		}
		for _, e := range events {
			again, err := cloudevents.FromJSON(cloudevents.JSON(e), event.DefaultLimits())
			require.NoError(t, err)
			require.Equal(t, e, again)
		}
	})
}
