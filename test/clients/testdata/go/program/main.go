// Command program uses the client that is generated from the OpenAPI document, and prints what the server answered.
//
// Usage: program FILE, the source of a workflow. SIGNALBOX_ADDRESS is the URL of the server, SIGNALBOX_TOKEN a token of
// an administrator.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/signalbox-dev/signalbox/test/clients/testdata/go/client"
)

const project = "default"

// limit bounds all calls together.
const limit = 2 * time.Minute

// report is what the program prints.
type report struct {
	Workflow     string           `json:"workflow"`
	Run          string           `json:"run"`
	Status       client.RunStatus `json:"status"`
	Message      any              `json:"message"`
	Listed       []string         `json:"listed"`
	Failed       []string         `json:"failed"`
	Accepted     []string         `json:"accepted"`
	Unknown      refusal          `json:"unknown"`
	WithoutToken refusal          `json:"withoutToken"`
	WithoutRole  refusal          `json:"withoutRole"`
}

// refusal is an error of the API.
type refusal struct {
	Status int    `json:"status"`
	Code   int32  `json:"code"`
	Reason string `json:"reason"`
}

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	report, err := use(ctx, os.Getenv("SIGNALBOX_ADDRESS"), os.Getenv("SIGNALBOX_TOKEN"), os.Args[1])
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(report)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func use(ctx context.Context, address, token, file string) (r report, err error) {
	source, err := os.ReadFile(file)
	if err != nil {
		return r, err
	}
	api, err := connect(address, token)
	if err != nil {
		return r, err
	}
	text := string(source)
	published, err := api.PublishWorkflowWithResponse(ctx, project, client.PublishWorkflowRequest{Source: &text})
	if err != nil || published.JSON200 == nil {
		return r, unexpected("publish", err, published)
	}
	workflow := published.JSON200.Workflow.Name
	read, err := api.GetWorkflowWithResponse(ctx, project, workflow, nil)
	if err != nil || read.JSON200 == nil {
		return r, unexpected("read the workflow", err, read)
	}
	r.Workflow = read.JSON200.Workflow.Name
	run, err := complete(ctx, api, workflow)
	if err != nil {
		return r, err
	}
	if run.Output == nil {
		return r, fmt.Errorf("the run is %s without an output", run.Status)
	}
	output, _ := (*run.Output).(map[string]any)
	r.Run, r.Status, r.Message = id(run), run.Status, output["message"]
	if r.Listed, err = list(ctx, api, workflow, client.RunStatusCompleted, client.RunStatusFailed); err != nil {
		return r, err
	}
	if r.Failed, err = list(ctx, api, workflow, client.RunStatusFailed); err != nil {
		return r, err
	}
	if r.Accepted, err = publish(ctx, api, run); err != nil {
		return r, err
	}
	return r, refusals(ctx, api, address, workflow, &r)
}

// connect makes a client. Its calls have no token if token is empty.
func connect(address, token string) (*client.ClientWithResponses, error) {
	return client.NewClientWithResponses(address,
		client.WithRequestEditorFn(func(_ context.Context, req *http.Request) error {
			if token != "" {
				req.Header.Set("Authorization", "Bearer "+token)
			}
			return nil
		}))
}

// complete starts a run and reads it until it has ended.
func complete(ctx context.Context, api *client.ClientWithResponses, workflow string) (client.Run, error) {
	var input client.JsonValue = map[string]any{"name": "Ada"}
	started, err := api.StartRunWithResponse(ctx, project, client.StartRunRequest{Workflow: workflow, Input: &input})
	if err != nil || started.JSON200 == nil {
		return client.Run{}, unexpected("start a run", err, started)
	}
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		read, err := api.GetRunWithResponse(ctx, project, id(started.JSON200.Run), nil)
		if err != nil || read.JSON200 == nil {
			return client.Run{}, unexpected("read the run", err, read)
		}
		switch run := read.JSON200.Run; run.Status {
		case client.RunStatusCompleted, client.RunStatusFailed, client.RunStatusCanceled, client.RunStatusTerminated,
			client.RunStatusTimedOut:
			return run, nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return client.Run{}, ctx.Err()
		}
	}
}

