// Package jsoncodec is the JSON encoding of the API, for Connect, REST and every program that prints an API message.
//
// It is the JSON mapping of Protobuf with three differences that people and tools expect:
//
//   - signalbox.v1.JsonValue is inline, digit for digit: `"input": {"n": 12345678901234567890}`. A missing member, null
//     and {} are
//     distinct: no message, the JSON null, and an empty object.
//   - 64-bit integers are JSON numbers (the API's counters stay below 2^53). Both numbers and strings are read.
//   - Lists, numbers and booleans are always written, also when empty, zero or false; empty strings and unset messages
//     are
//     omitted. Members are in the order of the protos.
//
// Unknown members are an error, never ignored, so that misspelled ones are detected.
//
//	text, err := jsoncodec.Append(nil, message)
//	err := jsoncodec.Unmarshal(text, message)
//
// [Connect] wraps the two functions for Connect. The package does not change binary encodings.
package jsoncodec

import (
	"fmt"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
)

// Names of the codec in content types.
const (
	Name        = "json"
	NameCharset = "json; charset=utf-8"
)

// Connect is the codec for Connect's handlers and clients. Register one under each of the two names.
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

// MarshalStable equals Marshal: the output depends only on the message.
func (c Connect) MarshalStable(message any) ([]byte, error) { return c.Marshal(message) }

// IsBinary returns false: JSON can be placed in a URL.
func (c Connect) IsBinary() bool { return false }

// Unmarshal reads JSON into a Protobuf message.
func (c Connect) Unmarshal(data []byte, message any) error {
	m, ok := message.(proto.Message)
	if !ok {
		return fmt.Errorf("read JSON: %T is not a Protobuf message", message)
	}
	return Unmarshal(data, m)
}
