package jsoncodec_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/timestamppb"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/rpc/jsoncodec"
)

func value(text string) *signalboxv1.JsonValue { return &signalboxv1.JsonValue{Json: text} }

func TestAppend(t *testing.T) {
	t.Parallel()
	detail, err := anypb.New(&errdetails.ErrorInfo{Reason: "R", Domain: "d"})
	require.NoError(t, err)
	tests := map[string]struct {
		message proto.Message
		want    string
	}{
		"defaults": {
			&signalboxv1.ListRunsResponse{},
			`{"runs":[]}`,
		},
		"numbers and booleans always, empty text and unset messages never": {
			&signalboxv1.StartRunResponse{Run: &signalboxv1.Run{Id: "r", StepsTotal: 9007199254740993}},
			`{"run":{"id":"r","cancelRequested":false,"stepsTotal":9007199254740993,"stepsDone":0,"sequence":0,"replays":[],"depth":0,"generation":0,"children":[],"redacted":false,"controls":[],"waits":[],"moreWaits":false,"controlStates":[],"labels":{},"warnings":[]},"created":false}`,
		},
		"times": {
			&signalboxv1.Attempt{Number: 1, StartTime: timestamppb.New(time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC))},
			`{"number":1,"startTime":"2026-01-02T03:04:05.000006Z"}`,
		},
		"inline values, digit for digit": {
			&signalboxv1.StartRunRequest{Workflow: "a", Input: value(` { "n" : 12345678901234567890, "x":1.10, "e":1E400 } `)},
			`{"workflow":"a","input":{"n":12345678901234567890,"x":1.10,"e":1E400},"dryRun":false,"labels":{}}`,
		},
		"inline null": {&signalboxv1.StartRunRequest{Input: value("null")},
			`{"input":null,"dryRun":false,"labels":{}}`},
		"inline empty object": {&signalboxv1.StartRunRequest{Input: value("{}")}, `{"input":{},"dryRun":false,"labels":{}}`},
		"inline nothing":      {&signalboxv1.StartRunRequest{Input: value("")}, `{"input":null,"dryRun":false,"labels":{}}`},
		"inline at the top":   {value("[1, 2]"), `[1,2]`},
		"text as it is": {&signalboxv1.Violation{Message: "a < b && \"c\"\n\u2028"},
			`{"message":"a < b && \"c\"\n\u2028","line":0,"column":0}`},
		"types of others": {
			&status.Status{Code: 3, Message: "m", Details: []*anypb.Any{detail}},
			`{"code":3,"message":"m","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"R","domain":"d"}]}`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := jsoncodec.Append([]byte("> "), test.message)
			require.NoError(t, err)
			require.Equal(t, "> "+test.want, string(got))
			require.True(t, json.Valid(got[2:]))
		})
	}
	_, err = jsoncodec.Append(nil, &signalboxv1.StartRunRequest{Input: value("{")})
	require.ErrorContains(t, err, "valid JSON")
}

func TestUnmarshal(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		text string
		want proto.Message
	}{
		"absent":       {`{"workflow":"a"}`, &signalboxv1.StartRunRequest{Workflow: "a"}},
		"null":         {`{"input":null}`, &signalboxv1.StartRunRequest{Input: value("null")}},
		"empty object": {`{"input": {} }`, &signalboxv1.StartRunRequest{Input: value("{}")}},
		"kept as it is": {`{"input": {"b": 1.10 , "a":"\u00e9"}}`,
			&signalboxv1.StartRunRequest{Input: value(`{"b": 1.10 , "a":"\u00e9"}`)}},
		"scalar":         {`{"input":7,"workflow":"a"}`, &signalboxv1.StartRunRequest{Workflow: "a", Input: value("7")}},
		"text":           {`{"input":"a \" b"}`, &signalboxv1.StartRunRequest{Input: value(`"a \" b"`)}},
		"proto names":    {`{"request_id":"r"}`, &signalboxv1.StartRunRequest{RequestId: "r"}},
		"number":         {`{"afterSequence":5}`, &signalboxv1.WatchRunRequest{AfterSequence: 5}},
		"number as text": {`{"afterSequence":"5"}`, &signalboxv1.WatchRunRequest{AfterSequence: 5}},
		"in a list": {
			`{"run":null,"steps":[{"number":1,"input":[1]},{"number":2,"output":false}]}`,
			&signalboxv1.WatchRunResponse{
				Steps: []*signalboxv1.Step{{Number: 1, Input: value("[1]")}, {Number: 2, Output: value("false")}}},
		},
		"no list":    {`{"steps":null}`, &signalboxv1.WatchRunResponse{}},
		"at the top": {` [1] `, value("[1]")},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := test.want.ProtoReflect().New().Interface()
			require.NoError(t, jsoncodec.Unmarshal([]byte(test.text), got))
			require.True(t, proto.Equal(test.want, got), "%v", got)
		})
	}
}

