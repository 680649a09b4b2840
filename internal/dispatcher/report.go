package dispatcher

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/event"
)

// RunRefused is the type of the event that reports that the input of a run does not fit its workflow, so that events
// did not start it.
const RunRefused = event.Own + "run.refused"

// report publishes that events start no run because their input does not fit the workflow. Reporting it again publishes
// nothing. Events of this type are never reported themselves: a workflow that listens to them would be started in an
// endless loop.
func (r *Router) report(ctx context.Context, d event.Delivery, err error) error {
	f, ok := apperror.From(err)
	if r.opts.Reports == nil || !ok || f.Reason != apperror.InvalidInput ||
		slices.ContainsFunc(d.Events, func(e event.Event) bool { return e.Type == RunRefused }) {
		return nil
	}
	type source struct {
		ID       string `json:"id"`
		Source   string `json:"source"`
		Position int64  `json:"position"`
	}
	type runError struct {
		Type    string `json:"type"`
		Status  int    `json:"status"`
		Pointer string `json:"pointer"`
		Detail  string `json:"detail"`
	}
	data := struct {
		Workflow string   `json:"workflow"`
		Version  string   `json:"version,omitempty"`
		Error    runError `json:"error"`
		Events   []source `json:"events"`
	}{Workflow: d.Workflow, Version: d.Version,
		Error: runError{dsl.ErrorTypeValidation, 400, f.Facts["pointer"], f.Message}} //nolint:mnd // as in HTTP
	for _, e := range d.Events {
		data.Events = append(data.Events, source{e.ID, e.Source, e.Position})
	}
	text, err := json.Marshal(data)
	if err != nil {
		return fmt.Errorf("encoding the report of delivery %q: %w", d.ID, err)
	}
	_, err = r.opts.Reports.Publish(ctx, d.Project, []event.Event{{
		ID: d.RunID, Source: "/projects/" + d.Project + "/workflows/" + d.Workflow, Type: RunRefused, Subject: d.Workflow,
		Time: time.Now().UTC(), DataContentType: "application/json", Data: text,
	}})
	if err != nil {
		return fmt.Errorf("publishing that events start no run of %q: %w", d.Workflow, err)
	}
	return nil
}
