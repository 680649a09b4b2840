package integration_test

import (
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/test/platform"
)

// TestOutageIsAnAnnotation kills Temporal and starts it again: the outage is one annotation, open at first, also after
// the server that saw it was killed.
func TestOutageIsAnAnnotation(t *testing.T) {
	t.Parallel()
	temporal := platform.StartTemporal(t)
	options := platform.ServerOptions{Temporal: temporal.Address, Store: platform.SQLite(t), Port: platform.FreePort(t)}
	s := platform.StartServer(t, options)
	begun := time.Now()
	list := func(kinds ...string) []*signalboxv1.Annotation {
		res, err := s.Projects.ListAnnotations(t.Context(),
			connect.NewRequest(&signalboxv1.ListAnnotationsRequest{Project: platform.DefaultProject, Kinds: kinds}))
		require.NoError(t, err)
		return res.Msg.GetAnnotations()
	}
	name := s.Publish(t, platform.Document("annotated", hello))
	require.Empty(t, list("outage"))
	require.Equal(t, name, list("publish")[0].GetSubject())

	temporal.Kill()
	platform.Eventually(t, soon, func() string {
		if found := list("outage"); len(found) != 1 || found[0].GetEnd() != nil {
			return "no open outage"
		}
		return ""
	})
	temporal.Restart(t)
	var outage *signalboxv1.Annotation
	platform.Eventually(t, soon, func() string {
		if outage = list("outage")[0]; outage.GetEnd() == nil {
			return "the outage lasts"
		}
		return ""
	})
	require.Len(t, list("outage"), 1)
	require.WithinRange(t, outage.GetStart().AsTime(), begun, outage.GetEnd().AsTime())

	s.Kill()
	s = platform.StartServer(t, options)
	require.Equal(t, outage.String(), list("outage")[0].String(), "it is stored")
}
