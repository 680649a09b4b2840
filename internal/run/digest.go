package run

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/signalbox-dev/signalbox/internal/fault"
)

// Digests make and compare keyed digests. An input may be sensitive and short, so that a plain hash of it in a row could be guessed.
type Digests interface {
	Digest(value []byte) (string, error)
	// Matches reports whether a digest is of this value; known is false where the key of the digest is gone.
	Matches(digest string, value []byte) (same, known bool)
}

// asked is what the caller of a request gave with its request ID: the same for the same request, whatever is published, replayed or
// redacted in between. Project and request ID keep equal inputs of two runs from having equal digests. The version of a start is not in
// it: a version that is named is compared with that of the run, and a request that names none accepts the version that there is.
type asked struct {
	Project   string `json:"project"`
	RequestID string `json:"requestId"`
	ReplayOf  string `json:"replayOf"`
	Version   string `json:"version"`
	Input     any    `json:"input"`
	Patch     any    `json:"patch"`
}

// askedOf returns the canonical form of what was asked; nil where nothing is to be compared. That is so for requests of Signalbox itself,
// which derive the ID from what they ask for, and for those without a request ID, which are never repeated.
func askedOf(req StartRequest) ([]byte, error) {
	if req.RequestID == "" || req.RunID != "" || req.Parent.RunID != "" {
		return nil, nil
	}
	a := asked{Project: req.Project, RequestID: req.RequestID, ReplayOf: req.ReplayOf}
	input := req.Input
	if input == nil {
		input = json.RawMessage("null") // as a start reads it
	}
	if req.ReplayOf != "" {
		a.Version, input = req.Replay.Version, req.Replay.Input
	}
	a.Input, a.Patch = canonical(input), canonical(req.Replay.Patch)
	return json.Marshal(a)
}

// canonical returns a value whose JSON does not depend on white space and the order of members. Numbers keep their digits. What is no JSON
// is compared as text; the input is checked elsewhere.
func canonical(raw json.RawMessage) any {
	if len(raw) == 0 {
		return nil
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return string(raw)
	}
	// Beside the value its presence: an input that is null is not the same as none in a replay.
	return []any{value}
}

// digest returns the digest of a request, to be stored with its run; empty where nothing is to be compared.
func (s *Service) digest(req StartRequest) (string, error) {
	value, err := askedOf(req)
	if err != nil || value == nil || s.opts.Digests == nil {
		return "", err
	}
	digest, err := s.opts.Digests.Digest(value)
	if err != nil {
		return "", fmt.Errorf("making the digest of request %q: %w", req.RequestID, err)
	}
	return digest, nil
}

// sameRequest reports whether the stored run was made by this very request. A run without a digest, or with one whose key is gone, is
// compared by workflow, version and replayed run alone.
func (s *Service) sameRequest(ctx context.Context, req StartRequest, stored Run) (bool, error) {
	same, err := s.replays(ctx, req, stored)
	if err != nil || !same || stored.RequestDigest == "" || s.opts.Digests == nil {
		return same, err
	}
	value, err := askedOf(req)
	if err != nil || value == nil {
		return same, err
	}
	same, known := s.opts.Digests.Matches(stored.RequestDigest, value)
	return same || !known, nil
}

// reused is the answer to a request ID that belongs to another request.
func reused(requestID string, stored Run) error {
	return fault.New(fault.Exists, fault.RequestIDReused,
		"request ID %q was used before with other arguments, for run %s of %s@%s; use a new one", requestID, stored.ID, stored.Workflow, stored.Version).
		WithField("requestId", "belongs to another request")
}
