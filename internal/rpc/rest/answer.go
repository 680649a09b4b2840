package rest

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

	"github.com/signalbox-dev/signalbox/internal/rpc/apierror"
)

const (
	// envelopeHead is the size of the header: one byte of flags and four of length.
	envelopeHead = 5
	// lastEnvelope is the flag of the envelope that ends the stream.
	lastEnvelope = 2
)

// endOfStream is the content of the last envelope.
type endOfStream struct {
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

// detail decodes one error detail.
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

// downloadWriter is a ResponseWriter that receives a stream in Connect's protocol and sends the file that it contains.
type downloadWriter struct {
	w      http.ResponseWriter
	header http.Header

	rest  []byte // the received part of an incomplete envelope
	begun bool
	ended bool
	end   endOfStream
	// writeErr is the write error after the caller disconnected.
	writeErr error
}

var _ http.Flusher = (*downloadWriter)(nil)

func (a *downloadWriter) Header() http.Header { return a.header }

// WriteHeader does nothing: the status of a stream is in its last envelope.
func (a *downloadWriter) WriteHeader(int) {}

// Flush does nothing: Write flushes each chunk.
func (a *downloadWriter) Flush() {}

// Unwrap gives http.ResponseController access to the writer's deadlines.
func (a *downloadWriter) Unwrap() http.ResponseWriter { return a.w }

// Write receives envelopes, whole or in parts.
func (a *downloadWriter) Write(p []byte) (int, error) {
	a.rest = append(a.rest, p...)
	for len(a.rest) >= envelopeHead && a.writeErr == nil {
		length := int(binary.BigEndian.Uint32(a.rest[1:envelopeHead]))
		if len(a.rest) < envelopeHead+length {
			break
		}
		a.take(a.rest[0], a.rest[envelopeHead:envelopeHead+length])
		a.rest = append(a.rest[:0], a.rest[envelopeHead+length:]...)
	}
	return len(p), a.writeErr
}

func (a *downloadWriter) take(flags byte, data []byte) {
	if flags&lastEnvelope != 0 {
		a.ended = json.Unmarshal(data, &a.end) == nil
		return
	}
	var chunk httpbody.HttpBody
	if err := proto.Unmarshal(data, &chunk); err != nil {
		a.writeErr = err
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
	if _, a.writeErr = a.w.Write(chunk.GetData()); a.writeErr == nil {
		a.writeErr = http.NewResponseController(a.w).Flush()
	}
}

// finish sends the error, if there is one.
func (a *downloadWriter) finish() {
	failure := streamError(a.end)
	if failure == nil && !a.ended {
		failure = apierror.InternalError()
	}
	switch {
	case failure == nil:
	case a.begun:
		panic(http.ErrAbortHandler)
	default:
		apierror.WriteREST(a.w, failure, apierror.HTTPStatus(failure))
	}
}
