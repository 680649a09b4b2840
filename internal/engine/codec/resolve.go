package codec

import (
	"context"
	"fmt"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/proxy"
	sdkpb "go.temporal.io/api/sdk/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// Resolve replaces the references in a message by their values. It is for code that calls the service itself. The SDK's
// own clients, workers and replayers resolve references themselves. A nil storage resolves none.
func (s *Storage) Resolve(ctx context.Context, message proto.Message) error {
	if s == nil {
		return nil
	}
	err := proxy.VisitPayloads(ctx, message, proxy.VisitPayloadsOptions{
		SkipSearchAttributes: true,
		Visitor: func(_ *proxy.VisitPayloadsContext, payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
			out := make([]*commonpb.Payload, len(payloads))
			for i, p := range payloads {
				resolved, err := s.resolve(ctx, p)
				if err != nil {
					return nil, err
				}
				out[i] = resolved
			}
			return out, nil
		},
	})
	if err != nil {
		return fmt.Errorf("read large payloads: %w", err)
	}
	return nil
}

func (s *Storage) resolve(ctx context.Context, p *commonpb.Payload) (*commonpb.Payload, error) {
	if !isReference(p) {
		return p, nil
	}
	var reference sdkpb.ExternalStorageReference
	if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(p.GetData(), &reference); err != nil {
		return nil, fmt.Errorf("read a reference: %w", err)
	}
	if reference.GetDriverName() != name {
		return nil, fmt.Errorf("read a reference: unknown storage driver %q", reference.GetDriverName())
	}
	values, err := s.Retrieve(converter.StorageDriverRetrieveContext{Context: ctx}, []converter.StorageDriverClaim{{ClaimData: reference.GetClaimData()}})
	if err != nil {
		return nil, err
	}
	return values[0], nil
}

// isReference reports whether a payload is a reference as written by the SDK.
func isReference(p *commonpb.Payload) bool {
	return string(p.GetMetadata()[converter.MetadataEncoding]) == converter.MetadataEncodingProtoJSON &&
		string(p.GetMetadata()[converter.MetadataMessageType]) == string((*sdkpb.ExternalStorageReference)(nil).ProtoReflect().Descriptor().FullName())
}
