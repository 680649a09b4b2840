package codec_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	failurepb "go.temporal.io/api/failure/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/proto"

	"github.com/signalbox-dev/signalbox/internal/engine/codec"
	"github.com/signalbox-dev/signalbox/internal/keyring"
)

const planted = "planted-secret"

func text(t *testing.T, m proto.Message) string {
	t.Helper()
	wire, err := proto.Marshal(m)
	require.NoError(t, err)
	return string(wire)
}

func TestPayloadsAreSealed(t *testing.T) {
	t.Parallel()
	ring := keyring.Random("k1")
	c := codec.Converter(ring)
	sealed, err := c.ToPayloads(map[string]string{"password": planted}, nil, []byte(planted))
	require.NoError(t, err)
	require.Len(t, sealed.GetPayloads(), 3)
	require.NotContains(t, text(t, sealed), planted)
	for _, p := range sealed.GetPayloads() {
		require.Equal(t, "binary/encrypted", string(p.GetMetadata()[converter.MetadataEncoding]))
		require.Equal(t, "k1", string(p.GetMetadata()["encryption-key-id"]))
	}
	var value map[string]string
	var none any
	var raw []byte
	require.NoError(t, c.FromPayloads(sealed, &value, &none, &raw))
	require.Equal(t, map[string]string{"password": planted}, value)
	require.Equal(t, planted, string(raw))

	other := codec.Converter(keyring.Random("k2"))
	var missing *keyring.MissingKeyError
	require.ErrorAs(t, other.FromPayloads(sealed, &value), &missing)
}

// Payloads from before there were keys, or from a ring that does not seal, are read as they are.
func TestPayloadsThatAreNotSealed(t *testing.T) {
	t.Parallel()
	ring := keyring.Random("k1")
	for name, plain := range map[string]converter.DataConverter{
		"before": converter.GetDefaultDataConverter(), "opening only": codec.Converter(ring.Opening()),
	} {
		p, err := plain.ToPayload("a text")
		require.NoError(t, err)
		require.Contains(t, text(t, p), "a text", name)
		var read string
		require.NoError(t, codec.Converter(ring).FromPayload(p, &read))
		require.Equal(t, "a text", read)
	}
	p, err := codec.Converter(ring).ToPayload("a text")
	require.NoError(t, err)
	var read string
	require.NoError(t, codec.Converter(ring.Opening()).FromPayload(p, &read), "sealed payloads are opened nevertheless")
	require.Equal(t, "a text", read)
}

func TestJSONIsWrittenVerbatim(t *testing.T) {
	t.Parallel()
	ring := keyring.Random("k1")
	raw := json.RawMessage(`{"a": "<b>"}`)
	p, err := codec.Converter(ring.Opening()).ToPayload(raw)
	require.NoError(t, err)
	require.Equal(t, string(raw), string(p.GetData()), "megabytes are not checked byte by byte")
	var read struct{ A string }
	require.NoError(t, codec.Converter(ring).FromPayload(p, &read))
	require.Equal(t, "<b>", read.A)

	none, err := codec.Converter(ring.Opening()).ToPayload(json.RawMessage(nil))
	require.NoError(t, err)
	require.Equal(t, "null", string(none.GetData()))
}

func TestFailuresAreSealed(t *testing.T) {
	t.Parallel()
	ring := keyring.Random("k1")
	c := codec.FailureConverter(ring)
	failure := c.ErrorToFailure(
		temporal.NewApplicationErrorWithOptions("no: "+planted, "some.type", temporal.ApplicationErrorOptions{
			Cause: errors.New("because of " + planted), Details: []any{planted},
		}))
	require.NotContains(t, text(t, failure), planted)
	sealed := proto.CloneOf(failure)
	err := c.FailureToError(failure)
	require.True(t, proto.Equal(sealed, failure), "the SDK sends the failure of a local activity after it has read it")
	require.ErrorContains(t, err, "no: "+planted)
	var app *temporal.ApplicationError
	require.ErrorAs(t, err, &app)
	require.Equal(t, "some.type", app.Type())
	var detail string
	require.NoError(t, app.Details(&detail))
	require.Equal(t, planted, detail)

	before := temporal.NewDefaultFailureConverter(temporal.DefaultFailureConverterOptions{})
	require.ErrorContains(t, c.FailureToError(before.ErrorToFailure(errors.New("of before"))), "of before")
}

