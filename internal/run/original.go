package run

import "context"

// The kinds of an [Original].
const (
	// OriginalInput is a run's input without redaction.
	OriginalInput = "input"
	// OriginalEnd is the end of a run, OriginalStep one step, both in the JSON of package sealed.
	OriginalEnd  = "end"
	OriginalStep = "step"
	// OriginalSecrets is a list of texts that were sensitive somewhere in the run. There may be several.
	OriginalSecrets = "taint"
)

// Original is a sealed value that redaction marks stand for.
type Original struct {
	What string
	// Number is the step's; for secrets, any free number.
	Number int64
	// KeyID identifies the key that it was sealed with.
	KeyID  string
	Sealed []byte
}

// Secrecy determines how the values of a run are shown.
type Secrecy struct {
	RunID, Project, DocumentHash string
	Secrets                      []Original
}

// SealedStore reads originals. They are written with the rows that have marks, and deleted with the run.
type SealedStore interface {
	// Secrecies returns those of the runs that exist.
	Secrecies(ctx context.Context, ids []string) ([]Secrecy, error)
	// SealedOf returns a run's originals of one kind; for steps, those with numbers above after, up to the number upTo.
	SealedOf(ctx context.Context, id, what string, after, upTo int64) ([]Original, error)
}
