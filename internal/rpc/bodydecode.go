package rpc

import (
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

// decode makes the body one that is complete, by itself or by messages, and not compressed: limit is the size to which
// it, or each of its messages, may expand. The headers change accordingly.
func (b *requestBody) decode(r *http.Request, limit int64) {
	header, enveloped := form(r.Header.Get("Content-Type"))
	compressed := r.Header.Get(header) == compression
	if compressed {
		r.Header.Del(header)
	}
	part := part{body: b, limit: limit}
	switch {
	case enveloped:
		b.content = &envelopes{part: part, source: rawReader{b}, compressed: compressed}
	default:
		b.content = &whole{part: part, source: rawReader{b}, compressed: compressed}
	}
	if compressed && !enveloped {
		r.Header.Del("Content-Length")
		r.ContentLength = -1
	}
}

// form returns the header that names the compression of a body of this type, and whether the body consists of messages
// with a header each.
func form(contentType string) (header string, enveloped bool) {
	switch {
	case strings.HasPrefix(contentType, "application/grpc"):
		return "Grpc-Encoding", true
	case strings.HasPrefix(contentType, "application/connect+"):
		return "Connect-Content-Encoding", true
	default:
		return "Content-Encoding", false
	}
}

// content is a body without compression.
type content interface {
	io.Reader
	// receive waits until what Read returns first has arrived.
	receive() error
}

// part reads bodies and messages.
type part struct {
	body  *requestBody
	limit int64
}

// expand returns what compressed bytes expand to. It takes processor time, for which the bodies of one caller wait for
// each other.
func (p part) expand(compressed *chunks) (*chunks, error) {
	release, err := p.body.expanding()
	if err != nil {
		return nil, err
	}
	defer release()
	unzip, err := gzip.NewReader(compressed)
	if err != nil {
		return nil, notCompressed(err)
	}
	expanded := &chunks{}
	for {
		space := expanded.space()
		n, err := unzip.Read(space)
		expanded.extend(n)
		if expanded.size > p.limit {
			return nil, p.body.tooLarge
		}
		if counted := p.body.count(n); counted != nil {
			return nil, counted
		}
		if errors.Is(err, io.EOF) {
			return expanded, nil
		}
		if err != nil {
			return nil, notCompressed(err)
		}
	}
}

// notCompressed returns the error for bytes that cannot be decompressed.
func notCompressed(err error) error {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return apierror.New(connect.CodeInvalidArgument, apperror.InvalidArgument,
		"request body: it is not gzip, although its encoding is: "+err.Error())
}

// whole is a body without messages. It reads all of it before it returns the first byte.
type whole struct {
	part

	source     io.Reader
	compressed bool
	content    *chunks
}

func (w *whole) receive() error {
	arrived := &chunks{}
	err := arrived.readAll(w.source)
	if err == nil && w.compressed {
		arrived, err = w.expand(arrived)
	}
	w.content = arrived
	return err
}

func (w *whole) Read(p []byte) (int, error) { return w.content.Read(p) }

const (
	// envelopeHead is the size of the header of a message in gRPC and Connect: one byte of flags and four of length.
	envelopeHead = 5
	// compressedFlag is the flag of a compressed message.
	compressedFlag = 1
)

// envelopes is a body of messages. It reads each of them completely before it returns its first byte.
type envelopes struct {
	part

	source     io.Reader
	compressed bool      // messages may be compressed
	message    io.Reader // the rest of the message that was received last
}

func (e *envelopes) Read(p []byte) (int, error) {
	n, err := e.message.Read(p)
	if !errors.Is(err, io.EOF) {
		return n, err
	}
	if err := e.receive(); err != nil {
		return 0, err
	}
	return e.message.Read(p)
}

// receive reads the next message, which is empty at the end of the body. Connect reports what is wrong with one that is
// not complete.
func (e *envelopes) receive() error {
	head := &chunks{}
	e.message = head
	if err := head.readAll(io.LimitReader(e.source, envelopeHead)); err != nil || head.size < envelopeHead {
		return err
	}
	flags, size := &head.parts[0][0], head.parts[0][1:envelopeHead]
	arrived := &chunks{}
	if err := arrived.readAll(io.LimitReader(e.source, int64(binary.BigEndian.Uint32(size)))); err != nil {
		return err
	}
	if e.compressed && *flags&compressedFlag != 0 {
		if arrived.size > 0 {
			expanded, err := e.expand(arrived)
			if err != nil {
				return err
			}
			arrived = expanded
			binary.BigEndian.PutUint32(size, uint32(arrived.size)) //nolint:gosec // the limit is far smaller
		}
		*flags &^= compressedFlag
	}
	e.message = io.MultiReader(head, arrived)
	return nil
}

// chunks is a buffer that grows without copying, so that a body takes the memory of its bytes while it arrives. The
// buffers of Connect keep the largest size that they had, so they hold only what has arrived completely.
type chunks struct {
	parts [][]byte
	size  int64
}

const (
	firstChunk = 1 << 10
	chunk      = 32 << 10
)

// space returns room for the next bytes; extend appends those that were written there.
func (c *chunks) space() []byte {
	if n := len(c.parts); n > 0 && len(c.parts[n-1]) < cap(c.parts[n-1]) {
		last := c.parts[n-1]
		return last[len(last):cap(last)]
	}
	size := chunk
	if len(c.parts) == 0 {
		size = firstChunk
	}
	c.parts = append(c.parts, make([]byte, 0, size))
	return c.parts[len(c.parts)-1][:size]
}

func (c *chunks) extend(n int) {
	last := len(c.parts) - 1
	c.parts[last] = c.parts[last][:len(c.parts[last])+n]
	c.size += int64(n)
}

func (c *chunks) readAll(source io.Reader) error {
	for {
		n, err := source.Read(c.space())
		c.extend(n)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// Read returns the bytes once, and releases them.
func (c *chunks) Read(p []byte) (n int, err error) {
	for n < len(p) && len(c.parts) > 0 {
		copied := copy(p[n:], c.parts[0])
		n += copied
		if c.parts[0] = c.parts[0][copied:]; len(c.parts[0]) == 0 {
			c.parts = c.parts[1:]
		}
	}
	if n == 0 && len(p) > 0 {
		return 0, io.EOF
	}
	return n, nil
}
