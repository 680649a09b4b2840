package run

import (
	"context"
	"fmt"
	"time"
)

// LegacyTemporal is the [Run].LegacyEngine whose runs may continue elsewhere. The runs of all other engines cannot
// continue.
const LegacyTemporal = "temporal"

// EngineGone returns the error of a run that was open on another engine and was canceled.
func EngineGone(engine string, was Status) *Error {
	if engine == "" {
		engine = "unnamed"
	}
	return &Error{
		Type: errorTypeBase + "engine_gone", Status: 500, Title: "Engine gone", Instance: "/",
		Detail: fmt.Sprintf("the run was %s on the engine %q, which Signalbox does not have: it could never have "+
			"continued, so it was canceled", was, engine),
	}
}

// ImportedRows are the imported runs in our own tables.
type ImportedRows interface {
	// OpenImports returns up to limit open imported runs of all projects and engines with IDs above after, in order,
	// without input and output.
	OpenImports(ctx context.Context, after string, limit int) ([]Run, error)
	// EndImports cancels those of the runs that are open on an engine other than [LegacyTemporal], with their steps and
	// waits, and writes an audit entry for each. It returns their IDs.
	EndImports(ctx context.Context, list []Run, at time.Time) (ended []string, err error)
}
