package download

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/signalbox-dev/signalbox/internal/fault"
	"github.com/signalbox-dev/signalbox/internal/rpc/fail"
)

// read makes a request of what path and query say: fields by either of their names, lists by repetition.
func read(kind protoreflect.MessageType, query url.Values) (proto.Message, *connect.Error) {
	fields := kind.Descriptor().Fields()
	members := map[string]any{}
	for name, values := range query {
		field := fields.ByJSONName(name)
		if field == nil {
			field = fields.ByTextName(name)
		}
		if field == nil {
			return nil, fail.New(connect.CodeInvalidArgument, fault.InvalidArgument, fmt.Sprintf("request: there is no parameter %q", name))
		}
		var member []any
		for _, value := range values {
			member = append(member, memberOf(field, value))
		}
		if field.IsList() {
			members[field.JSONName()] = member
		} else {
			members[field.JSONName()] = member[len(member)-1]
		}
	}
	text, err := json.Marshal(members)
	if err != nil {
		return nil, fail.Internal()
	}
	message := kind.New().Interface()
	if err := protojson.Unmarshal(text, message); err != nil {
		_, why, _ := strings.Cut(err.Error(), "): ")
		return nil, fail.New(connect.CodeInvalidArgument, fault.InvalidArgument, "request: "+why)
	}
	return message, nil
}

// memberOf is a value as the JSON of a message has it: but for truth values, a text does.
func memberOf(field protoreflect.FieldDescriptor, value string) any {
	if field.Kind() == protoreflect.BoolKind {
		if truth, err := strconv.ParseBool(value); err == nil {
			return truth
		}
	}
	return value
}
