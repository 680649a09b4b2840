// Package codec seals what Temporal stores: inputs, results, signals, memos and the texts of failures.
//
//	options := client.Options{DataConverter: codec.Converter(ring), FailureConverter: codec.FailureConverter(ring)}
//
// Everything that decodes payloads requires the same converter, also the replayer of histories. A payload is bound to
// the workflow that it is sealed for: copied to another workflow it does not open (see [For]). Payloads that are not
// sealed, from before there were keys, are read as they are, unless the ring requires all payloads to be sealed.
//
// # Large payloads
//
// [Storage] keeps the large payloads of runs in the stores of package payload, and Temporal stores references to them
// (the claim check pattern). A value may thus be larger than Temporal's limit, and histories stay small.
//
//	storage := codec.New(payload.NewStores(store.Payloads()), codec.Options{})
//	options.ExternalStorage = storage.External()                // of each client, and of each replayer of histories
//	err := storage.Resolve(ctx, message)                        // for code that reads payloads from the service itself
//
// The SDK calls the driver outside workflow code: before it executes a workflow task and after that, before an activity
// and after it, and in clients. Neither the deadlock detector nor determinism is affected. A failure of the driver
// fails the task, which Temporal dispatches again. The data converter encodes and seals payloads before the driver
// receives them: the stores hold sealed bytes.
//
// A payload leaves the history if it is larger than [Threshold]. A smaller one, from [smallest] on, leaves it once its
// execution has many of them. A value belongs to the run whose history holds the reference, and lives as long as that
// run's row. Continue-as-new and resets keep the run. Everything that passes from one run to another (inputs of
// children, their results, events, replays) is encoded again there, and becomes a value of that run.
//
// Reads go through a cache that is bounded in bytes, one for each process. Calls of the stores are retried for
// [Options.Patience], which is less than the time after which Temporal gives a task to another worker. A process writes
// one large value at a time.
package codec

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	failurepb "go.temporal.io/api/failure/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/proto"

	"github.com/signalbox-dev/signalbox/internal/keyring"
)

const (
	// encoding marks a sealed payload. Temporal's own samples and tools use the same one.
	encoding = "binary/encrypted"
	// keyID is the metadata key of the key ID, for people. Decoding relies on the payload alone.
	keyID = "encryption-key-id"
	// boundTo is the metadata key of the ID of the workflow that a payload is bound to. The ID is authenticated with
	// the payload.
	boundTo = "signalbox-workflow"
	// domain is the authenticated purpose of sealed payloads.
	domain = "temporal payload"
)

// Codec seals and opens payloads. With the ID of a workflow it binds payloads to that workflow, and rejects payloads
// that are bound to another one, or to none. Without an ID it opens a payload as bound to the workflow that the payload
// names.
type Codec struct {
	ring     *keyring.Ring
	workflow string
	// unbound also opens payloads that are bound to no workflow.
	unbound bool
}

var _ converter.PayloadCodecWithSerializationContext = (*Codec)(nil)

// NewCodec returns a codec with the keys of a ring.
func NewCodec(ring *keyring.Ring) *Codec { return &Codec{ring: ring} }

// WithSerializationContext implements converter.PayloadCodecWithSerializationContext. The namespace is not part of the
// binding, because a replayer does not have it.
func (c *Codec) WithSerializationContext(sc converter.SerializationContext) converter.PayloadCodec {
	bound := *c
	switch sc := sc.(type) {
	case converter.WorkflowSerializationContext:
		bound.workflow = sc.WorkflowID
	case converter.ActivitySerializationContext:
		bound.workflow = sc.WorkflowID
	}
	return &bound
}

// Converter returns the SDK's default converter with sealing.
func Converter(ring *keyring.Ring) converter.DataConverter {
	return convert(NewCodec(ring))
}

func convert(c *Codec) converter.DataConverter {
	return sealing{converter.NewCodecDataConverter(plain(), c)}
}

// plain returns the SDK's default converter, except for JSON, which it writes verbatim.
func plain() converter.DataConverter {
	return converter.NewCompositeDataConverter(
		converter.NewNilPayloadConverter(), converter.NewByteSlicePayloadConverter(),
		converter.NewProtoJSONPayloadConverter(),
		converter.NewProtoPayloadConverter(), verbatim{converter.NewJSONPayloadConverter()},
	)
}

// verbatim writes JSON without HTML escapes. Those take six bytes for each "<", ">" and "&", so that a value within its
// limit could exceed the limit of a payload. It copies values that are JSON already: to validate megabytes would take
// longer than all other steps together.
type verbatim struct {
	*converter.JSONPayloadConverter
}

