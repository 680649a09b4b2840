// Package api has the OpenAPI document of the API's REST paths, which the server returns at /openapi.yaml. The packages
// below it have the messages and the clients in Go.
package api

import _ "embed"

//go:embed openapi.yaml
var document string

// OpenAPI returns the document, in YAML.
func OpenAPI() string { return document }
