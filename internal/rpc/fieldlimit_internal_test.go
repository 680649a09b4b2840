package rpc

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/config"
	"github.com/signalbox-dev/signalbox/internal/rpc/jsoncodec"
	"github.com/signalbox-dev/signalbox/internal/rpc/permission"
)

// fields returns the lists, maps and texts of all requests of the API, also those within other messages.
func fields(t *testing.T) (all []protoreflect.FieldDescriptor) {
	t.Helper()
	seen := map[protoreflect.FullName]bool{}
	var walk func(m protoreflect.MessageDescriptor)
	walk = func(m protoreflect.MessageDescriptor) {
		if seen[m.FullName()] {
			return
		}
		seen[m.FullName()] = true
		for i := range m.Fields().Len() {
			f := m.Fields().Get(i)
			switch {
			case f.IsMap() && f.MapValue().Message() != nil:
				walk(f.MapValue().Message())
			case f.Message() != nil && !f.IsMap():
				walk(f.Message())
			}
			if f.IsList() || f.IsMap() || f.Kind() == protoreflect.StringKind || f.Kind() == protoreflect.BytesKind {
				all = append(all, f)
			}
		}
	}
	for _, rule := range permission.Table() {
		name := strings.ReplaceAll(strings.TrimPrefix(rule.Procedure, "/"), "/", ".")
		method, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(name))
		require.NoError(t, err)
		walk(method.(protoreflect.MethodDescriptor).Input())
	}
	return all
}

func TestEveryFieldOfEveryRequestHasALimit(t *testing.T) {
	t.Parallel()
	all, table := fields(t), newFieldTable()
	require.Greater(t, len(all), 200)
	for _, f := range all {
		limit, ok := table.of(f)
		require.True(t, ok, "%s has no limit: add it to the table", f.FullName())
		if f.IsList() || f.IsMap() {
			require.NotZero(t, limit.Count, "%s has no limit of elements", f.FullName())
		}
		if f.Message() == nil || f.IsMap() {
			require.NotZero(t, limit.Bytes, "%s has no limit of bytes", f.FullName())
		}
		require.False(t, limit.Set && f.IsMap(), "%s is a map", f.FullName())
	}
}

func TestFieldOverItsLimitIsRefused(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 4097)
	labels := map[string]string{}
	for i := range 51 {
		labels[strings.Repeat("a", i+1)] = "x"
	}
	for field, m := range map[string]proto.Message{
		"filter.statuses has 20000 elements: at most 50 are allowed": &signalboxv1.ListRunsRequest{
			Filter: &signalboxv1.RunFilter{Statuses: slices.Repeat([]string{"failed"}, 20_000)}},
		"filter.statuses[1] has 4097 bytes: at most 256 are allowed": &signalboxv1.ListRunsRequest{
			Filter: &signalboxv1.RunFilter{Statuses: []string{"failed", long}}},
		"filter.statuses has 51 elements: at most 50 are allowed": &signalboxv1.StartBatchRequest{
			Filter: &signalboxv1.RunFilter{Statuses: slices.Repeat([]string{"failed"}, 51)}},
		"labels has 51 elements: at most 50 are allowed": &signalboxv1.StartRunRequest{Labels: labels},
		"labels has 4097 bytes: at most 4096 are allowed": &signalboxv1.StartRunRequest{
			Labels: map[string]string{"a": long}},
		"project has 4097 bytes: at most 4096 are allowed": &signalboxv1.GetRunRequest{Project: long},
		"events[1].id has 4097 bytes: at most 4096 are allowed": &signalboxv1.PublishEventsRequest{
			Events: []*signalboxv1.CloudEvent{{}, {Id: long}}},
		"runIds has 10001 elements: at most 10000 are allowed": &signalboxv1.StartBatchRequest{
			RunIds: make([]string, 10_001)},
		"topics has 51 elements: at most 50 are allowed": &signalboxv1.WatchRequest{
			Topics: make([]*signalboxv1.WatchTopic, 51)},
		"pageToken has 8193 bytes: at most 8192 are allowed": &signalboxv1.ListRunsRequest{PageToken: long + long[1:]},
	} {
		err := newFieldTable().checkRequest(m)
		require.EqualError(t, err, field)
		f, _ := apperror.From(err)
		require.Equal(t, apperror.Invalid, f.Class)
		require.Equal(t, strings.Fields(field)[0], f.Fields[0].Path)
	}
}

