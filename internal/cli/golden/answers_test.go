package golden_test

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"
	"google.golang.org/genproto/googleapis/api/httpbody"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	_ "github.com/signalbox-dev/signalbox/api/signalbox/v1" // registers the messages
)

// answers are what the API answers, by the name of the method: the response in the JSON of protobuf, or an error as
// "!CODE REASON message". A method without an answer is an error of the example. Paths that begin with "/" are no
// methods: their answer is the status and the body.
type answers map[string]string

// noAnswer is in the output of an example whose answers are not complete, or no answers.
const noAnswer = "the example has no answer of"

// serve starts an API that gives the answers, and returns its address.
func serve(t *testing.T, known answers, suffix string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Date", now().Format(http.TimeFormat)) // ages are by the server's clock
		if text, ok := known[r.URL.Path]; ok {
			status, body, _ := strings.Cut(text, " ")
			code := http.StatusOK
			_, _ = fmt.Sscan(status, &code) // the golden file shows another status
			w.WriteHeader(code)
			_, _ = w.Write([]byte(body)) // the command reports a broken connection
			return
		}
		if err := answer(w, r, known, suffix); err != nil {
			_ = connect.NewErrorWriter().Write(w, r, err) // as above
		}
	}))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

// answer writes the response of a method, or returns its error.
func answer(w http.ResponseWriter, r *http.Request, known answers, suffix string) error {
	name := path.Base(r.URL.Path)
	text, ok := known[name]
	if !ok {
		return connect.NewError(connect.CodeInternal, fmt.Errorf("%s %s", noAnswer, name))
	}
	if rest, failed := strings.CutPrefix(text, "!"); failed {
		return refusal(rest + suffix)
	}
	method, err := descriptor(r.URL.Path)
	if err != nil {
		return connect.NewError(connect.CodeInternal, err)
	}
	if method.IsStreamingServer() {
		return stream(w, method, text, suffix)
	}
	body, err := encode(method, text, suffix)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/proto")
	_, err = w.Write(body)
	return err
}

// refusal is an error in the form of the server.
func refusal(text string) error {
	words := strings.SplitN(text, " ", 3)
	var code connect.Code
	if err := code.UnmarshalText([]byte(words[0])); err != nil {
		return connect.NewError(connect.CodeInternal, err)
	}
	err := connect.NewError(code, errors.New(words[2]))
	if detail, detailErr := connect.NewErrorDetail(
		&errdetails.ErrorInfo{Reason: words[1], Domain: "signalbox"}); detailErr == nil {
		err.AddDetail(detail)
	}
	return err
}

func descriptor(procedure string) (protoreflect.MethodDescriptor, error) {
	name := protoreflect.FullName(strings.ReplaceAll(strings.TrimPrefix(procedure, "/"), "/", "."))
	found, err := protoregistry.GlobalFiles.FindDescriptorByName(name)
	if err != nil {
		return nil, err
	}
	method, ok := found.(protoreflect.MethodDescriptor)
	if !ok {
		return nil, fmt.Errorf("%s is no method", name)
	}
	return method, nil
}

// encode reads a response, and appends the suffix to its texts; a member that the message does not have is an error.
func encode(method protoreflect.MethodDescriptor, text, suffix string) ([]byte, error) {
	kind, err := protoregistry.GlobalTypes.FindMessageByName(method.Output().FullName())
	if err != nil {
		return nil, err
	}
	message := kind.New().Interface()
	if body, ok := message.(*httpbody.HttpBody); ok {
		body.Data = []byte(text + suffix)
	} else if err := protojson.Unmarshal([]byte(text), message); err != nil {
		return nil, connect.NewError(connect.CodeInternal, fmt.Errorf("%s %s: %w", noAnswer, method.Name(), err))
	}
	if suffix != "" {
		lengthen(message.ProtoReflect(), suffix)
	}
	return proto.Marshal(message)
}

// lengthen appends a suffix to the texts of a message. Tokens of pages stay, and words of the protocol, which commands
// wait for or compare.
func lengthen(m protoreflect.Message, suffix string) {
	kept := []protoreflect.Name{"next_page_token", "cursor", "status", "state", "kind"}
	text := func(v protoreflect.Value) protoreflect.Value { return protoreflect.ValueOfString(v.String() + suffix) }
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.FullName() == "signalbox.v1.JsonValue.json":
			quoted, _ := json.Marshal(suffix) // a text always encodes
			m.Set(f, protoreflect.ValueOfString(string(quoted)))
		case f.IsMap():
			v.Map().Range(func(k protoreflect.MapKey, value protoreflect.Value) bool {
				if f.MapValue().Kind() == protoreflect.StringKind {
					v.Map().Set(k, text(value))
				} else if f.MapValue().Message() != nil {
					lengthen(value.Message(), suffix)
				}
				return true
			})
		case f.IsList():
			for i := range v.List().Len() {
				if f.Kind() == protoreflect.StringKind {
					v.List().Set(i, text(v.List().Get(i)))
				} else if f.Message() != nil {
					lengthen(v.List().Get(i).Message(), suffix)
				}
			}
		case f.Message() != nil:
			lengthen(v.Message(), suffix)
		case f.Kind() == protoreflect.StringKind && !slices.Contains(kept, f.Name()):
			m.Set(f, text(v))
		}
		return true
	})
}

// stream writes the messages of a stream, which are separated by lines with "---". The last may be an error.
func stream(w http.ResponseWriter, method protoreflect.MethodDescriptor, text, suffix string) error {
	w.Header().Set("Content-Type", "application/connect+proto")
	const last = 2
	end := []byte("{}")
	for part := range strings.SplitSeq(text, "\n---\n") {
		if rest, failed := strings.CutPrefix(part, "!"); failed {
			words := strings.SplitN(rest, " ", 3)
			// texts always encode
			end, _ = json.Marshal(map[string]any{"error": map[string]string{"code": words[0], "message": words[2] + suffix}})
			break
		}
		body, err := encode(method, part, suffix)
		if err != nil {
			return err
		}
		if _, err := w.Write(framed(0, body)); err != nil {
			return err
		}
	}
	_, err := w.Write(framed(last, end))
	return err
}

// framed is a message of a stream of the protocol Connect.
func framed(flags byte, body []byte) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{flags}, uint32(len(body))), body...)
}

func TestAnswersAreChecked(t *testing.T) {
	t.Parallel()
	method, err := descriptor("/signalbox.v1.RunService/GetRun")
	require.NoError(t, err)
	_, err = encode(method, `{"run": {"id": "1"}}`, "")
	require.NoError(t, err)
	_, err = encode(method, `{"run": {"number": "1"}}`, "")
	require.ErrorContains(t, err, "number")
}
