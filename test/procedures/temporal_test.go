package procedures_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/test/platform"
)

// loseTemporal loses the namespace of Temporal twice: first another one takes its place, then an empty one of the same
// name.
func loseTemporal(t *testing.T, g *guide) {
	i := operating(t, postgres.Get(t))
	asks := i.publish(t, "default", document("asks", listens))
	nightly := i.publish(t, "default", document("nightly", "  - done: {set: {a: 1}}\n", "schedule: {every: {hours: 1}}\n"))
	s := g.section(t, "Temporal is lost")
	began := time.Now().UTC().Format(time.RFC3339Nano)

	left := i.run(t, "default", asks, "waiting")
	i.stop(t)
	i.temporal.DeleteNamespace(t, i.namespace)
	i.namespace += "b"
	i.temporal.CreateNamespace(t, i.namespace)
	i.configure(t, i.variable("SIGNALBOX_ADDRESS"))
	i.start(t)
	i.eventually(t, "signalbox run start "+asks+" 2>&1 || true", "another Temporal")
	i.shell(t, "signalbox system adopt-temporal "+i.temporal.Address+" "+i.namespace+" --reason lost")
	i.eventually(t, "signalbox run list --stuck IN_ANOTHER_TEMPORAL -o name", left)
	i.do(t, s, "signalbox batch start --action terminate", "TEXT", "lost")
	i.await(t, "default", left, "terminated")

	lost := i.run(t, "default", asks, "waiting")
	i.temporal.DeleteNamespace(t, i.namespace)
	i.temporal.CreateNamespace(t, i.namespace)
	platform.Eventually(t, soon, func() string {
		_, reconciled, err := i.call(t, http.MethodPost, "/v1/system/runs:reconcile")
		_, body, failed := i.call(t, http.MethodGet, "/v1/projects/default/runs/"+lost)
		if err != nil || failed != nil || !strings.Contains(body, "execution_missing") {
			return fmt.Sprintf("the run has not failed: %v %s, %v %s", err, reconciled, failed, body)
		}
		return ""
	})
	list := s.take(t, "signalbox run list", "TIME", began)
	require.Equal(t, lost, strings.TrimSpace(i.perform(t, s, list+" -o name")))
	terminated := strings.Replace(list, "--error execution_missing", "--status terminated", 1)
	require.Equal(t, left, strings.TrimSpace(i.perform(t, s, terminated+" -o name")))
	replay := s.take(t, "signalbox batch start --action replay", "TIME", began)
	require.Contains(t, i.perform(t, s, replay), "would replay 1 run")
	i.perform(t, s, strings.Replace(replay, " --dry-run", "", 1))
	i.eventually(t, "signalbox run list --replay-of "+lost+" --status waiting", asks)
	i.until(t, s, i.ownedBy(t), "signalbox dispatcher list")
	i.until(t, s, `next`, "signalbox workflow show", "NAME", nightly)
}
