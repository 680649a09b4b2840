package run

import (
	"encoding/json"
	"strings"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/jq"
	"github.com/signalbox-dev/signalbox/internal/fault"
)

// checkInput holds an input against the schema of the document, so that a wrong one is refused before there is a run.
func checkInput(doc *dsl.Document, input json.RawMessage) error {
	value, err := jq.DecodeJSON(input)
	if err != nil {
		return fault.New(fault.Invalid, fault.InvalidInput, "the input is not JSON: %v", err).WithField("input", "%v", err)
	}
	if doc.Input == nil || doc.Input.Schema == nil {
		return nil
	}
	if err := doc.Input.Schema.Validate(value); err != nil {
		return fault.New(fault.Invalid, fault.InvalidInput,
			"the input does not fit the schema of %s/%s@%s: %v", doc.Namespace, doc.Name, doc.Version, err).WithField("input", "%v", err)
	}
	return nil
}

// readable is an error from elsewhere as text that every store takes.
func readable(err error) string {
	return strings.ReplaceAll(strings.ToValidUTF8(err.Error(), "\uFFFD"), "\x00", "\uFFFD")
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return " (" + reason + ")"
}

func startDetail(r Run) json.RawMessage {
	facts := map[string]string{"workflow": r.Workflow, "version": r.Version, "requestId": r.RequestID}
	if r.ReplayOf != "" {
		facts["replayOf"] = r.ReplayOf
	}
	detail, _ := json.Marshal(facts) //nolint:errchkjson // strings always encode
	return detail
}
