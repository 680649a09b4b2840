package rpc

import (
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/internal/batch"
	"github.com/signalbox-dev/signalbox/internal/config"
)

// fieldLimit bounds one field of requests. A text, also each one in a list or a map, has at most Bytes; a list or a map
// has at most Count elements. [bySize] means that the size of the request is the only bound here; the service behind
// the method has its own.
type fieldLimit struct {
	Count, Bytes int
	// Set reports that neither the order nor duplicates of a list have a meaning: duplicates are removed.
	Set bool
}

// bySize is no limit beyond the size of a request.
const bySize = -1

const (
	// textBytes bounds names, IDs, reasons and other texts. The services refuse most of them at less.
	textBytes = 4 << 10
	// tokenBytes bounds what the server itself has given out: page tokens and cursors.
	tokenBytes = 8 << 10
	// wordBytes bounds elements of lists of words, such as statuses.
	wordBytes = 256
	// maxWords is the number of such elements. No list of words in the API has as many different ones.
	maxWords = 50
)

// fieldTable has the limits by the names of fields. Every list, map and text of a request has a row; a test compares
// all requests of the API with it. An entry with the message's name precedes one with the field's name alone.
type fieldTable map[string]fieldLimit

// of returns the limit of a field, and whether the table has one.
func (t fieldTable) of(field protoreflect.FieldDescriptor) (fieldLimit, bool) {
	if limit, ok := t[string(field.Parent().Name())+"."+string(field.Name())]; ok {
		return limit, true
	}
	limit, ok := t[string(field.Name())]
	return limit, ok
}

// newFieldTable returns the limits of the API.
func newFieldTable() fieldTable {
	text, token := fieldLimit{Bytes: textBytes}, fieldLimit{Bytes: tokenBytes}
	words := fieldLimit{Count: maxWords, Bytes: wordBytes, Set: true}
	document := fieldLimit{Bytes: bySize}
	return fieldTable{
		// lists and maps
		"kinds": words, "patterns": words, "states": words, "outcomes": words, "statuses": words, "stuck": words,
		"types": {Count: maxWords, Bytes: textBytes, Set: true}, "columns": {Count: maxWords, Bytes: wordBytes},
		"delivery_ids":            {Count: 1000, Bytes: wordBytes, Set: true},
		"run_ids":                 {Count: batch.MaxIDs, Bytes: textBytes},
		"labels":                  {Count: maxWords, Bytes: textBytes, Set: true},
		"StartRunRequest.labels":  {Count: maxWords, Bytes: textBytes},
		"ReplayRunRequest.labels": {Count: maxWords, Bytes: textBytes},
		"roles":                   {Count: 1000, Bytes: wordBytes},
		"topics":                  {Count: maxWords},
		"events":                  {Count: config.MaxEventBatch},

		// documents and data
		"files":       {Count: dsl.MaxResources, Bytes: dsl.MaxResourceBytes},
		"data_base64": document, "json": document,
		"ValidateWorkflowRequest.source": document, "AssistDocumentRequest.source": document,
		"SaveDraftRequest.source":       document,
		"PublishWorkflowRequest.source": document, "PublishFunctionRequest.source": document,

		"page_token": token, "cursor": token,

		// texts
		"action": text, "actor": text, "address": text, "batch_id": text, "data_content_type": text, "data_schema": text,
		"description": text, "error_type": text, "failure_group": text, "format": text, "from": text, "id": text,
		"name":      text,
		"namespace": text, "network": text, "note": text, "order": text, "outcome": text, "owner": text, "parent_path": text,
		"parent_run_id": text,
		"pointer":       text, "project": text, "reason": text, "replay_of": text, "request_id": text, "routing_key": text,
		"retrying": text, "run_id": text, "words": text, "error_text": text, "failed_task": text, "waiting": text, "cause": text,
		"source": text, "started_by_batch_id": text, "status": text, "subject": text, "text": text, "to": text, "token": text,
		"trigger": text, "type": text, "url": text, "value": text, "version": text, "view": text, "workflow": text,
		"overlap": text, "time_zone": text,
	}
}
