// Package payload seals what Temporal keeps: inputs, results, signals, memos and the texts of failures.
//
//	options.DataConverter = payload.Converter(ring)
//	options.FailureConverter = payload.FailureConverter(ring)
//
// Whatever decodes payloads by itself must have the same converter, also the replayer of histories. A payload is bound to the workflow
// that it is sealed for: copied to another one it does not open (see [For]). Payloads that are not sealed, of before there were keys, are
// read as they are, unless the ring requires all to be sealed.
package payload

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
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/proto"

	"github.com/signalbox-dev/signalbox/internal/seal"
)

const (
	// encoding marks a sealed payload; it is the one that Temporal's own samples and tools use.
	encoding = "binary/encrypted"
	// keyID names the metadata that tells the key, for people; the payload itself is what is believed.
	keyID = "encryption-key-id"
	// boundTo names the metadata with the ID of the workflow that a payload is bound to. It is authenticated with the payload.
	boundTo = "signalbox-workflow"
	// about is what sealed payloads are. Those of earlier releases are bound to nothing else.
	about = "temporal payload"
)

// Codec seals and opens payloads. With the ID of a workflow it binds what it seals to it, and opens nothing that is bound to another.
// Without one it opens a payload as what the payload says it is.
type Codec struct {
	ring     *seal.Ring
	workflow string
}

var _ converter.PayloadCodecWithSerializationContext = (*Codec)(nil)

// NewCodec returns a codec with the keys of a ring.
func NewCodec(ring *seal.Ring) *Codec { return &Codec{ring: ring} }

// WithSerializationContext implements converter.PayloadCodecWithSerializationContext. The namespace is no part of it: a replayer
// does not have it.
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

// Converter is the SDK's default converter, sealed.
func Converter(ring *seal.Ring) converter.DataConverter {
	return sealing{converter.NewCodecDataConverter(plain(), NewCodec(ring))}
}

// plain is the SDK's default converter, but for JSON, which it writes as it is.
func plain() converter.DataConverter {
	return converter.NewCompositeDataConverter(
		converter.NewNilPayloadConverter(), converter.NewByteSlicePayloadConverter(), converter.NewProtoJSONPayloadConverter(),
		converter.NewProtoPayloadConverter(), verbatim{converter.NewJSONPayloadConverter()},
	)
}

// verbatim writes JSON without escapes for HTML: they make six bytes of each "<", ">" and "&", so that a value within its limit would
// not be within that of a payload.
type verbatim struct {
	*converter.JSONPayloadConverter
}

// ToPayload implements converter.PayloadConverter.
func (v verbatim) ToPayload(value any) (*commonpb.Payload, error) {
	var data bytes.Buffer
	encoder := json.NewEncoder(&data)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, fmt.Errorf("%w: %w", converter.ErrUnableToEncode, err)
	}
	return &commonpb.Payload{
		Metadata: map[string][]byte{converter.MetadataEncoding: []byte(v.Encoding())}, Data: bytes.TrimSuffix(data.Bytes(), []byte("\n")),
	}, nil
}

// For is the converter for the payloads of one workflow, for code that the SDK does not give the workflow's converter.
func For(ring *seal.Ring, workflowID string) converter.DataConverter {
	return converter.WithDataConverterSerializationContext(Converter(ring), converter.WorkflowSerializationContext{WorkflowID: workflowID})
}

// sealing is a converter that lets no run fail for want of a key: what cannot be opened in a workflow panics, which gives the task back
// to Temporal, for a worker that has the key.
type sealing struct{ converter.DataConverter }

var (
	_ workflow.ContextAware                           = sealing{}
	_ converter.DataConverterWithSerializationContext = sealing{}
	_ converter.DataConverterWithSerializationContext = giving{}
)

// WithSerializationContext implements converter.DataConverterWithSerializationContext.
func (s sealing) WithSerializationContext(sc converter.SerializationContext) converter.DataConverter {
	return sealing{converter.WithDataConverterSerializationContext(s.DataConverter, sc)}
}

// WithWorkflowContext implements workflow.ContextAware.
func (s sealing) WithWorkflowContext(workflow.Context) converter.DataConverter {
	return giving(s)
}

// WithContext implements workflow.ContextAware.
func (s sealing) WithContext(context.Context) converter.DataConverter { return s }

// giving gives tasks back whose payloads it cannot open.
type giving struct{ converter.DataConverter }

