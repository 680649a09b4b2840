package requestbody

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net/http"
	"strings"

	"connectrpc.com/connect"
	"github.com/klauspost/compress/gzip"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/rpc/apierror"
)

// compression is the only one that the API supports. The handlers refuse the others.
const compression = "gzip"

// decode makes a compressed body one that is not: limit is the size to which it, or each of its messages, may expand. The headers change
// accordingly.
func (b *Body) decode(r *http.Request, limit int64) {
	header := encodingHeader(r.Header.Get("Content-Type"))
	if r.Header.Get(header) != compression {
		return
	}
	r.Header.Del(header)
	expanded := &expander{body: b, source: b.reader, limit: limit}
	if header == "Content-Encoding" {
		r.Header.Del("Content-Length")
		r.ContentLength = -1
		b.reader = expanded
		return
	}
	b.reader = &envelopes{body: b, source: b.reader, limit: limit}
}

// encodingHeader returns the header that names the compression of a body of this type, or of its messages.
func encodingHeader(contentType string) string {
	switch {
	case strings.HasPrefix(contentType, "application/grpc"):
		return "Grpc-Encoding"
	case strings.HasPrefix(contentType, "application/connect+"):
		return "Connect-Content-Encoding"
	default:
		return "Content-Encoding"
	}
}

// expander reads a compressed source, and counts what it expands to.
type expander struct {
	body   *Body
	source io.Reader
	limit  int64
	gzip   *gzip.Reader
}

func (e *expander) Read(p []byte) (int, error) {
	if e.gzip == nil {
		unzip, err := gzip.NewReader(e.source)
		if err != nil {
			return 0, notCompressed(err)
		}
		e.gzip = unzip
	}
	if int64(len(p)) > e.limit+1 {
		p = p[:e.limit+1]
	}
	n, err := e.gzip.Read(p)
	if int64(n) > e.limit {
		return int(e.limit), e.body.tooLarge
	}
	e.limit -= int64(n)
	if counted := e.body.count(n); counted != nil {
		return 0, counted
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return n, notCompressed(err)
	}
	return n, err
}

// notCompressed returns the error for a body that cannot be decompressed, or the one with which reading it failed.
func notCompressed(err error) error {
	var e *connect.Error
	if errors.As(err, &e) {
		return e
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return apierror.New(connect.CodeInvalidArgument, apperror.InvalidArgument, "request body: it is not gzip, although its encoding is: "+err.Error())
}

const (
	// envelopeHead is the size of the header of a message in gRPC and Connect: one byte of flags and four of length.
	envelopeHead = 5
	// compressedFlag is the flag of a compressed message.
	compressedFlag = 1
)

// envelopes reads the messages of a stream, and returns them without compression.
type envelopes struct {
	body   *Body
	source io.Reader
	limit  int64

	pending bytes.Buffer // what Read returns next
	passing int64        // the rest of a message that passes unchanged
}

func (e *envelopes) Read(p []byte) (int, error) {
	if e.pending.Len() == 0 && e.passing == 0 {
		if err := e.next(); err != nil {
			return 0, err
		}
	}
	if e.pending.Len() > 0 {
		return e.pending.Read(p)
	}
	if int64(len(p)) > e.passing {
		p = p[:e.passing]
	}
	n, err := e.source.Read(p)
	e.passing -= int64(n)
	return n, err
}

// next reads the header of a message and, if it is compressed, the message.
func (e *envelopes) next() error {
	var head [envelopeHead]byte
	n, err := io.ReadFull(e.source, head[:])
	if errors.Is(err, io.ErrUnexpectedEOF) {
		e.pending.Write(head[:n]) // the reader reports what is wrong
		return nil
	}
	if err != nil {
		return err
	}
	size := int64(binary.BigEndian.Uint32(head[1:]))
	if head[0]&compressedFlag == 0 || size == 0 {
		head[0] &^= compressedFlag
		e.pending.Write(head[:])
		e.passing = size
		return nil
	}
	compressed := io.LimitReader(e.source, size)
	var message bytes.Buffer
	if _, err := message.ReadFrom(&expander{body: e.body, source: compressed, limit: e.limit}); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, compressed); err != nil {
		return err
	}
	head[0] &^= compressedFlag
	binary.BigEndian.PutUint32(head[1:], uint32(message.Len())) //nolint:gosec // the limit is far smaller
	e.pending.Write(head[:])
	e.pending.Write(message.Bytes())
	return nil
}
