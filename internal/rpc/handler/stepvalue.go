package handler

import (
	"context"
	"encoding/json"
	"unicode/utf8"

	"connectrpc.com/connect"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/rpc/message"
	"github.com/signalbox-dev/signalbox/internal/run/read"
)

// StepValues reads whole values of steps.
type StepValues interface {
	Read(ctx context.Context, req read.StepValueRequest) (json.RawMessage, error)
}

const (
	// valueDefault and valueMost are the sizes of pages of values, in bytes.
	valueDefault, valueMost = 256 << 10, 1 << 20
)

// GetStepValue returns a page of a value of a step.
func (h *Runs) GetStepValue(
	ctx context.Context, req *connect.Request[signalboxv1.GetStepValueRequest],
) (*connect.Response[signalboxv1.GetStepValueResponse], error) {
	m := req.Msg
	if err := requireID(m.GetId()); err != nil {
		return nil, err
	}
	if err := requireNumber(m.GetNumber()); err != nil {
		return nil, err
	}
	wanted := read.StepValueRequest{
		Project: message.ProjectOf(m.GetProject()), RunID: m.GetId(), Number: m.GetNumber(), Pointer: m.GetPointer()}
	switch m.GetValue() {
	case "input":
	case "output":
		wanted.Output = true
	default:
		return nil, apperror.New(apperror.Invalid, apperror.InvalidArgument, "value %q: use input or output", m.GetValue()).
			WithField("value", "must be input or output")
	}
	done, err := h.reads.acquire(ctx, wanted.Project)
	if err != nil {
		return nil, err
	}
	defer done()
	value, err := h.opts.StepValues.Read(ctx, wanted)
	if err != nil {
		return nil, err
	}
	return valuePage(value, m.GetOffset(), int64(m.GetLimit()))
}

// valuePage returns the part of a value from an offset on. It contains no part of a character.
func valuePage(value json.RawMessage,
	offset, limit int64) (*connect.Response[signalboxv1.GetStepValueResponse], error) {
	size := int64(len(value))
	if offset < 0 || offset > size || offset < size && !utf8.RuneStart(value[offset]) {
		return nil, apperror.New(apperror.Invalid, apperror.InvalidArgument,
			"offset %d: the value has %d bytes; use 0 and then the next_offset of the answers", offset, size).
			WithField("offset", "must be 0 or a next_offset")
	}
	if limit < 0 || limit > valueMost {
		return nil, apperror.New(apperror.Invalid, apperror.InvalidArgument, "limit %d: a page has up to %d bytes", limit,
			valueMost).
			WithField("limit", "must be at most 1048576")
	}
	if limit == 0 {
		limit = valueDefault
	}
	end := min(size, offset+max(limit, utf8.UTFMax)) // a page has at least one character
	for end < size && !utf8.RuneStart(value[end]) {
		end--
	}
	page := &signalboxv1.GetStepValueResponse{Text: string(value[offset:end]), Size: size}
	if end < size {
		page.NextOffset = end
	}
	return connect.NewResponse(page), nil
}
