package sealed

import (
	"context"
	"encoding/json"

	"github.com/signalbox-dev/signalbox/internal/redact"
)

// StepValue replaces the sensitive parts of the whole input or output of a step by marks, as rows of the run have them.
func (sl *Sealer) StepValue(ctx context.Context, runID string, at redact.Location,
	value json.RawMessage) (json.RawMessage, error) {
	if !sl.keys.Seals() {
		return value, nil
	}
	s, err := sl.reread(ctx, runID)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	_, found := s.policy.Value(at, value, nil)
	s.unsaved = append(s.unsaved, s.secrets.Add(found...)...) // they may occur elsewhere in the value
	shown, _ := s.value(at, value)
	return shown, nil
}
