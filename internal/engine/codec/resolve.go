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

// Lacks reports whether a message has a reference to a value that no store has now, also if this process has it in its
// cache.
func (s *Storage) Lacks(ctx context.Context, message proto.Message) (lacks bool, err error) {
	err = proxy.VisitPayloads(ctx, message, proxy.VisitPayloadsOptions{
		SkipSearchAttributes: true,
		Visitor: func(_ *proxy.VisitPayloadsContext, payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
			for _, p := range payloads {
				if lacks || !isReference(p) {
					continue
				}
				claim, err := claimOf(p)
				if err != nil {
					return nil, err
				}
				k := keyOf(claim)
				found := false
				err = s.retry(ctx, func(ctx context.Context) (err error) {
					_, found, err = s.values.Get(ctx, k.run, k.digest)
					return err
				})
				if err != nil {
					return nil, err
				}
				lacks = !found
			}
			return payloads, nil
		},
	})
	if err != nil {
		return false, fmt.Errorf("search for large payloads: %w", err)
	}
	return lacks, nil
}

func (s *Storage) resolve(ctx context.Context, p *commonpb.Payload) (*commonpb.Payload, error) {
	if !isReference(p) {
		return p, nil
	}
	claim, err := claimOf(p)
	if err != nil {
		return nil, err
	}
	values, err := s.Retrieve(converter.StorageDriverRetrieveContext{Context: ctx}, []converter.StorageDriverClaim{claim})
	if err != nil {
		return nil, err
	}
	return values[0], nil
}

// claimOf reads a reference.
func claimOf(p *commonpb.Payload) (claim converter.StorageDriverClaim, err error) {
	var reference sdkpb.ExternalStorageReference
	if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(p.GetData(), &reference); err != nil {
		return claim, fmt.Errorf("read a reference: %w", err)
	}
	if reference.GetDriverName() != name {
		return claim, fmt.Errorf("read a reference: unknown storage driver %q", reference.GetDriverName())
	}
	return converter.StorageDriverClaim{ClaimData: reference.GetClaimData()}, nil
}

// isReference reports whether a payload is a reference as written by the SDK.
func isReference(p *commonpb.Payload) bool {
	return string(p.GetMetadata()[converter.MetadataEncoding]) == converter.MetadataEncodingProtoJSON &&
		string(p.GetMetadata()[converter.MetadataMessageType]) == string(
			(*sdkpb.ExternalStorageReference)(nil).ProtoReflect().Descriptor().FullName())
}
