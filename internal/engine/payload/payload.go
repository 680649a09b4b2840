// Package payload seals what Temporal keeps: inputs, results, signals, memos and the texts of failures.
//
//	options.DataConverter = payload.Converter(ring)
//	options.FailureConverter = payload.FailureConverter(ring)
//
// Whatever decodes payloads by itself must have the same converter, also the replayer of histories. Payloads that are not sealed, of
// before there were keys, are read as they are.
package payload

import (
	"context"
	"errors"
	"fmt"
	"slices"

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
	// about is what sealed payloads are. Whose they are Temporal does not tell its codecs.
	about = "temporal payload"
)

// Codec seals and opens payloads.
type Codec struct{ ring *seal.Ring }

var _ converter.PayloadCodec = (*Codec)(nil)

// NewCodec returns a codec with the keys of a ring.
func NewCodec(ring *seal.Ring) *Codec { return &Codec{ring: ring} }

// Converter is the SDK's default converter, sealed.
func Converter(ring *seal.Ring) converter.DataConverter {
	return sealing{converter.NewCodecDataConverter(converter.GetDefaultDataConverter(), NewCodec(ring))}
}

// sealing is a converter that lets no run fail for want of a key: what cannot be opened in a workflow panics, which gives the task back
// to Temporal, for a worker that has the key.
type sealing struct{ converter.DataConverter }

var _ workflow.ContextAware = sealing{}

// WithWorkflowContext implements workflow.ContextAware.
func (s sealing) WithWorkflowContext(workflow.Context) converter.DataConverter {
	return giving(s)
}

// WithContext implements workflow.ContextAware.
func (s sealing) WithContext(context.Context) converter.DataConverter { return s }

// giving gives tasks back whose payloads it cannot open.
type giving struct{ converter.DataConverter }

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
	return temporal.NewDefaultFailureConverter(temporal.DefaultFailureConverterOptions{
		DataConverter: Converter(ring), EncodeCommonAttributes: ring.Seals(),
	})
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
		sealed, err := c.ring.Seal(plain, about)
		if err != nil {
			return nil, fmt.Errorf("sealing a payload: %w", err)
		}
		out[i] = &commonpb.Payload{
			Metadata: map[string][]byte{converter.MetadataEncoding: []byte(encoding), keyID: []byte(c.ring.Active())}, Data: sealed,
		}
	}
	return out, nil
}

// Decode implements converter.PayloadCodec.
func (c *Codec) Decode(payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
	out := make([]*commonpb.Payload, len(payloads))
	for i, p := range payloads {
		if string(p.GetMetadata()[converter.MetadataEncoding]) != encoding {
			out[i] = p
			continue
		}
		plain, err := c.ring.Open(p.GetData(), about)
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