func TestDamagedPayloads(t *testing.T) {
	t.Parallel()
	codec := codec.NewCodec(keyring.Random("k1"))
	sealed, err := codec.Encode([]*commonpb.Payload{{Data: []byte("x")}})
	require.NoError(t, err)
	sealed[0].Data[len(sealed[0].GetData())-1] ^= 1
	_, err = codec.Decode(sealed)
	require.ErrorIs(t, err, keyring.ErrForged)
}

// In a workflow, a payload that cannot be opened causes a panic: an error would be the run's.
func TestWorkflowPanicsOnUnopenedPayloads(t *testing.T) {
	t.Parallel()
	sealed, err := codec.Converter(keyring.Random("k1")).ToPayloads("a text")
	require.NoError(t, err)
	other, ok := codec.Converter(keyring.Random("k2")).(workflow.ContextAware)
	require.True(t, ok)
	var read string
	require.PanicsWithValue(t,
		`opening a payload: it was sealed with the key "k1", which is not in encryption.keys; put that key back to open it`,
		func() { _ = other.WithWorkflowContext(nil).FromPayloads(sealed, &read) })
	require.Error(t, other.WithContext(t.Context()).FromPayloads(sealed, &read), "outside a workflow it is an error")
	// A payload that opens and has another type is the workflow's own error.
	same := keyring.Random("k3")
	sealed, err = codec.Converter(same).ToPayloads(1)
	require.NoError(t, err)
	aware, _ := codec.Converter(same).(workflow.ContextAware)
	require.Error(t, aware.WithWorkflowContext(nil).FromPayloads(sealed, &read))
}

// of returns the context that the SDK passes for the payloads of a workflow.
func of(workflowID string) converter.SerializationContext {
	return converter.WorkflowSerializationContext{Namespace: "any", WorkflowID: workflowID}
}

func TestPayloadsAreBoundToTheirWorkflow(t *testing.T) {
	t.Parallel()
	ring := keyring.Random("k1")
	first := codec.For(ring, "r1")
	sealed, err := first.ToPayload(planted)
	require.NoError(t, err)
	require.Equal(t, "r1", string(sealed.GetMetadata()["signalbox-workflow"]))
	var read string
	for name, c := range map[string]converter.DataConverter{
		"the same workflow": first, "without a context": codec.Converter(ring),
		"an activity": converter.WithDataConverterSerializationContext(codec.Converter(ring),
			converter.ActivitySerializationContext{WorkflowID: "r1", ActivityType: "call"}),
	} {
		read = ""
		require.NoError(t, c.FromPayload(sealed, &read), name)
		require.Equal(t, planted, read, name)
	}
	err = codec.For(ring, "r2").FromPayload(sealed, &read)
	require.ErrorContains(t, err,
		`opening a payload: it was sealed for workflow "r1", and stands in the history of workflow "r2"`)
	require.True(t, codec.Unreadable(err))
	for name, claim := range map[string][]byte{"renamed": []byte("r2"), "unbound": nil} {
		copied, _ := proto.Clone(sealed).(*commonpb.Payload)
		if copied.Metadata["signalbox-workflow"] = claim; claim == nil {
			delete(copied.GetMetadata(), "signalbox-workflow")
		}
		require.Error(t, codec.For(ring, "r2").FromPayload(copied, &read), name)
		require.ErrorIs(t, codec.Converter(ring).FromPayload(copied, &read), keyring.ErrForged, name)
	}

	unbound, err := codec.Converter(ring).ToPayload(planted)
	require.NoError(t, err)
	require.NoError(t, codec.Converter(ring).FromPayload(unbound, &read))
	err = codec.For(ring, "r2").FromPayload(unbound, &read)
	require.ErrorContains(t, err,
		`opening a payload: it is bound to no workflow, and stands in the history of workflow "r2"`)
}

