package httpcall_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/testsuite"

	"github.com/signalbox-dev/signalbox/internal/engine/flow"
	"github.com/signalbox-dev/signalbox/internal/engine/httpcall"
)

// storage is a database that can be unavailable, and that counts its checks.
type storage struct {
	away  atomic.Bool
	asked atomic.Int32
}

func (s *storage) writable(context.Context) error {
	s.asked.Add(1)
	if s.away.Load() {
		return errors.New("away")
	}
	return nil
}

// storing returns a caller over a storage, and an origin with a large and a small response that counts its requests.
func storing(t *testing.T) (c *httpcall.Caller, s *storage, url string, requests *atomic.Int32) {
	t.Helper()
	s, requests = &storage{}, &atomic.Int32{}
	url = origin(t, func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		if r.URL.Path == "/large" {
			_, _ = io.WriteString(w, strings.Repeat("x", 4<<10))
		}
	})
	c = httpcall.New(httpcall.Options{AllowPrivate: loopback(), Writable: s.writable})
	t.Cleanup(c.Close)
	return c, s, url, requests
}

// A large response that cannot be stored now is handed over, and the activity waits with it.
func TestResponseWaitsForTheDatabase(t *testing.T) {
	t.Parallel()
	c, s, url, requests := storing(t)
	s.away.Store(true)
	large := patient(url+"/large", time.Minute)
	large.Inline = 64 << 10
	res, err := c.Call(t.Context(), large)
	require.NoError(t, err)
	require.NotNil(t, res.Continued)
	done := make(chan flow.HTTPResponse, 1)
	go func() {
		res, _ := c.Attach(t.Context(), flow.AttachRequest{ID: res.Continued.ID})
		done <- res
	}()
	require.Eventually(t, func() bool { return s.asked.Load() > 3 }, time.Minute, time.Millisecond)
	require.Empty(t, done)
	s.away.Store(false)
	require.Len(t, (<-done).Content, 4<<10+2)
	require.EqualValues(t, 1, requests.Load())

	s.away.Store(true)
	res, err = c.Call(t.Context(), patient(url+"/small", time.Minute))
	require.NoError(t, err)
	require.Nil(t, res.Continued, "a small answer needs no database")
}

// A call that is an activity from the start waits too, until it is canceled.
func TestActivityWaitsForTheDatabaseUntilItEnds(t *testing.T) {
	t.Parallel()
	c, s, url, _ := storing(t)
	s.away.Store(true)
	large := patient(url+"/large", 0)
	large.Local = false
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error, 1)
	go func() {
		_, err := c.Call(ctx, large)
		failed <- err
	}()
	require.Eventually(t, func() bool { return s.asked.Load() > 1 }, time.Minute, time.Millisecond)
	cancel()
	requireInterrupted(t, <-failed)
}

func TestDatabaseIsNotCheckedForEachResponse(t *testing.T) {
	t.Parallel()
	c, s, url, requests := storing(t)
	large := patient(url+"/large", time.Minute)
	large.Inline = 64 << 10
	began := time.Now()
	for range 50 {
		res, err := c.Call(t.Context(), large)
		require.NoError(t, err)
		require.Nil(t, res.Continued)
	}
	require.EqualValues(t, 50, requests.Load())
	require.LessOrEqual(t, float64(s.asked.Load()), 1+time.Since(began).Seconds())
}

// A local activity does not repeat requests that an earlier try of the workflow task may have sent.
func TestRepeatedWorkflowTaskSendsNothing(t *testing.T) {
	t.Parallel()
	var requests atomic.Int32
	url := origin(t, func(http.ResponseWriter, *http.Request) { requests.Add(1) })
	repeated := httpcall.New(httpcall.Options{AllowPrivate: loopback(), Repeated: func(string) bool { return true }})
	t.Cleanup(repeated.Close)
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestActivityEnvironment()
	env.RegisterActivity(repeated.Call)
	value, err := env.ExecuteLocalActivity(repeated.Call, patient(url, time.Minute))
	require.NoError(t, err)
	var res flow.HTTPResponse
	require.NoError(t, value.Get(&res))
	require.True(t, res.Postponed)
	require.Len(t, res.Attempts, 1)
	require.True(t, res.Attempts[0].Unknown)
	require.Zero(t, requests.Load())
}
