package main

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/signalbox-dev/signalbox/internal/rpc/apierror"
)

// errorResponse is an answer with an error.
type errorResponse struct {
	// status is the HTTP status, or "default".
	status, name string
	// applies reports whether an operation may answer so; nil if all may.
	applies func(o operation) bool
	// retry reports whether the answer says when to retry.
	retry bool
}

func errorResponses() []errorResponse {
	changes := func(o operation) bool { return o.body || o.verb != http.MethodGet }
	return []errorResponse{
		{status: "400", name: "BadRequest"},
		{status: "401", name: "Unauthorized"},
		{status: "403", name: "Forbidden"},
		{status: "404", name: "NotFound", applies: func(o operation) bool { return len(o.variables) > 0 }},
		{status: "409", name: "Conflict", applies: changes},
		{status: "413", name: "ContentTooLarge", applies: func(o operation) bool { return o.body }},
		{status: "429", name: "TooManyRequests", retry: true},
		{status: "503", name: "ServiceUnavailable", retry: true},
		{status: "default", name: "OtherError"},
	}
}

// addErrors adds the answers with errors, each with the reasons of its status.
func (g *openAPIGenerator) addErrors() {
	responses := child(child(g.root, "components"), "responses")
	for _, e := range errorResponses() {
		response := mapping("description", "The reason is one of "+strings.Join(reasonsOf(e.status), ", ")+".")
		if e.retry {
			put(response, "headers", mapping("Retry-After", mapping("description", "Seconds after which a retry may succeed.",
				"schema", mapping("type", "integer"))))
		}
		put(response, "content", mapping("application/json", mapping("schema", reference("Error"))))
		put(responses, e.name, response)
	}
}

// reasonsOf returns the reasons of a status. The default has those of all statuses that have no answer of their own.
func reasonsOf(status string) []string {
	own := map[string]bool{}
	for _, e := range errorResponses() {
		own[e.status] = true
	}
	var names []string
	for _, r := range apierror.All() {
		for _, code := range r.Codes {
			s := strconv.Itoa(apierror.StatusOf(code, r.Name))
			if s == status || status == "default" && !own[s] {
				names = append(names, r.Name)
			}
		}
	}
	return slices.Compact(names)
}