func TestSetLosesDuplicates(t *testing.T) {
	t.Parallel()
	m := &signalboxv1.ListRunsRequest{
		Filter: &signalboxv1.RunFilter{Statuses: []string{"failed", "running", "failed", "running", "completed"}}}
	require.NoError(t, newFieldTable().checkRequest(m))
	require.Equal(t, []string{"failed", "running", "completed"}, m.GetFilter().GetStatuses())
	columns := &signalboxv1.ViewQuery{Columns: []string{"a", "b", "a"}}
	require.NoError(t, newFieldTable().checkRequest(columns))
	require.Equal(t, []string{"a", "b", "a"}, columns.GetColumns(), "the order of columns has a meaning")
	require.NoError(t, newFieldTable().checkRequest(&signalboxv1.ValidateWorkflowRequest{Source: strings.Repeat("a", 1<<20)}))
}

// TestElementsAreCountedBeforeTheyAreDecoded: an element of two bytes takes hundreds of bytes once it is decoded.
func TestElementsAreCountedBeforeTheyAreDecoded(t *testing.T) {
	t.Parallel()
	message := func() *signalboxv1.PublishEventsRequest { return &signalboxv1.PublishEventsRequest{} }
	events := func(n int) (binary, json []byte) {
		m := message()
		for range n {
			m.Events = append(m.Events, &signalboxv1.CloudEvent{})
		}
		binary, err := proto.Marshal(m)
		require.NoError(t, err)
		return binary, []byte(`{"events":[` + strings.TrimSuffix(strings.Repeat(`{},`, n), ",") + `]}`)
	}
	binary, json := events(config.MaxEventBatch)
	require.NoError(t, binaryCodec{}.Unmarshal(binary, message()))
	require.NoError(t, jsonCodec{jsoncodec.NewConnect("json")}.Unmarshal(json, message()))
	binary, json = events(config.MaxEventBatch + 1)
	for _, read := range []func(m *signalboxv1.PublishEventsRequest) error{
		func(m *signalboxv1.PublishEventsRequest) error { return binaryCodec{}.Unmarshal(binary, m) },
		func(m *signalboxv1.PublishEventsRequest) error {
			return jsonCodec{jsoncodec.NewConnect("json")}.Unmarshal(json, m)
		},
	} {
		m := message()
		require.EqualError(t, read(m), "events has more than 10000 elements")
		require.Empty(t, m.GetEvents())
	}

	read := func(text string) error {
		return jsonCodec{jsoncodec.NewConnect("json")}.Unmarshal([]byte(text), &signalboxv1.StartRunRequest{})
	}
	require.NoError(t, read(`{"project":"p","input":[`+strings.Repeat("{},", 20_000)+`{}]}`), "an input is data")
	require.ErrorContains(t, read(`{"labels":{`+strings.Repeat(`"a":"b",`, 10_000)+`"a":"b"}}`),
		"labels has more than 10000")
}

// TestWhatIsNoMessageIsLeftToTheDecoder checks that the count ends at what it cannot read.
func TestWhatIsNoMessageIsLeftToTheDecoder(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "null", "[", "{", `{"events"`, `{"events":`, `{"events":[`, `{"events":[1 2]}`, `{"events":{"a":1}}`,
		`{"events":"x","project":3}`,
		`{"events":[[[]]]}`, `{"events":null}`, `{"events":[null,{"id":}]}`, `{"x":[1 2],"events":[]}`,
		`{"events":[{"time":"2026"},]}`, "\x12\x00\x12", "\x12\xff\xff\xff\xff\x0f",
	} {
		for _, err := range []error{
			jsonCodec{jsoncodec.NewConnect("json")}.Unmarshal([]byte(text), &signalboxv1.PublishEventsRequest{}),
			binaryCodec{}.Unmarshal([]byte(text), &signalboxv1.PublishEventsRequest{}),
		} {
			if err != nil {
				require.NotContains(t, err.Error(), "elements", text)
			}
		}
	}
}
