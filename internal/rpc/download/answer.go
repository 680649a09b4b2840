package download

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"maps"
	"net/http"
	"strings"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/api/httpbody"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/signalbox-dev/signalbox/internal/rpc/fail"
)

const (
	// envelopeHead is one byte of flags and four of length.
	envelopeHead = 5
	// lastEnvelope is the flag of the envelope that ends the stream.
	lastEnvelope = 2
)

// ending is what the last envelope says.
type ending struct {
	Error *struct {
		Code    string   `json:"code"`
		Message string   `json:"message"`
		Details []detail `json:"details"`
	} `json:"error"`
	Metadata map[string][]string `json:"metadata"`
}

type detail struct {
	Type  string `json:"type"`
	Value string `json:"value"`
}

// detail reads one of an error's details.
func (d detail) detail() (*connect.ErrorDetail, bool) {
	kind, err := protoregistry.GlobalTypes.FindMessageByName(protoreflect.FullName(d.Type))
	if err != nil {
		return nil, false
	}
	raw, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(d.Value, "="))
	if err != nil {
		return nil, false
	}
	m := kind.New().Interface()
	if proto.Unmarshal(raw, m) != nil {
		return nil, false
	}
	found, err := connect.NewErrorDetail(m)
	return found, err == nil
}

// answer is a ResponseWriter that takes a stream in Connect's protocol and sends the file that is in it.
type answer struct {
	w      http.ResponseWriter
	header http.Header

	rest  []byte // of an envelope that has not come as a whole
	begun bool
	ended bool
	end   ending
	// lost is the writer's error: the caller hung up.
	lost error
}

var _ http.Flusher = (*answer)(nil)

func (a *answer) Header() http.Header { return a.header }

// WriteHeader does nothing: a stream's status is at its end.
func (a *answer) WriteHeader(int) {}

// Flush does nothing: each chunk is flushed by itself.
func (a *answer) Flush() {}

// Unwrap gives http.ResponseController the writer with the deadlines.
func (a *answer) Unwrap() http.ResponseWriter { return a.w }

// Write takes envelopes, whole or in parts.
func (a *answer) Write(p []byte) (int, error) {
	a.rest = append(a.rest, p...)
	for len(a.rest) >= envelopeHead && a.lost == nil {
		length := int(binary.BigEndian.Uint32(a.rest[1:envelopeHead]))
		if len(a.rest) < envelopeHead+length {
			break
		}
		a.take(a.rest[0], a.rest[envelopeHead:envelopeHead+length])
		a.rest = append(a.rest[:0], a.rest[envelopeHead+length:]...)
	}
	return len(p), a.lost
}

func (a *answer) take(flags byte, data []byte) {
	if flags&lastEnvelope != 0 {
		a.ended = json.Unmarshal(data, &a.end) == nil
		return
	}
	var chunk httpbody.HttpBody
	if err := proto.Unmarshal(data, &chunk); err != nil {
		a.lost = err
		return
	}
	if !a.begun {
		a.begun = true
		header := a.w.Header()
		maps.Copy(header, a.header)
		header.Del("Connect-Content-Encoding")
		header.Del("Connect-Accept-Encoding")
		header.Set("Content-Type", chunk.GetContentType())
		header.Set("X-Content-Type-Options", "nosniff")
	}
	if _, a.lost = a.w.Write(chunk.GetData()); a.lost == nil {
		a.lost = http.NewResponseController(a.w).Flush()
	}
}

// finish answers with the error, if there is one.
func (a *answer) finish() {
	problem := answered(a.end)
	if problem == nil && !a.ended {
		problem = fail.Internal()
	}
	switch {
	case problem == nil:
	case a.begun:
		panic(http.ErrAbortHandler)
	default:
		fail.WriteREST(a.w, problem, fail.HTTPStatus(problem))
	}
}
