package handler

import (
	"mime"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/api/httpbody"
	"google.golang.org/protobuf/proto"
)

// chunk is the size of one message of the stream.
const chunk = 64 << 10

// file is the exported file, sent in chunks. After the first error every call returns that error.
type file struct {
	stream *connect.ServerStream[httpbody.HttpBody]
	kind   string
	name   string
	buffer []byte
	begun  bool
	err    error
}

func newFile(stream *connect.ServerStream[httpbody.HttpBody], kind, name string) *file {
	return &file{stream: stream, kind: kind, name: name}
}

// Write implements io.Writer.
func (f *file) Write(p []byte) (int, error) {
	if f.err != nil {
		return 0, f.err
	}
	f.buffer = append(f.buffer, p...)
	for len(f.buffer) >= chunk && f.err == nil {
		f.send(f.buffer[:chunk])
		f.buffer = append(f.buffer[:0], f.buffer[chunk:]...)
	}
	return len(p), f.err
}

// text writes literal text of the package. An error is returned by the next call.
func (f *file) text(s string) { _, _ = f.Write([]byte(s)) }

func (f *file) message(m proto.Message) error {
	text, err := textOf(m)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return err
}

// close sends the rest. An empty file is sent with its content type, too.
func (f *file) close() error {
	if f.err == nil && (len(f.buffer) > 0 || !f.begun) {
		f.send(f.buffer)
	}
	if f.err != nil {
		return f.err
	}
	f.err = errDone
	return nil
}

func (f *file) send(data []byte) {
	if !f.begun { // an error before the first chunk is sent without file headers
		f.stream.ResponseHeader().Set("Content-Disposition",
			mime.FormatMediaType("attachment", map[string]string{"filename": f.name}))
	}
	f.begun = true
	f.err = f.stream.Send(&httpbody.HttpBody{ContentType: f.kind, Data: data})
}
