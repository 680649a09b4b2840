package run

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/jq"
	"github.com/signalbox-dev/signalbox/internal/fault"
)

// checkInput holds an input against the schema of the document, so that a wrong one is refused before there is a run. Of
// an input that is hidden from whoever asks, the error quotes nothing.
func checkInput(doc *dsl.Document, input json.RawMessage, hidden bool) error {
	value, err := jq.DecodeJSON(input)
	if err != nil {
		return fault.New(fault.Invalid, fault.InvalidInput, "the input is not JSON: %v", err).WithField("input", "%v", err)
	}
	if doc.Input == nil || doc.Input.Schema == nil {
		return nil
	}
	if _, err := doc.Input.Schema.Check(value, jq.DefaultFuel); err != nil {
		if hidden {
			err = unquoted(err)
		}
		f := fault.New(fault.Invalid, fault.InvalidInput, "the input does not fit the schema of %s/%s@%s: %v", doc.Namespace, doc.Name, doc.Version, err)
		return violated(f, err)
	}
	return nil
}

// violated adds to a refusal what the standard error of the language has, and each violation with its place.
func violated(f *fault.Fault, err error) error {
	f = f.WithFact("type", dsl.ErrorTypeValidation).WithFact("status", strconv.Itoa(http.StatusBadRequest))
	failed, ok := errors.AsType[*dsl.SchemaError](err)
	if !ok || len(failed.Violations) == 0 {
		return f.WithField("input", "%v", err)
	}
	f = f.WithFact("pointer", failed.Violations[0].Pointer)
	for _, v := range failed.Violations {
		f = f.WithField("input"+v.Pointer, "%s", v.Message)
	}
	return f
}

// unquoted is an error of a schema with the places and keywords alone: its messages quote values.
func unquoted(err error) error {
	failed, ok := errors.AsType[*dsl.SchemaError](err)
	if !ok {
		return errors.New("it cannot be checked")
	}
	places := &dsl.SchemaError{}
	for _, v := range failed.Violations {
		places.Violations = append(places.Violations, dsl.Violation{Pointer: v.Pointer, Message: fmt.Sprintf("does not meet %q", v.Keyword)})
	}
	return places
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
