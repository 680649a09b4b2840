package interp

import (
	"fmt"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/jq"
)

// ResourceRequest returns the request that reads a web resource. The authentication of the reference is evaluated
// without data. The error is a text for the author of the document.
func ResourceRequest(r dsl.Reference) (*HTTPRequest, error) {
	request := &HTTPRequest{Method: "GET", Output: dsl.OutputRaw, Redirect: true}
	if a := r.Authentication; a != nil {
		request.Authentication = &Authentication{Scheme: a.Scheme, Secret: a.Secret}
		if a.Properties != nil {
			properties, err := a.Properties.Eval(nil, nil, jq.NewFuel(DefaultLimits().ExpressionFuel))
			if err != nil {
				return nil, fmt.Errorf("the authentication: %w", err)
			}
			request.Authentication.Properties = properties
		}
	}
	setPlaceholders(request, r.URI, nil, nil, true)
	return request, nil
}