// ToPayload implements converter.PayloadConverter.
func (v verbatim) ToPayload(value any) (*commonpb.Payload, error) {
	if raw, ok := value.(json.RawMessage); ok && len(raw) > 0 {
		return v.payload(raw), nil
	}
	_, inlined := value.(Inlined)
	var data bytes.Buffer
	encoder := json.NewEncoder(&data)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, fmt.Errorf("%w: %w", converter.ErrUnableToEncode, err)
	}
	p := v.payload(bytes.TrimSuffix(data.Bytes(), []byte("\n")))
	if inlined {
		p.Metadata[inlineMark] = []byte{}
	}
	return p, nil
}

func (v verbatim) payload(data []byte) *commonpb.Payload {
	return &commonpb.Payload{Metadata: map[string][]byte{converter.MetadataEncoding: []byte(v.Encoding())}, Data: data}
}

// For returns the converter for the payloads of one workflow, for code that does not receive the workflow's converter
// from the SDK.
func For(ring *keyring.Ring, workflowID string) converter.DataConverter {
	return converter.WithDataConverterSerializationContext(Converter(ring),
		converter.WorkflowSerializationContext{WorkflowID: workflowID})
}

// sealing is a converter that prevents failures of runs because of a missing key. In a workflow, a payload that cannot
// be opened causes a panic. That returns the task to Temporal, which dispatches it to a worker that may have the key.
type sealing struct{ converter.DataConverter }

var (
	_ workflow.ContextAware                           = sealing{}
	_ converter.DataConverterWithSerializationContext = sealing{}
	_ converter.DataConverterWithSerializationContext = panickingConverter{}
)

// WithSerializationContext implements converter.DataConverterWithSerializationContext.
func (s sealing) WithSerializationContext(sc converter.SerializationContext) converter.DataConverter {
	return sealing{converter.WithDataConverterSerializationContext(s.DataConverter, sc)}
}

// WithWorkflowContext implements workflow.ContextAware.
func (s sealing) WithWorkflowContext(workflow.Context) converter.DataConverter {
	return panickingConverter(s)
}

// WithContext implements workflow.ContextAware.
func (s sealing) WithContext(context.Context) converter.DataConverter { return s }

// panickingConverter returns tasks with payloads that it cannot open to Temporal.
type panickingConverter struct{ converter.DataConverter }

// WithSerializationContext implements converter.DataConverterWithSerializationContext.
func (c panickingConverter) WithSerializationContext(sc converter.SerializationContext) converter.DataConverter {
	return panickingConverter{converter.WithDataConverterSerializationContext(c.DataConverter, sc)}
}

// FromPayload implements converter.DataConverter.
func (c panickingConverter) FromPayload(p *commonpb.Payload, into any) error {
	return panicUnopened(c.DataConverter.FromPayload(p, into))
}

// FromPayloads implements converter.DataConverter.
func (c panickingConverter) FromPayloads(p *commonpb.Payloads, into ...any) error {
	return panicUnopened(c.DataConverter.FromPayloads(p, into...))
}

func panicUnopened(err error) error {
	if errors.Is(err, errUnopened) {
		panic(err.Error())
	}
	return err
}

// errUnopened is in the chain of every error of a payload that could not be opened.
var errUnopened = errors.New("opening a payload")

// errPlain rejects a payload that is not sealed.
var errPlain = errors.New("it is not sealed, and encryption.require_sealed refuses that; set it to false where " +
	"payloads of before there were keys, " +
	"or signals that are sent without this platform, are to be read")

// bindingError rejects a payload of another workflow.
type bindingError struct{ bound, workflow string }

// Error implements error.
func (e *bindingError) Error() string {
	if e.bound == "" {
		return fmt.Sprintf("it is bound to no workflow, and stands in the history of workflow %q", e.workflow)
	}
	return fmt.Sprintf("it was sealed for workflow %q, and stands in the history of workflow %q", e.bound, e.workflow)
}

// Unreadable reports whether an error means that a payload cannot be opened, because its key is missing or it is
// damaged, or cannot be decoded. Errors of the transport are not among them.
func Unreadable(err error) bool {
	return slices.ContainsFunc([]error{
		errUnopened, converter.ErrMetadataIsNotSet, converter.ErrEncodingIsNotSet, converter.ErrEncodingIsNotSupported,
		converter.ErrUnableToDecode,
		converter.ErrUnableToFindConverter, converter.ErrUnableToSetValue,
	}, func(unreadable error) bool { return errors.Is(err, unreadable) })
}

// FailureConverter returns a converter that seals the messages and stack traces of failures. Those of failed tasks are
// bound to no workflow, because the SDK encodes them without one.
func FailureConverter(ring *keyring.Ring) converter.FailureConverter {
	return newFailures(ring, convert(&Codec{ring: ring, unbound: true}))
}

