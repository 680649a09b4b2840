package jsoncodec_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/signalbox-dev/signalbox/internal/rpc/jsoncodec"
)

// everyKind describes a message with a field of every kind, a list and a map of JsonValue, and itself.
func everyKind(t *testing.T) protoreflect.MessageDescriptor {
	t.Helper()
	const valueType = ".signalbox.v1.JsonValue"
	message := &descriptorpb.DescriptorProto{Name: new("Every")}
	add := func(name string, kind descriptorpb.FieldDescriptorProto_Type, label descriptorpb.FieldDescriptorProto_Label,
		typeName string) {
		field := &descriptorpb.FieldDescriptorProto{
			Name: new(name), Number: new(int32(len(message.Field) + 1)), Type: kind.Enum(), Label: label.Enum(),
			JsonName: new(name),
		}
		if typeName != "" {
			field.TypeName = new(typeName)
		}
		message.Field = append(message.Field, field)
	}
	const one, many = descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL, descriptorpb.FieldDescriptorProto_LABEL_REPEATED
	for number := int32(1); number <= 18; number++ {
		kind := descriptorpb.FieldDescriptorProto_Type(number)
		switch kind {
		case descriptorpb.FieldDescriptorProto_TYPE_GROUP, descriptorpb.FieldDescriptorProto_TYPE_MESSAGE:
		case descriptorpb.FieldDescriptorProto_TYPE_ENUM:
			add("colour", kind, one, ".every.Colour")
		default:
			add(strings.ToLower(strings.TrimPrefix(kind.String(), "TYPE_")), kind, one, "")
		}
	}
	add("values", descriptorpb.FieldDescriptorProto_TYPE_MESSAGE, many, valueType)
	add("named", descriptorpb.FieldDescriptorProto_TYPE_MESSAGE, many, ".every.Every.NamedEntry")
	add("self", descriptorpb.FieldDescriptorProto_TYPE_MESSAGE, one, ".every.Every")
	message.NestedType = []*descriptorpb.DescriptorProto{{
		Name: new("NamedEntry"), Options: &descriptorpb.MessageOptions{MapEntry: new(true)},
		Field: []*descriptorpb.FieldDescriptorProto{
			{Name: new("key"), Number: new(int32(1)), Type: descriptorpb.FieldDescriptorProto_TYPE_STRING.Enum(),
				Label: one.Enum()},
			{Name: new("value"), Number: new(int32(2)), Type: descriptorpb.FieldDescriptorProto_TYPE_MESSAGE.Enum(),
				Label: one.Enum(), TypeName: new(valueType)},
		},
	}}
	file, err := protodesc.NewFile(&descriptorpb.FileDescriptorProto{
		Name: new("every.proto"), Package: new("every"), Syntax: new("proto3"),
		Dependency:  []string{"signalbox/v1/types.proto"},
		MessageType: []*descriptorpb.DescriptorProto{message},
		EnumType: []*descriptorpb.EnumDescriptorProto{{Name: new("Colour"), Value: []*descriptorpb.EnumValueDescriptorProto{
			{Name: new("NONE"), Number: new(int32(0))}, {Name: new("RED"), Number: new(int32(1))},
		}}},
	}, protoregistry.GlobalFiles)
	require.NoError(t, err)
	return file.Messages().ByName("Every")
}

func TestEveryKindIsWrittenAndRead(t *testing.T) {
	t.Parallel()
	d := everyKind(t)
	const text = `{"double":1.5,"float":0.25,"int64":-9007199254740993,"uint64":18446744073709551615,"int32":-3,"fixed64":4,"fixed32":5,` +
		`"bool":true,"string":"é","bytes":"AAH/","uint32":6,"colour":"RED","sfixed32":-7,"sfixed64":-8,"sint32":-9,"sint64":-10,` +
		`"values":[null,{},1.10],"named":{"a":[1],"b":null}`
	const full = text + `,"self":` + text + `}}`
	m := dynamicpb.NewMessage(d)
	require.NoError(t, jsoncodec.Unmarshal([]byte(full), m))
	written, err := jsoncodec.Append(nil, m)
	require.NoError(t, err)
	require.Equal(t, full, string(written))

	unknown := dynamicpb.NewMessage(d)
	require.NoError(t, jsoncodec.Unmarshal([]byte(`{"colour":7}`), unknown))
	written, err = jsoncodec.Append(nil, unknown)
	require.NoError(t, err)
	require.Contains(t, string(written), `"colour":7,`)

	again := dynamicpb.NewMessage(d)
	require.NoError(t, jsoncodec.Unmarshal(written, again))
	require.True(t, proto.Equal(unknown, again))
}

func TestUnmarshalMatchesProtojson(t *testing.T) {
	t.Parallel()
	d := everyKind(t)
	for _, text := range []string{
		`{"int64":"5","bool":true}`, `{"double":"Infinity"}`, `{"colour":"BLUE"}`, `{"int32":1.5}`, `{"values":{}}`,
		`{"named":[]}`, `{"self":5}`} {
		ours, theirs := dynamicpb.NewMessage(d), dynamicpb.NewMessage(d)
		ourErr, theirErr := jsoncodec.Unmarshal([]byte(text), ours), protojson.Unmarshal([]byte(text), theirs)
		require.Equal(t, theirErr == nil, ourErr == nil, "%s: %v", text, ourErr)
		if theirErr == nil {
			require.True(t, proto.Equal(theirs, ours), text)
		}
	}
}
