package run

import (
	"context"
	"encoding/json"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/internal/logger"
	"github.com/signalbox-dev/signalbox/internal/run/label"
)

// Masking returns the input of a run that is to be inserted as its row will show it, and a function that reports
// whether a text contains a sensitive value of that run.
type Masking func(ctx context.Context, r Run) (shown json.RawMessage, sensitive func(text string) bool, err error)

// addLabels sets the labels of a run that is to be inserted: those of the request, and for other keys those of the
// document. A replay has the labels of the replayed run instead of those of the document.
//
// A caller of the API receives an error for a label of the document that has no valid value. A run that an event, the
// clock or another run starts must not be lost for that: it is started without the label, and the audit log and the log
// record the reason.
func (s *Service) addLabels(ctx context.Context, doc *dsl.Document, req StartRequest, r *Run) (err error) {
	if err := label.Check(req.Labels); err != nil {
		return err
	}
	request := label.Request{Given: req.Labels, Own: req.Labels, Document: doc.Labels, Strict: req.Trigger == TriggerAPI}
	if req.ReplayOf != "" {
		request.Own, request.Document = req.Replay.Labels, nil // the others are visible already
	}
	if len(request.Given)+len(request.Document) == 0 {
		return nil
	}
	request.Input, request.Sensitive = r.Input, func(string) bool { return false }
	if s.opts.Mask != nil {
		if request.Input, request.Sensitive, err = s.opts.Mask(ctx, *r); err != nil {
			return err
		}
	}
	r.Labels, r.MissingLabels, err = request.Labels()
	if err == nil && len(r.MissingLabels) > 0 {
		logger.FromContext(ctx).WarnContext(ctx, "Run starts without some of its labels", "run_id", r.ID,
			"workflow", r.Workflow, "labels", r.MissingLabels)
	}
	return err
}
