package message_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/timestamppb"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/rpc/message"
	"github.com/signalbox-dev/signalbox/internal/rpc/selection"
	"github.com/signalbox-dev/signalbox/internal/run"
)

// full returns a filter with a value of its own in each field.
func full(t *testing.T) *signalboxv1.BatchFilter {
	t.Helper()
	f := &signalboxv1.BatchFilter{}
	m := f.ProtoReflect()
	for i := range m.Descriptor().Fields().Len() {
		field := m.Descriptor().Fields().Get(i)
		text := protoreflect.ValueOfString(fmt.Sprintf("key%d=%s", i, field.Name()))
		switch {
		case field.IsList():
			m.Mutable(field).List().Append(text)
		case field.Kind() == protoreflect.StringKind:
			m.Set(field, text)
		case field.Kind() == protoreflect.BoolKind:
			m.Set(field, protoreflect.ValueOfBool(true))
		case field.Kind() == protoreflect.MessageKind && field.Message().FullName() == "google.protobuf.Timestamp":
			m.Set(field, protoreflect.ValueOfMessage((&timestamppb.Timestamp{Seconds: int64(i + 1)}).ProtoReflect()))
		default:
			require.Fail(t, "a field of another type", field.Name())
		}
	}
	return f
}

// Each condition of the API's messages reaches the filter of the store from each message that selects runs, is stored by batches and views,
// and returns to the messages.
func TestMessagesCarryEveryCondition(t *testing.T) {
	t.Parallel()
	want := full(t)
	for _, m := range []proto.Message{
		&signalboxv1.ListRunsRequest{}, &signalboxv1.CountRunsRequest{}, &signalboxv1.ExportRunsRequest{}, &signalboxv1.ViewQuery{}, &signalboxv1.BatchFilter{},
	} {
		selection.Copy(m, want)
		require.True(t, proto.Equal(want, selection.Of(m)), "%T", m)
		f, err := message.FilterOf(m, "")
		require.NoError(t, err)
		stored, err := json.Marshal(f)
		require.NoError(t, err)
		var read run.Filter
		require.NoError(t, json.Unmarshal(stored, &read))
		got := message.Conditions(read)
		slices.Sort(got.GetLabels())
		require.Equal(t, prototext.Format(want), prototext.Format(got), "%T: %s", m, stored)
		selection.Copy(m, &signalboxv1.BatchFilter{})
		require.Zero(t, proto.Size(m), "%T", m)
	}
	f, err := message.FilterOf(want, "")
	require.NoError(t, err)
	for field, value := range reflect.ValueOf(f).Fields() {
		if !slices.Contains([]string{"Project", "RequestID", "IDs", "OldestFirst", "After", "Limit"}, field.Name) { // of a list
			require.False(t, value.IsZero(), "no message has the condition %s", field.Name)
		}
	}
}
