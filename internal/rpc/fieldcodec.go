package rpc

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/signalbox-dev/signalbox/internal/batch"
	"github.com/signalbox-dev/signalbox/internal/config"
	"github.com/signalbox-dev/signalbox/internal/rpc/jsoncodec"
)

const (
	// mostElements is the number of elements of a list or map to which a request is decoded: the highest limit of the
	// table.
	mostElements = max(batch.MaxIDs, config.MaxEventBatch)
	// maxDepth is the depth of messages within messages to which elements are counted. No request is as deep.
	maxDepth = 20
)

// counted checks the number of elements of a list or map so far.
func counted(name string, n int) error {
	if n > mostElements {
		return fmt.Errorf("%s has more than %d elements", name, mostElements)
	}
	return nil
}

// mayExceed reports whether a request may have more elements in a list or map: each takes two bytes or more, in JSON,
// too.
func mayExceed(data []byte) bool { return len(data) > 2*mostElements }

// checkBinary counts the elements of the lists and maps in the binary form of a message before it is decoded: one of
// two bytes takes hundreds of bytes of memory afterwards. What cannot be read is left to the decoder.
func checkBinary(data []byte, d protoreflect.MessageDescriptor, prefix string, depth int) error {
	counts := map[protoreflect.FieldNumber]int{}
	for len(data) > 0 && depth > 0 {
		number, kind, n := protowire.ConsumeTag(data)
		if n < 0 {
			return nil
		}
		data = data[n:]
		if n = protowire.ConsumeFieldValue(number, kind, data); n < 0 {
			return nil
		}
		value := data[:n]
		data = data[n:]
		field := d.Fields().ByNumber(number)
		if field == nil || kind != protowire.BytesType {
			continue
		}
		name := prefix + field.JSONName()
		if field.IsList() || field.IsMap() {
			counts[number]++
			if err := counted(name, counts[number]); err != nil {
				return err
			}
		}
		if field.Message() == nil {
			continue
		}
		content, _ := protowire.ConsumeBytes(value)
		if err := checkBinary(content, field.Message(), name+".", depth-1); err != nil {
			return err
		}
	}
	return nil
}

// checkJSON is checkBinary for the JSON of a message.
func checkJSON(data []byte, m proto.Message) error {
	if !mayExceed(data) {
		return nil
	}
	return jsoncodec.Elements(data, m.ProtoReflect().Descriptor(), counted)
}

// binaryCodec is Connect's codec of binary messages, which counts the elements of lists and maps before it decodes a
// message.
type binaryCodec struct{}

// Name returns the codec's name in content types.
func (binaryCodec) Name() string { return "proto" }

// IsBinary returns true.
func (binaryCodec) IsBinary() bool { return true }

// Marshal returns the binary form of a message.
func (b binaryCodec) Marshal(message any) ([]byte, error) { return b.MarshalAppend(nil, message) }

// MarshalAppend appends the binary form of a message.
func (binaryCodec) MarshalAppend(dst []byte, message any) ([]byte, error) {
	return marshal(dst, message, proto.MarshalOptions{})
}

// MarshalStable returns a binary form that depends only on the message.
func (binaryCodec) MarshalStable(message any) ([]byte, error) {
	return marshal(nil, message, proto.MarshalOptions{Deterministic: true})
}

func marshal(dst []byte, message any, options proto.MarshalOptions) ([]byte, error) {
	m, ok := message.(proto.Message)
	if !ok {
		return nil, fmt.Errorf("write a binary message: %T is not a Protobuf message", message)
	}
	return options.MarshalAppend(dst, m)
}

// Unmarshal reads a message.
func (binaryCodec) Unmarshal(data []byte, message any) error {
	m, ok := message.(proto.Message)
	if !ok {
		return fmt.Errorf("read a binary message: %T is not a Protobuf message", message)
	}
	if mayExceed(data) {
		if err := checkBinary(data, m.ProtoReflect().Descriptor(), "", maxDepth); err != nil {
			return err
		}
	}
	return proto.Unmarshal(data, m)
}

// jsonCodec is Connect's codec of JSON under one of its names, which counts as [binaryCodec] does.
type jsonCodec struct{ jsoncodec.Connect }

// Unmarshal reads a message.
func (j jsonCodec) Unmarshal(data []byte, message any) error {
	if m, ok := message.(proto.Message); ok {
		if err := checkJSON(data, m); err != nil {
			return err
		}
	}
	return j.Connect.Unmarshal(data, message)
}