func TestPayloadsOfSchedulesOpenInTheirWorkflows(t *testing.T) {
	t.Parallel()
	ring := keyring.Random("k1")
	sealed, err := codec.For(ring, "signalbox-schedule/p/w").ToPayload(planted)
	require.NoError(t, err)
	var read string
	require.NoError(t, codec.For(ring, "signalbox-schedule/p/w-2026-11-22T10:00:00Z").FromPayload(sealed, &read))
	require.Error(t, codec.For(ring, "signalbox-schedule/p/w-x").FromPayload(sealed, &read))
	require.Error(t, codec.For(ring, "signalbox-schedule/p/x-2026-11-22T10:00:00Z").FromPayload(sealed, &read))
}

func TestWorkflowPanicsOnPayloadsOfOthers(t *testing.T) {
	t.Parallel()
	ring := keyring.Random("k1")
	sealed, err := codec.For(ring, "r1").ToPayloads(planted)
	require.NoError(t, err)
	var read string
	aware, ok := codec.Converter(ring).(workflow.ContextAware)
	require.True(t, ok)
	inWorkflow := converter.WithDataConverterSerializationContext(aware.WithWorkflowContext(nil), of("r2"))
	require.Panics(t, func() { _ = inWorkflow.FromPayloads(sealed, &read) })
	other, ok := codec.For(ring, "r2").(workflow.ContextAware)
	require.True(t, ok)
	require.Panics(t, func() { _ = other.WithWorkflowContext(nil).FromPayloads(sealed, &read) })
	require.Error(t, other.WithContext(t.Context()).FromPayloads(sealed, &read))
}

func TestFailuresAreBoundToTheirWorkflow(t *testing.T) {
	t.Parallel()
	ring := keyring.Random("k1")
	bound := func(id string) converter.FailureConverter {
		return converter.WithFailureConverterSerializationContext(codec.FailureConverter(ring), of(id))
	}
	failure := bound("r1").ErrorToFailure(
		temporal.NewApplicationErrorWithOptions("no: "+planted, "some.type",
			temporal.ApplicationErrorOptions{Details: []any{planted}}))
	require.NotContains(t, text(t, failure), planted)
	kept := func() *failurepb.Failure { // the SDK decodes in place
		copied, _ := proto.Clone(failure).(*failurepb.Failure)
		return copied
	}
	require.ErrorContains(t, bound("r1").FailureToError(kept()), planted)
	require.ErrorContains(t, codec.FailureConverter(ring).FailureToError(kept()), planted)
	ofTask := codec.FailureConverter(ring).ErrorToFailure(errors.New("the task failed"))
	require.ErrorContains(t, bound("r1").FailureToError(ofTask), "the task failed",
		"the SDK encodes the failures of tasks without a workflow")
	err := bound("r2").FailureToError(kept())
	require.NotContains(t, err.Error(), planted)
	var app *temporal.ApplicationError
	require.ErrorAs(t, err, &app)
	var detail string
	require.ErrorContains(t, app.Details(&detail), `it was sealed for workflow "r1"`)
}

func TestPayloadsThatMustBeSealed(t *testing.T) {
	t.Parallel()
	ring := keyring.Random("k1").Strict()
	plain, err := converter.GetDefaultDataConverter().ToPayload("a text")
	require.NoError(t, err)
	var read string
	err = codec.For(ring, "r1").FromPayload(plain, &read)
	require.ErrorContains(t, err, "opening a payload: it is not sealed, and encryption.require_sealed refuses that")
	require.True(t, codec.Unreadable(err))
	sealed, err := codec.For(ring, "r1").ToPayload("a text")
	require.NoError(t, err)
	require.NoError(t, codec.For(ring, "r1").FromPayload(sealed, &read))
	timedOut := codec.FailureConverter(ring).FailureToError(&failurepb.Failure{Message: "activity timeout"})
	require.ErrorContains(t, timedOut, "activity timeout", "what Temporal says itself is never sealed")
}
