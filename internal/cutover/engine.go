package cutover

import (
	"context"
	"fmt"
	"time"

	"github.com/signalbox-dev/signalbox/internal/run"
)

// Temporal is the [run.Run].LegacyEngine whose runs may go on elsewhere: those of all others have nobody who works on them.
const Temporal = "temporal"

// EngineGone is the problem with which a run of another engine ends that was open there.
func EngineGone(engine string, was run.Status) *run.Problem {
	if engine == "" {
		engine = "unnamed"
	}
	return &run.Problem{
		Type: "https://signalbox.dev/errors/engine_gone", Status: 500, Title: "Engine gone", Instance: "/",
		Detail: fmt.Sprintf("the run was %s on the engine %q, which Signalbox does not have: nobody would ever have gone on with it, so it was canceled", was, engine),
	}
}

// Rows are the imported runs in our own tables.
type Rows interface {
	// OpenImports returns up to limit open imported runs of all projects and engines with IDs above after, in order, without input and
	// output.
	OpenImports(ctx context.Context, after string, limit int) ([]run.Run, error)
	// SettleImports cancels those of the runs that are open on an engine other than [Temporal], with their steps and waits, and audits
	// each. It returns which.
	SettleImports(ctx context.Context, list []run.Run, at time.Time) (ended []string, err error)
}