// WithSerializationContext implements converter.DataConverterWithSerializationContext.
func (g giving) WithSerializationContext(sc converter.SerializationContext) converter.DataConverter {
	return giving{converter.WithDataConverterSerializationContext(g.DataConverter, sc)}
}

// FromPayload implements converter.DataConverter.
func (g giving) FromPayload(p *commonpb.Payload, into any) error {
	return giveBack(g.DataConverter.FromPayload(p, into))
}

// FromPayloads implements converter.DataConverter.
func (g giving) FromPayloads(p *commonpb.Payloads, into ...any) error {
	return giveBack(g.DataConverter.FromPayloads(p, into...))
}

func giveBack(err error) error {
	if errors.Is(err, errUnopened) {
		panic(err.Error())
	}
	return err
}

// errUnopened is in the chain of every error about a payload that could not be opened.
var errUnopened = errors.New("opening a payload")

// errPlain refuses a payload that is not sealed.
var errPlain = errors.New("it is not sealed, and encryption.require_sealed refuses that; set it to false where payloads of before there were keys, " +
	"or signals that are sent without this platform, are to be read")

// bindingError refuses a payload of another workflow.
type bindingError struct{ bound, workflow string }

// Error names both.
func (e *bindingError) Error() string {
	return fmt.Sprintf("it was sealed for workflow %q, and stands in the history of workflow %q", e.bound, e.workflow)
}

// Unreadable tells an error about a payload that cannot be opened, for want of its key or because it is damaged, or not be decoded, from
// one about the way to it.
func Unreadable(err error) bool {
	return slices.ContainsFunc([]error{
		errUnopened, converter.ErrMetadataIsNotSet, converter.ErrEncodingIsNotSet, converter.ErrEncodingIsNotSupported, converter.ErrUnableToDecode,
		converter.ErrUnableToFindConverter, converter.ErrUnableToSetValue,
	}, func(unreadable error) bool { return errors.Is(err, unreadable) })
}

// FailureConverter seals the messages and stack traces of failures.
func FailureConverter(ring *seal.Ring) converter.FailureConverter {
	return newFailures(ring, Converter(ring))
}

// failures is the SDK's converter, which passes no context on to its data converter.
type failures struct {
	converter.FailureConverter

	ring *seal.Ring
	data converter.DataConverter
}

var _ converter.FailureConverterWithSerializationContext = (*failures)(nil)

func newFailures(ring *seal.Ring, data converter.DataConverter) *failures {
	return &failures{ring: ring, data: data, FailureConverter: temporal.NewDefaultFailureConverter(temporal.DefaultFailureConverterOptions{
		DataConverter: attributes{data}, EncodeCommonAttributes: ring.Seals(),
	})}
}

// WithSerializationContext implements converter.FailureConverterWithSerializationContext.
func (f *failures) WithSerializationContext(sc converter.SerializationContext) converter.FailureConverter {
	return newFailures(f.ring, converter.WithDataConverterSerializationContext(f.data, sc))
}

// inlineMark is the metadata of payloads that stay where they are; see [Inline].
const inlineMark = "signalbox-inline"

// Inline reports whether a payload is to stay in the message that it is in, unless it is larger than that may be: the message and the
// stack trace of a failure, which are read where no storage is at hand.
func Inline(p *commonpb.Payload) bool { return p.GetMetadata()[inlineMark] != nil }

// attributes is the converter of failures. Of what it makes, a single payload holds the common attributes; details are several.
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
			Metadata: map[string][]byte{converter.MetadataEncoding: []byte(encoding), keyID: []byte(c.ring.Active())}, Data: sealed,
		}
		if c.workflow != "" {
			out[i].Metadata[boundTo] = []byte(c.workflow)
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
		if bound != "" && c.workflow != "" && !startedAs(c.workflow, bound) {
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

// binding is what a payload is authenticated with: what it is and, where that is known, of which workflow.
func binding(workflowID string) []string {
	if workflowID == "" {
		return []string{about}
	}
	return []string{about, workflowID}
}

// startedAs reports whether a payload that is bound to one ID may stand in a workflow: it is its own, or that of the schedule that has
// started it, to whose ID Temporal appends the time.
func startedAs(workflowID, bound string) bool {
	if workflowID == bound {
		return true
	}
	at, scheduled := strings.CutPrefix(workflowID, bound+"-")
	_, err := time.Parse(time.RFC3339, at)
	return scheduled && err == nil
}
