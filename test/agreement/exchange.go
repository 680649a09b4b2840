package agreement

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/signalbox-dev/signalbox/dsl/httpmessage"
	"github.com/signalbox-dev/signalbox/dsl/jq"
	"github.com/signalbox-dev/signalbox/dsl/workflowtest"
)

// redacted is what the platform shows in place of a credential.
const redacted = "⟦redacted⟧"

// Exchange is a request that a service received, and its response.
type Exchange struct {
	Method, URL string
	Headers     http.Header
	Body        []byte

	Status   int
	Response http.Header
	Content  []byte
}

// Services records the exchanges of the services that workflows call. It is safe for concurrent use.
type Services struct {
	handler http.Handler
	ignore  func(*http.Request) bool

	mu        sync.Mutex
	exchanges []Exchange
}

// Record returns a handler that records the exchanges of another one, without the requests to ignore, which no call of a
// workflow sends: those of authorities, and of resources.
func Record(handler http.Handler, ignore func(*http.Request) bool) *Services {
	return &Services{handler: handler, ignore: ignore}
}

// ServeHTTP implements [http.Handler].
func (s *Services) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body) // an incomplete body differs from the one that was sent
	r.Body = io.NopCloser(bytes.NewReader(body))
	if s.ignore(r) {
		s.handler.ServeHTTP(w, r)
		return
	}
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	answer := httptest.NewRecorder()
	s.handler.ServeHTTP(answer, r)
	// A server adds these: the platform sees them, too.
	answer.Header().Set("Content-Length", strconv.Itoa(answer.Body.Len()))
	answer.Header().Set("Date", time.Now().UTC().Format(http.TimeFormat))
	exchange := Exchange{
		Method: r.Method, URL: scheme + "://" + r.Host + r.URL.RequestURI(), Headers: r.Header, Body: body,
		Status: answer.Code, Response: answer.Header().Clone(), Content: answer.Body.Bytes(),
	}
	s.mu.Lock()
	s.exchanges = append(s.exchanges, exchange)
	s.mu.Unlock()
	for name, values := range answer.Header() {
		w.Header()[name] = values
	}
	w.WriteHeader(answer.Code)
	_, _ = w.Write(answer.Body.Bytes()) // the caller may have disconnected
}

// Handler returns the services without a record.
func (s *Services) Handler() http.Handler { return s.handler }

// Take returns the exchanges since the last call whose URLs belong to a run, in order, and forgets them.
func (s *Services) Take(belongs func(Exchange) bool) []Exchange {
	s.mu.Lock()
	defer s.mu.Unlock()
	taken, others := split(s.exchanges, belongs)
	s.exchanges = others
	if taken == nil {
		return []Exchange{}
	}
	return taken
}

// Followed joins each redirection that the platform followed, and each challenge that it answered, with its last
// response: the call sees only that one.
func Followed(exchanges []Exchange) []Exchange {
	var out []Exchange
	for _, e := range exchanges {
		if len(out) > 0 && out[len(out)-1].leadsTo(e) {
			last := &out[len(out)-1]
			last.Status, last.Response, last.Content = e.Status, e.Response, e.Content
			continue
		}
		out = append(out, e)
	}
	return out
}

// leadsTo reports whether the response of an exchange requires the next one.
func (e *Exchange) leadsTo(next Exchange) bool {
	if strings.HasPrefix(e.Response.Get("WWW-Authenticate"), "Digest ") && next.Headers.Get("Authorization") != "" {
		return e.URL == next.URL
	}
	target := e.Response.Get("Location")
	return target != "" && resolved(e.URL, target) == next.URL
}

func resolved(base, reference string) string {
	from, err := url.Parse(base)
	if err != nil {
		return reference
	}
	target, err := from.Parse(reference)
	if err != nil {
		return reference
	}
	return target.String()
}

// mocks returns mocks that answer as the services did. Credentials in their responses are marked, as on the platform.
func mocks(exchanges []Exchange) []workflowtest.Mock {
	var out []workflowtest.Mock
	index := map[string]int{}
	for _, e := range Followed(exchanges) {
		key := e.Method + " " + e.URL
		at, seen := index[key]
		if !seen {
			at = len(out)
			index[key] = at
			out = append(out, workflowtest.Mock{When: fmt.Sprintf(".method == %q and .url == %q", e.Method, e.URL)})
		}
		response := workflowtest.Response{Status: e.Status, Headers: httpmessage.Flatten(e.Response)}
		if len(e.Content) > 0 {
			content := e.marked()
			response.HasBody, response.Body = true, content
			var value any
			if strings.Contains(e.Response.Get("Content-Type"), "json") && json.Unmarshal([]byte(content), &value) == nil {
				response.Body = value
			}
		}
		out[at].Respond = append(out[at].Respond, response)
	}
	return out
}

// marked returns the content of a response with its request's credentials as marks.
func (e *Exchange) marked() string {
	content := string(e.Content)
	for _, name := range []string{"Authorization", "Cookie"} {
		if value := e.Headers.Get(name); value != "" {
			encoded, _ := json.Marshal(value) // a text
			content = strings.ReplaceAll(content, string(encoded), `"`+redacted+`"`)
		}
	}
	return content
}

// received returns the requests of exchanges in a comparable form, in a fixed order: branches send theirs in any.
func received(exchanges []Exchange) []string {
	var out []string
	for _, e := range Followed(exchanges) {
		out = append(out, line(e.Method, e.URL, e.Headers, e.Body))
	}
	slices.Sort(out)
	return out
}

// sent returns the requests of a test in the same form.
func sent(requests []workflowtest.Request) []string {
	var out []string
	for _, q := range requests {
		headers := http.Header{}
		for name, value := range q.Headers {
			headers.Set(name, value)
		}
		var body []byte
		if q.HasBody {
			encoded, err := jq.EncodeJSON(q.Body)
			if err != nil {
				panic(fmt.Sprintf("encode a body: %v", err)) // it was sent
			}
			reader, err := httpmessage.Body(encoded, headers)
			if err != nil {
				panic(fmt.Sprintf("encode a body: %v", err)) // it was sent
			}
			body, _ = io.ReadAll(reader) // it is in memory
		}
		out = append(out, line(q.Method, q.URL, headers, body))
	}
	slices.Sort(out)
	return out
}

// line describes a request, without the headers that each client adds in its own way.
func line(method, address string, headers http.Header, body []byte) string {
	var value any
	if json.Unmarshal(body, &value) == nil {
		body = []byte(text(value))
	}
	var names []string
	for name := range headers {
		switch name {
		case "Authorization", "User-Agent", "Idempotency-Key", "Accept-Encoding", "Content-Length", "Traceparent",
			"Tracestate", "Cookie":
		default:
			names = append(names, name+": "+headers.Get(name))
		}
	}
	slices.Sort(names)
	return fmt.Sprintf("%s %s [%s] %s", method, address, strings.Join(names, "; "), body)
}
