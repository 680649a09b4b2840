package examples_test

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/test/platform"
	"github.com/signalbox-dev/signalbox/test/promise"
)

// The test follows the example's README: two post offices start before Temporal does, one owns the dispatcher, its
// process is killed, the other takes over, and one that stops hands over. No letter is lost, and none is delivered
// twice.
func TestDispatchExampleDeliversOnceAcrossCrashes(t *testing.T) {
	t.Parallel()
	url := os.Getenv(platform.RedisVariable)
	if url == "" {
		t.Skipf("%s is not set", platform.RedisVariable)
	}
	const ttl = 3 * time.Second
	prefix := "post-" + rand.Text() + ":"
	temporal := platform.ReserveTemporal(t)
	binary, data := platform.BuildExample(t, "dispatch"), t.TempDir()
	open := func(name string) *postOffice {
		return openPost(t, binary, name,
			"-temporal", temporal.Address, "-redis", url, "-prefix", prefix, "-data", data, "-ttl", ttl.String())
	}
	anna, ben := open("anna"), open("ben")

	anna.send(t, "early") // Temporal is down, and the letter is accepted nevertheless
	temporal = temporal.Restart(t)
	requireDelivered(t, data, "early")
	first := anna.owned(t, "")
	require.Equal(t, "dispatcher-post-letters", first.ID)
	require.Equal(t, first, ben.owned(t, ""), "both say the same")

	crashed, other := anna, ben
	if strings.HasPrefix(first.Owner, "ben-") {
		crashed, other = ben, anna
	}
	crashed.Kill()
	began := time.Now()
	other.send(t, "orphaned")
	second := other.owned(t, first.Owner)
	require.Less(t, time.Since(began), promise.Limit(ttl+5*time.Second))
	require.True(t, strings.HasPrefix(second.Owner, other.name+"-"), second.Owner)
	require.Greater(t, second.Epoch, first.Epoch)
	requireDelivered(t, data, "orphaned")
	platform.Eventually(t, limit, func() string { // the takeover is reported a moment after it is done
		if strings.Contains(other.Output(), "outcome=takeover") {
			return ""
		}
		return "the takeover is not reported"
	})

	back := open(crashed.name)
	other.Terminate()
	code, ended := other.WaitFor(limit)
	require.True(t, ended, "it stops by itself")
	require.Zero(t, code, other.Output())
	third := back.owned(t, second.Owner)
	platform.Eventually(t, limit, func() string { // as above
		if strings.Contains(back.Output(), "outcome=handover") {
			return ""
		}
		return "the handover is not reported: nothing was to be terminated"
	})
	require.Greater(t, third.Epoch, second.Epoch)
	back.send(t, "late")
	requireDelivered(t, data, "late")
	delivered := func() string { return anna.Output() + ben.Output() + back.Output() }
	for _, letter := range []string{"early", "orphaned", "late"} {
		put := regexp.MustCompile("letter=" + letter + " to=ada attempt=[0-9]+ again=false")
		platform.Eventually(t, limit, func() string { // the delivery is reported a moment after it is done
			if put.MatchString(delivered()) {
				return ""
			}
			return "no office reports the letter " + letter
		})
		require.Len(t, put.FindAllString(delivered(), -1), 1, delivered())
	}
}

// postOffice is the example as a process.
type postOffice struct {
	*platform.Process

	name, url string
}

// ownership is the owner of the dispatcher as the service reports it.
type ownership struct {
	ID, Owner, Lease string
	Epoch            int64
}

func openPost(t *testing.T, binary, name string, args ...string) *postOffice {
	t.Helper()
	address := platform.Address(platform.FreePort(t))
	p := &postOffice{name: name, url: "http://" + address}
	p.Process = platform.StartProcess(t, name, binary, nil, append([]string{"-name", name, "-listen", address}, args...))
	platform.Eventually(t, limit, func() string {
		if !strings.Contains(p.Output(), "The post office is open") {
			return "is not open"
		}
		return ""
	})
	return p
}

// send posts a letter.
func (p *postOffice) send(t *testing.T, id string) {
	t.Helper()
	platform.Eventually(t, limit, func() string {
		res, err := http.Post(p.url+"/letters", "application/json",
			strings.NewReader(fmt.Sprintf(`{"id": %q, "to": "ada", "text": "dear Ada"}`, id)))
		if err != nil {
			return err.Error()
		}
		require.NoError(t, res.Body.Close())
		require.Equal(t, http.StatusAccepted, res.StatusCode)
		return ""
	})
}

// owned waits until the dispatcher has an owner other than the one before.
func (p *postOffice) owned(t *testing.T, before string) (o ownership) {
	t.Helper()
	platform.Eventually(t, limit, func() string {
		res, err := http.Get(p.url + "/dispatcher")
		if err != nil {
			return err.Error()
		}
		defer func() { _ = res.Body.Close() }() // read to the end below
		o = ownership{}
		if err := json.NewDecoder(res.Body).Decode(&o); err != nil {
			return err.Error()
		}
		if o.Lease != "held" || o.Epoch == 0 || o.Owner == before {
			return fmt.Sprintf("is %+v", o)
		}
		return ""
	})
	return o
}

// requireDelivered waits until a letter is in its mailbox file.
func requireDelivered(t *testing.T, data, id string) {
	t.Helper()
	platform.Eventually(t, limit, func() string {
		text, err := os.ReadFile(filepath.Join(data, "mailboxes", "ada", id))
		if err != nil {
			return err.Error()
		}
		require.Equal(t, "dear Ada", string(text))
		return ""
	})
}