// failures wraps the SDK's converter, which does not pass the serialization context to its data converter.
type failures struct {
	converter.FailureConverter

	ring *keyring.Ring
	data converter.DataConverter
}

var _ converter.FailureConverterWithSerializationContext = (*failures)(nil)

func newFailures(ring *keyring.Ring, data converter.DataConverter) *failures {
	return &failures{ring: ring, data: data,
		FailureConverter: temporal.NewDefaultFailureConverter(temporal.DefaultFailureConverterOptions{
			DataConverter: attributes{data}, EncodeCommonAttributes: ring.Seals(),
		})}
}

// WithSerializationContext implements converter.FailureConverterWithSerializationContext.
func (f *failures) WithSerializationContext(sc converter.SerializationContext) converter.FailureConverter {
	return newFailures(f.ring, converter.WithDataConverterSerializationContext(f.data, sc))
}

// FailureToError implements converter.FailureConverter. The SDK's converter opens the failure in place; that of a local
// activity is sent to Temporal after it was read.
func (f *failures) FailureToError(failure *failurepb.Failure) error {
	return f.FailureConverter.FailureToError(proto.CloneOf(failure))
}

// Inlined is implemented by values whose payloads must stay in their message, because their reader has no access to the
// storage.
type Inlined interface{ StaysInline() }

// inlineMark is the metadata key of payloads that stay in their message; see [Inline].
const inlineMark = "signalbox-inline"

// Inline reports whether a payload must stay in its message, unless it exceeds the size limit. This holds for the
// message and the stack trace of a failure, which are read where the storage is not available.
func Inline(p *commonpb.Payload) bool { return p.GetMetadata()[inlineMark] != nil }

// attributes is the data converter of failures. A single payload holds the common attributes; details are several
// payloads.
type attributes struct{ converter.DataConverter }

// ToPayload implements converter.DataConverter.
func (a attributes) ToPayload(value any) (*commonpb.Payload, error) {
	p, err := a.DataConverter.ToPayload(value)
	if err == nil && p != nil {
		p.Metadata[inlineMark] = []byte{}
	}
	return p, err
}

// Encode implements converter.PayloadCodec.
func (c *Codec) Encode(payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
	if !c.ring.Seals() {
		return payloads, nil
	}
	out := make([]*commonpb.Payload, len(payloads))
	for i, p := range payloads {
		plain, err := proto.Marshal(p)
		if err != nil {
			return nil, fmt.Errorf("sealing a payload: %w", err)
		}
		sealed, err := c.ring.Seal(plain, binding(c.workflow)...)
		if err != nil {
			return nil, fmt.Errorf("sealing a payload: %w", err)
		}
		out[i] = &commonpb.Payload{
			Metadata: map[string][]byte{converter.MetadataEncoding: []byte(encoding), keyID: []byte(c.ring.Active())},
			Data:     sealed,
		}
		if c.workflow != "" {
			out[i].Metadata[boundTo] = []byte(c.workflow)
		}
		if Inline(p) {
			out[i].Metadata[inlineMark] = []byte{}
		}
	}
	return out, nil
}

// Decode implements converter.PayloadCodec.
func (c *Codec) Decode(payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
	out := make([]*commonpb.Payload, len(payloads))
	for i, p := range payloads {
		if string(p.GetMetadata()[converter.MetadataEncoding]) != encoding {
			if c.ring.RequiresSealed() {
				return nil, fmt.Errorf("%w: %w", errUnopened, errPlain)
			}
			out[i] = p
			continue
		}
		bound := string(p.GetMetadata()[boundTo])
		if c.workflow != "" && (bound != "" || !c.unbound) && !startedAs(c.workflow, bound) {
			return nil, fmt.Errorf("%w: %w", errUnopened, &bindingError{bound, c.workflow})
		}
		plain, err := c.ring.Open(p.GetData(), binding(bound)...)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errUnopened, err)
		}
		out[i] = &commonpb.Payload{}
		if err := proto.Unmarshal(plain, out[i]); err != nil {
			return nil, fmt.Errorf("%w: %w", errUnopened, err)
		}
	}
	return out, nil
}

// binding returns the data that a payload is authenticated with: its purpose and, if known, its workflow.
func binding(workflowID string) []string {
	if workflowID == "" {
		return []string{domain}
	}
	return []string{domain, workflowID}
}

// startedAs reports whether a payload that is bound to one ID may occur in a workflow. It may if it is the workflow's
// own, or that of the schedule which started the workflow: Temporal appends the time to the schedule's ID.
func startedAs(workflowID, bound string) bool {
	if workflowID == bound {
		return true
	}
	at, scheduled := strings.CutPrefix(workflowID, bound+"-")
	_, err := time.Parse(time.RFC3339, at)
	return scheduled && err == nil
}
