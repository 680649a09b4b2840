package start

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/run"
)

// Digests makes and compares keyed digests. An input may be sensitive and short, so that the value of a plain hash in a
// row could be guessed.
type Digests interface {
	Digest(value []byte) (string, error)
	// Matches reports whether a digest is of this value; known is false where the key of the digest no longer exists.
	Matches(digest string, value []byte) (same, known bool)
}

// requestArguments are the arguments given with a request ID: equal for the same request, regardless of what is
// published, replayed or redacted in between. Project and request ID make the digests of equal inputs of two runs
// differ. The version of a start is not included: a named version is compared with that of the run, and a request
// without one accepts any version.
type requestArguments struct {
	Project   string `json:"project"`
	RequestID string `json:"requestId"`
	ReplayOf  string `json:"replayOf"`
	Version   string `json:"version"`
	Input     any    `json:"input"`
	Patch     any    `json:"patch"`

	Labels map[string]string `json:"labels,omitempty"`
}

// canonicalRequest returns the canonical form of the arguments; nil where nothing is compared. That is so for internal
// requests, whose ID is derived from the arguments, and for requests without a request ID, which are never repeated.
func canonicalRequest(req Request) ([]byte, error) {
	if req.RequestID == "" || req.RunID != "" || req.Parent.RunID != "" {
		return nil, nil
	}
	a := requestArguments{Project: req.Project, RequestID: req.RequestID, ReplayOf: req.ReplayOf, Labels: req.Labels}
	input := req.Input
	if input == nil {
		input = json.RawMessage("null") // as Start reads it
	}
	if req.ReplayOf != "" {
		a.Version, a.Labels, input = req.Replay.Version, req.Replay.Labels, req.Replay.Input
	}
	a.Input, a.Patch = canonical(input), canonical(req.Replay.Patch)
	return json.Marshal(a)
}

// canonical returns a value whose JSON does not depend on white space and the order of members. Numbers keep their
// digits. Text that is not JSON is compared as text; the input is validated elsewhere.
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
	// The list distinguishes a null input from an absent one in a replay.
	return []any{value}
}

// digest returns the digest of a request, to be stored with its run; empty where nothing is compared.
func (s *Service) digest(req Request) (string, error) {
	value, err := canonicalRequest(req)
	if err != nil || value == nil || s.opts.Digests == nil {
		return "", err
	}
	digest, err := s.opts.Digests.Digest(value)
	if err != nil {
		return "", fmt.Errorf("making the digest of request %q: %w", req.RequestID, err)
	}
	return digest, nil
}

// sameRequest reports whether the stored run was made by this request. A run without a digest, or with one whose key no
// longer exists, is compared only by workflow, version and replayed run. For other actors than its own, a run with
// hidden values was made by another request: the answer must not depend on these values.
func (s *Service) sameRequest(ctx context.Context, req Request, stored run.Run) (bool, error) {
	same, err := s.replays(ctx, req, stored)
	if err != nil || !same || stored.RequestDigest == "" || s.opts.Digests == nil {
		return same, err
	}
	value, err := canonicalRequest(req)
	if err != nil || value == nil {
		return same, err
	}
	if !s.comparable(ctx, stored) {
		return false, nil
	}
	same, known := s.opts.Digests.Matches(stored.RequestDigest, value)
	return same || !known, nil
}

// reused returns the error for a request ID that belongs to another request.
func reused(requestID string, stored run.Run) error {
	return apperror.New(apperror.Exists, apperror.RequestIDReused,
		"request ID %q was used before with other arguments, for run %s of %s@%s; use a new one", requestID, stored.ID,
		stored.Workflow, stored.Version).
		WithField("requestId", "belongs to another request")
}
