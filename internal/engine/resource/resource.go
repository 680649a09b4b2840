// Package resource reads the texts that documents refer to by http and https: functions, schemas, descriptions of
// services, scripts.
//
//	loader := resource.New(caller)
//	content, err := loader.Load(ctx, "shop", reference)
//
// A resource is read like a call of a run: with the same guard against private addresses, the authentication that the
// document names, secrets of the project, and limits of redirects, size and time. Nothing is cached or stored here, and
// the text is not parsed. Publishing a version reads its resources and stores them; see internal/workflow.
package resource

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"go.temporal.io/sdk/temporal"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/interp"
	"github.com/signalbox-dev/signalbox/internal/engine/flow"
	"github.com/signalbox-dev/signalbox/internal/workflow"
)

// timeout bounds the time to read one resource, with all redirects.
const timeout = 10 * time.Second

// Caller performs HTTP exchanges.
type Caller interface {
	Call(ctx context.Context, r flow.HTTPRequest) (flow.HTTPResponse, error)
}

// Loader reads web resources. It is safe for concurrent use.
type Loader struct{ caller Caller }

var _ workflow.Loader = (*Loader)(nil)

// New returns a loader that sends its requests with a caller.
func New(caller Caller) *Loader { return &Loader{caller} }

// Load implements [workflow.Loader].
func (l *Loader) Load(ctx context.Context, project string, r dsl.Reference) ([]byte, error) {
	request, err := interp.ResourceRequest(r)
	if err != nil {
		return nil, err
	}
	response, err := l.caller.Call(ctx, flow.ResourceRequest(project, request, timeout, dsl.MaxResourceBytes))
	if err != nil {
		if failure, ok := errors.AsType[*temporal.ApplicationError](err); ok {
			return nil, errors.New(failure.Message()) // without the words of Temporal around it
		}
		return nil, err
	}
	if response.StatusCode < 200 || response.StatusCode > 299 {
		return nil, fmt.Errorf("GET %s answered %d %s", r.URI, response.StatusCode, http.StatusText(response.StatusCode))
	}
	var content []byte // encoding/json decodes the base64 of the output "raw"
	if err := json.Unmarshal(response.Content, &content); err != nil && len(response.Content) > 0 {
		return nil, fmt.Errorf("read the response to GET %s: %w", r.URI, err)
	}
	return content, nil
}
