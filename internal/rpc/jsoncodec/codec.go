// Package jsoncodec is the JSON of the API, for Connect, REST and whoever prints an API message.
//
// It is the JSON mapping of Protobuf with three differences that people and their tools expect:
//
//   - signalbox.v1.JsonValue stands inline, digit for digit: `"input": {"n": 12345678901234567890}`. A member that
//     is missing, null and {} are three different things: no message, the JSON null, and an empty object.
//   - 64-bit integers are JSON numbers (the API's counters stay below 2^53). Both numbers and strings are read.
//   - Lists, numbers and booleans are always written, also when empty, zero or false; empty strings and messages
//     that are not set are left out. Members come in the order of the protos.
//
// Members the message does not have are an error, never passed over, so that a misspelt one is noticed.
//
//	text, err := jsoncodec.Append(nil, message)
//	err := jsoncodec.Unmarshal(text, message)
//
// [Connect] and [REST] wrap the two for Connect and for Vanguard. The package does not change binary encodings.
package jsoncodec

import (
	"fmt"

	"connectrpc.com/connect"
	"connectrpc.com/vanguard"
	"google.golang.org/protobuf/proto"
)

// Names of the codec in content types.
const (
	Name        = "json"
	NameCharset = "json; charset=utf-8"
)

// Connect is the codec for Connect's handlers and clients. Register one for each of the two names.
type Connect struct {
	name string
}

var _ connect.Codec = Connect{}

// NewConnect returns a codec of the given name.
func NewConnect(name string) Connect { return Connect{name: name} }

// Name returns the codec's name in content types.
func (c Connect) Name() string { return c.name }

// Marshal returns the JSON of a Protobuf message.
func (c Connect) Marshal(message any) ([]byte, error) { return c.MarshalAppend(nil, message) }

// MarshalAppend appends the JSON of a Protobuf message.
func (c Connect) MarshalAppend(dst []byte, message any) ([]byte, error) {
	m, ok := message.(proto.Message)
	if !ok {
		return nil, fmt.Errorf("write JSON: %T is not a Protobuf message", message)
	}
	return Append(dst, m)
}

// MarshalStable is Marshal: the output depends on the message alone.
func (c Connect) MarshalStable(message any) ([]byte, error) { return c.Marshal(message) }

// IsBinary says that JSON may stand in a URL as it is.
func (c Connect) IsBinary() bool { return false }

// Unmarshal reads JSON into a Protobuf message.
func (c Connect) Unmarshal(data []byte, message any) error {
	m, ok := message.(proto.Message)
	if !ok {
		return fmt.Errorf("read JSON: %T is not a Protobuf message", message)
	}
	return Unmarshal(data, m)
}

// REST is the codec for Vanguard's transcoder.
type REST struct{}

var _ vanguard.StableCodec = REST{}

// NewREST returns the codec.
func NewREST() REST { return REST{} }

// Name returns the codec's name.
func (REST) Name() string { return Name }

// MarshalAppend appends the JSON of a message.
func (REST) MarshalAppend(dst []byte, m proto.Message) ([]byte, error) { return Append(dst, m) }

// MarshalAppendStable is MarshalAppend: the output depends on the message alone.
func (REST) MarshalAppendStable(dst []byte, m proto.Message) ([]byte, error) { return Append(dst, m) }

// IsBinary says that JSON may stand in a URL as it is.
func (REST) IsBinary() bool { return false }

// Unmarshal reads JSON into a message.
func (REST) Unmarshal(data []byte, m proto.Message) error { return Unmarshal(data, m) }
