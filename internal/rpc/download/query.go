package download

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/signalbox-dev/signalbox/internal/fault"
	"github.com/signalbox-dev/signalbox/internal/rpc/body"
	"github.com/signalbox-dev/signalbox/internal/rpc/fail"
	"github.com/signalbox-dev/signalbox/internal/rpc/route"
)

// read returns the request message of what path and query give: fields by either of their names, lists by repetition.
func (m method) read(r *http.Request, match route.Match) (proto.Message, *connect.Error) {
	raw, problem := body.Read(r, 1)
	if problem != nil || len(raw) > 0 {
		return nil, body.Bad("a download takes none")
	}
	query, err := match.Check(r.URL.RawQuery, nil)
	if err != nil {
		problem, _ := fail.Error(err)
		return nil, problem
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
			return nil, fail.New(connect.CodeInvalidArgument, fault.InvalidArgument, fmt.Sprintf("request: there is no parameter %q", p.Name))
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
		return nil, fail.Internal()
	}
	message := m.request.New().Interface()
	if err := protojson.Unmarshal(text, message); err != nil {
		_, why, _ := strings.Cut(err.Error(), "): ")
		return nil, fail.New(connect.CodeInvalidArgument, fault.InvalidArgument, "request: "+why)
	}
	return message, nil
}

// memberOf returns a value as the JSON of a message has it, where every type but a truth value may be a string. Of a truth value
// [route.Match.Check] has accepted "true" and "false" only.
func memberOf(field protoreflect.FieldDescriptor, value string) any {
	if field.Kind() == protoreflect.BoolKind {
		return value == "true"
	}
	return value
}
