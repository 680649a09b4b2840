package start

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/jq"
	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/run"
)

// checkInput validates an input against the schema of the document, so that an invalid one is refused before there is a
// run, and returns the warning of texts that are not of their formats, empty if all are. If hidden is set, the caller
// may not see all of the input, and the error quotes nothing of it; the warning never does.
func checkInput(doc *dsl.Document, input json.RawMessage, hidden bool) (warning string, err error) {
	value, err := jq.DecodeJSON(input)
	if err != nil {
		return "", apperror.New(apperror.Invalid, apperror.InvalidInput, "the input is not JSON: %v", err).
			WithField("input", "%v", err)
	}
	if doc.Input == nil || doc.Input.Schema == nil {
		return "", nil
	}
	if _, err := doc.Input.Schema.Check(value, jq.DefaultFuel); err != nil {
		if hidden {
			err = withoutValues(err)
		}
		f := apperror.New(apperror.Invalid, apperror.InvalidInput, "the input does not match the schema of %s/%s@%s: %v",
			doc.Namespace, doc.Name, doc.Version, err)
		return "", withViolations(f, err)
	}
	return formatWarning(doc.Input.Schema.Formats(value, jq.DefaultFuel)), nil
}

// maxFormats is the number of texts that a warning of formats names.
const maxFormats = 10

// formatWarning names the texts of an input that are not of their formats.
func formatWarning(list []dsl.SchemaViolation) string {
	var parts []string
	for _, v := range list[:min(len(list), maxFormats)] {
		parts = append(parts, fmt.Sprintf("input%s %s", v.Pointer, v.Message))
	}
	if rest := len(list) - maxFormats; rest > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", rest))
	}
	return strings.Join(parts, "; ")
}

// withViolations adds the fields of the language's standard error to a refusal, and each violation with its location.
func withViolations(f *apperror.Error, err error) error {
	f = f.WithFact("type", dsl.ErrorTypeValidation).WithFact("status", strconv.Itoa(http.StatusBadRequest))
	failed, ok := errors.AsType[*dsl.SchemaError](err)
	if !ok || len(failed.Violations) == 0 {
		return f.WithField("input", "%v", err)
	}
	f = f.WithFact("pointer", failed.Violations[0].Pointer)
	for _, v := range failed.Violations {
		if v.Keyword != "required" {
			f = f.WithField("input"+v.Pointer, "%s", v.Message)
			continue
		}
		for _, at := range v.MissingAt() {
			f = f.WithField("input"+at, "is required")
		}
	}
	return f
}

// withoutValues returns an error of a schema with only the locations, the keywords and the names that the schema
// requires: its messages quote values.
func withoutValues(err error) error {
	failed, ok := errors.AsType[*dsl.SchemaError](err)
	if !ok {
		return errors.New("it cannot be checked")
	}
	located := &dsl.SchemaError{}
	for _, v := range failed.Violations {
		message := fmt.Sprintf("does not meet %q", v.Keyword)
		if len(v.Missing) > 0 {
			message += fmt.Sprintf(": no %s", quoted(v.Missing))
		}
		located.Violations = append(located.Violations,
			dsl.SchemaViolation{Pointer: v.Pointer, Message: message, Keyword: v.Keyword, Missing: v.Missing})
	}
	return located
}

func quoted(names []string) string {
	list := make([]string, len(names))
	for i, name := range names {
		list[i] = strconv.Quote(name)
	}
	return strings.Join(list, ", ")
}

// validText returns the text of an external error in a form that every store accepts.
func validText(err error) string {
	return strings.ReplaceAll(strings.ToValidUTF8(err.Error(), "\uFFFD"), "\x00", "\uFFFD")
}

func inParentheses(reason string) string {
	if reason == "" {
		return ""
	}
	return " (" + reason + ")"
}

func startDetail(r run.Run) json.RawMessage {
	facts := map[string]any{"workflow": r.Workflow, "version": r.Version, "requestId": r.RequestID}
	if r.ReplayOf != "" {
		facts["replayOf"] = r.ReplayOf
	}
	if len(r.MissingLabels) > 0 {
		facts["missingLabels"] = r.MissingLabels
	}
	detail, _ := json.Marshal(facts) //nolint:errchkjson // strings always encode
	return detail
}