func TestUnmarshalErrorsHavePositions(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ text, says string }{
		"empty":                        {"  \n", "at least {}"},
		"not UTF-8":                    {"{\"workflow\":\"\xc0\"}", "UTF-8"},
		"cut off":                      {`{"workflow":"a`, "ends before it is complete"},
		"cut off in a value":           {`{"input":{"a":`, "ends before it is complete"},
		"wrong value":                  {`{"input":{"a":nope}}`, "(line 1:16): not JSON: "},
		"list":                         {`[]`, "unexpected token ["},
		"unknown":                      {`{"inptu":{}}`, `(line 1:2): unknown field "inptu"`},
		"unknown after a value":        {`{"input":{"a":[1,2,3]},"inptu":1}`, `(line 1:24): unknown field "inptu"`},
		"unknown after lines of value": {"{\"input\":{\n\"a\":1\n},\n \"inptu\":1}", `(line 4:2): unknown field "inptu"`},
		"wrong kind after a value":     {`{"input":{"a":"é"},"version":true}`, "invalid value for string field version"},
		"twice":                        {`{"input":1,"input":2}`, "duplicate field"},
		"more after it":                {`{"input":1} x`, "x"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := jsoncodec.Unmarshal([]byte(test.text), &signalboxv1.StartRunRequest{})
			require.ErrorContains(t, err, test.says)
			require.NotContains(t, err.Error(), "proto:")
			require.NotContains(t, err.Error(), "\u00a0")
			require.NotContains(t, err.Error(), "\n")
		})
	}
}

func TestCodecsRejectNonMessages(t *testing.T) {
	t.Parallel()
	codec := jsoncodec.NewConnect(jsoncodec.Name)
	_, err := codec.Marshal("text")
	require.ErrorContains(t, err, "string")
	require.ErrorContains(t, codec.Unmarshal([]byte("{}"), 5), "int")
	require.Equal(t, "json", codec.Name())
	require.Equal(t, "json; charset=utf-8", jsoncodec.NewConnect(jsoncodec.NameCharset).Name())
	require.False(t, codec.IsBinary())
	stable, err := codec.MarshalStable(value("[ 1 ]"))
	require.NoError(t, err)
	require.Equal(t, "[1]", string(stable))
}

// FuzzRoundTrip: any JSON value passes through a message unchanged, and everything that can be read can be written and
// read again.
func FuzzRoundTrip(f *testing.F) {
	for _, seed := range []string{
		`{}`, `null`, `[1,{"a":1e5}]`, `"\ud800"`, `12345678901234567890`, ` {"a" : "b"} `, `{"a":`, "\xff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		sent := `{"workflow":"w","input":` + text + `,"version":"1"}`
		var m signalboxv1.StartRunRequest
		if err := jsoncodec.Unmarshal([]byte(sent), &m); err != nil {
			require.NotEmpty(t, err.Error())
			return
		}
		require.True(t, json.Valid([]byte(sent)), "only JSON is read")
		if m.GetInput() != nil && json.Valid([]byte(text)) {
			require.Equal(t, strings.TrimSpace(text), m.GetInput().GetJson())
		}
		written, err := jsoncodec.Append(nil, &m)
		require.NoError(t, err)
		var again signalboxv1.StartRunRequest
		require.NoError(t, jsoncodec.Unmarshal(written, &again), "%s", written)
		rewritten, err := jsoncodec.Append(nil, &again)
		require.NoError(t, err)
		require.Equal(t, string(written), string(rewritten))
	})
}