// list returns the IDs of the runs of a workflow with one of the statuses.
func list(ctx context.Context, api *client.ClientWithResponses, workflow string,
	statuses ...client.RunStatus) ([]string, error) {
	listed, err := api.ListRunsWithResponse(ctx, project, &client.ListRunsParams{Workflow: &workflow, Statuses: &statuses})
	if err != nil || listed.JSON200 == nil {
		return nil, unexpected("list runs", err, listed)
	}
	ids := []string{}
	for _, run := range listed.JSON200.Runs {
		ids = append(ids, id(run))
	}
	return ids, nil
}

// id returns the ID of a run that exists: only the run of a dry run has none.
func id(run client.Run) string {
	if run.Id == nil {
		return ""
	}
	return *run.Id
}

// publish publishes an event about a run, with an extension attribute, and returns the IDs that were accepted.
func publish(ctx context.Context, api *client.ClientWithResponses, run client.Run) ([]string, error) {
	var data client.JsonValue = map[string]any{"run": id(run)}
	published, err := api.PublishEventsWithApplicationCloudeventsPlusJSONBodyWithResponse(ctx, project, client.CloudEvent{
		Specversion: "1.0", Id: "of-" +
			id(run), Source: "/clients", Type: "com.example.run.ended", Time: run.EndTime, Data: &data,
		AdditionalProperties: map[string]any{"attempt": 1},
	})
	if err != nil || published.JSON202 == nil {
		return nil, unexpected("publish an event", err, published)
	}
	ids := []string{}
	for _, event := range published.JSON202.Accepted {
		ids = append(ids, event.Id)
	}
	return ids, nil
}

// refusals makes calls that are refused, and adds their errors to the report.
func refusals(ctx context.Context, api *client.ClientWithResponses, address, workflow string, r *report) error {
	unknown, err := api.GetRunWithResponse(ctx, project, "unknown", nil)
	if err != nil || unknown.JSON404 == nil {
		return unexpected("read an unknown run", err, unknown)
	}
	r.Unknown = refused(unknown.StatusCode(), *unknown.JSON404)

	stranger, err := connect(address, "")
	if err != nil {
		return err
	}
	withoutToken, err := stranger.GetRunWithResponse(ctx, project, "unknown", nil)
	if err != nil || withoutToken.JSON401 == nil {
		return unexpected("read a run without a token", err, withoutToken)
	}
	r.WithoutToken = refused(withoutToken.StatusCode(), *withoutToken.JSON401)

	created, err := api.CreateTokenWithResponse(ctx,
		client.CreateTokenRequest{Name: "viewer-of-go", Roles: map[string]client.Role{project: client.Viewer}})
	if err != nil || created.JSON200 == nil {
		return unexpected("create a token", err, created)
	}
	viewer, err := connect(address, created.JSON200.Secret)
	if err != nil {
		return err
	}
	withoutRole, err := viewer.StartRunWithResponse(ctx, project, client.StartRunRequest{Workflow: workflow})
	if err != nil || withoutRole.JSON403 == nil {
		return unexpected("start a run as a viewer", err, withoutRole)
	}
	r.WithoutRole = refused(withoutRole.StatusCode(), *withoutRole.JSON403)
	return nil
}

// refused reads the members of an error.
func refused(status int, e client.Error) refusal {
	r := refusal{Status: status, Code: e.Code}
	if e.Details != nil {
		for _, detail := range *e.Details {
			if detail.Type == client.TypeGoogleapisComgoogleRpcErrorInfo && detail.Reason != nil {
				r.Reason = *detail.Reason
			}
		}
	}
	return r
}

// unexpected is the error of a call whose answer is not the one of the test.
func unexpected(call string, err error, answer interface{ GetBody() []byte }) error {
	if err != nil {
		return fmt.Errorf("%s: %w", call, err)
	}
	return fmt.Errorf("%s: the answer is %s", call, answer.GetBody())
}
