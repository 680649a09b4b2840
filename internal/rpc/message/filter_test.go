package message_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/timestamppb"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/rpc/message"
	"github.com/signalbox-dev/signalbox/internal/run"
)

// full returns a filter with a value of its own in each field.
func full(t *testing.T) *signalboxv1.RunFilter {
	t.Helper()
	f := &signalboxv1.RunFilter{}
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

// Each condition of the API's message reaches the filter of the store, is stored by batches and views, and returns to
// the message.
func TestFilterHasEveryCondition(t *testing.T) {
	t.Parallel()
	want := full(t)
	f, err := message.FilterOf(want, "")
	require.NoError(t, err)
	stored, err := json.Marshal(f)
	require.NoError(t, err)
	var read run.Filter
	require.NoError(t, json.Unmarshal(stored, &read))
	got := message.RunFilter(read)
	fields := want.ProtoReflect().Descriptor().Fields()
	for i := range fields.Len() {
		field := fields.Get(i)
		require.True(t, want.ProtoReflect().Get(field).Equal(got.ProtoReflect().Get(field)), "%s: %s", field.Name(), stored)
	}
	for field, value := range reflect.ValueOf(f).Fields() {
		// of a list
		if !slices.Contains([]string{"Project", "RequestID", "IDs", "OldestFirst", "After", "Limit"}, field.Name) {
			require.False(t, value.IsZero(), "the message has no condition %s", field.Name)
		}
	}
	none, err := message.FilterOf(nil, "")
	require.NoError(t, err)
	require.Zero(t, none)
}
