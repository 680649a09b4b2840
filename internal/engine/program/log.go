package program

import (
	"strings"

	"github.com/signalbox-dev/signalbox/internal/engine/flow"
	"github.com/signalbox-dev/signalbox/internal/sandbox/output"
)

// live returns the details of a program's heartbeats: what it has printed so far. The last line of a stream follows
// once it is complete: a sensitive value of which a part was printed would not be redacted.
func live(r flow.ProgramRequest, printed *output.Streams) func() (details any, changed bool) {
	var reported [2]int
	return func() (any, bool) {
		stdout, stderr := printed.Text()
		stdout, stderr = wholeLines(stdout), wholeLines(stderr)
		before := reported
		reported = [2]int{len(stdout), len(stderr)}
		return r.Log(stdout, stderr, flow.LiveLog), reported != before
	}
}

func wholeLines(text string) string { return text[:strings.LastIndexByte(text, '\n')+1] }
