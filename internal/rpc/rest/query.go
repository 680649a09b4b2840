package rest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/rpc/apierror"
)

// read builds the request message from path and query: fields by either of their names, lists by repetition.
func (m method) read(r *http.Request, match Match) (proto.Message, *connect.Error) {
	raw, failure := ReadBody(r, 1)
	if failure != nil || len(raw) > 0 {
		return nil, BadBody("a download takes none")
	}
	query, err := match.Check(r.URL.RawQuery, nil)
	if err != nil {
		failure, _ := apierror.Error(err)
		return nil, failure
	}
	fields := m.request.Descriptor().Fields()
	members, lists := map[string]any{}, map[string][]any{}
	for _, v := range match.Variables {
		members[v.Field.JSONName()] = v.Value
	}
	for _, p := range query {
		field := fields.ByJSONName(p.Name)
		if field == nil {
			field = fields.ByTextName(p.Name)
		}
		if field == nil {
			return nil, apierror.New(connect.CodeInvalidArgument, apperror.InvalidArgument, fmt.Sprintf("request: there is no parameter %q", p.Name))
		}
		name := field.JSONName()
		members[name] = memberOf(field, p.Value)
		if field.IsList() {
			lists[name] = append(lists[name], members[name])
			members[name] = lists[name]
		}
	}
	text, err := json.Marshal(members)
	if err != nil {
		return nil, apierror.InternalError()
	}
	message := m.request.New().Interface()
	if err := protojson.Unmarshal(text, message); err != nil {
		_, why, _ := strings.Cut(err.Error(), "): ")
		return nil, apierror.New(connect.CodeInvalidArgument, apperror.InvalidArgument, "request: "+why)
	}
	return message, nil
}

// memberOf returns a value in the JSON form of a message, in which every type but bool may be a string. For bool,
// [Match.Check] has accepted only "true" and "false".
func memberOf(field protoreflect.FieldDescriptor, value string) any {
	if field.Kind() == protoreflect.BoolKind {
		return value == "true"
	}
	return value
}
