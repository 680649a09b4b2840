package health_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/signalbox-dev/signalbox/internal/health"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// platform is a process with both roles and three dependencies that can be broken.
type platform struct {
	health                   *health.Health
	store, pollers, temporal atomic.Pointer[error]
}

func newPlatform(roles ...string) *platform {
	p := &platform{}
	check := func(fault *atomic.Pointer[error]) health.Checker {
		return health.CheckFunc(func(context.Context) error {
			if err := fault.Load(); err != nil {
				return *err
			}
			return nil
		})
	}
	p.health = health.New(time.Now, []health.Dependency{
		{Name: "store", Checker: check(&p.store), Required: []string{"api"}, Used: []string{"worker"}},
		{Name: "pollers", Checker: check(&p.pollers), Required: []string{"worker"}},
		{Name: "temporal", Checker: check(&p.temporal), Used: []string{"api", "worker"}},
	}, roles...)
	return p
}

func breakIt(fault *atomic.Pointer[error], text string) {
	err := errors.New(text)
	fault.Store(&err)
}

func (p *platform) get(t *testing.T, target string) (int, health.Report) {
	t.Helper()
	response := httptest.NewRecorder()
	p.health.Readyz(response, httptest.NewRequestWithContext(health.WithErrors(t.Context()), http.MethodGet, target, nil))
	var report health.Report
	require.NoError(t, json.Unmarshal(response.Body.Bytes(), &report))
	return response.Code, report
}

func TestReadyzPerRole(t *testing.T) {
	t.Parallel()
	both := []string{"api", "worker"}
	tests := map[string]struct {
		roles    []string
		down     []string
		target   string
		wantCode int
		want     string
	}{
		"everything up":                         {both, nil, "/readyz", 200, health.Ready},
		"temporal away: the API refuses itself": {both, []string{"temporal"}, "/readyz", 200, health.Degraded},
		"no pollers: the API still serves":      {both, []string{"pollers"}, "/readyz", 200, health.Degraded},
		"no pollers, worker asked for":          {both, []string{"pollers"}, "/readyz?role=worker", 503, health.Unavailable},
		"no pollers, API asked for":             {both, []string{"pollers"}, "/readyz?role=api", 200, health.Ready},
		"no pollers, a worker alone": {
			[]string{"worker"}, []string{"pollers"}, "/readyz", 503, health.Unavailable},
		"no store: the API cannot": {both, []string{"store"}, "/readyz", 503, health.Unavailable},
		"no store: the worker can": {both, []string{"store"}, "/readyz?role=worker", 200, health.Degraded},
		"a role it does not have":  {[]string{"api"}, nil, "/readyz?role=worker", 404, health.Unavailable},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlatform(test.roles...)
			faults := map[string]*atomic.Pointer[error]{"store": &p.store, "pollers": &p.pollers, "temporal": &p.temporal}
			for _, name := range test.down {
				breakIt(faults[name], name+" is away")
			}
			code, report := p.get(t, test.target)
			require.Equal(t, test.wantCode, code)
			require.Equal(t, test.want, report.Status)
		})
	}
}

func TestReportHasErrorAndSince(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPlatform("api", "worker")
		begin := time.Now()
		p.get(t, "/readyz")
		<-time.After(time.Minute)
		breakIt(&p.store, "connection refused")
		broken := time.Now()
		p.get(t, "/readyz")
		<-time.After(time.Minute)
		code, report := p.get(t, "/readyz")
		require.Equal(t, http.StatusServiceUnavailable, code)
		require.Equal(t, []string{"store"}, report.Roles[0].Because)
		require.Equal(t, "connection refused", report.Roles[0].LastError)
		require.WithinDuration(t, broken, report.Roles[0].Since, 0)
		require.Equal(t, health.Down, report.Dependencies[0].State)
		require.WithinDuration(t, broken, report.Dependencies[0].Since, 0)
		require.WithinDuration(t, begin, report.Dependencies[1].Since, 0)

		p.store.Store(nil)
		<-time.After(time.Minute)
		_, report = p.get(t, "/readyz")
		require.Equal(t, health.Ready, report.Status)
		require.Equal(t, "connection refused", report.Dependencies[0].LastError, "the last error is kept")
	})
}

func TestTitleSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, testTitle)
}

func testTitle(t *testing.T) {
	fault := errors.New("host:7233 and other:7233 differ")
	h := health.New(time.Now, []health.Dependency{{
		Name: "placement", Used: []string{"api"}, Checker: health.CheckFunc(func(context.Context) error { return fault }),
		Title: func() string { return "This server uses another Temporal" },
	}}, "api")
	report := h.Report(t.Context())
	require.Equal(t, "This server uses another Temporal", report.Dependencies[0].Title)
	require.Equal(t, "host:7233 and other:7233 differ", report.Dependencies[0].LastError)
	require.Equal(t, "This server uses another Temporal: host:7233 and other:7233 differ", report.Roles[0].LastError)
	fault = nil
	<-time.After(time.Second)
	require.Empty(t, h.Report(t.Context()).Dependencies[0].Title)
}

// A condition is read on every report: no cache is between the monitor and the report.
func TestConditionIsReportedUnchanged(t *testing.T) {
	t.Parallel()
	begin := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	now := begin.Add(time.Hour)
	condition := health.Condition{State: "connected", Since: begin, Usable: true}
	p := &platform{health: health.New(func() time.Time { return now }, []health.Dependency{{
		Name: "temporal", Condition: func() health.Condition {
			return condition
		}, Required: []string{"worker"}, Used: []string{"api"},
	}}, "api", "worker")}

	code, report := p.get(t, "/readyz")
	require.Equal(t, http.StatusOK, code)
	require.Equal(t, health.Ready, report.Status)
	require.Equal(t, []health.DependencyState{{Name: "temporal", State: health.Up, Condition: "connected", Since: begin}},
		report.Dependencies)

	condition = health.Condition{
		State: "down", Kind: "hung", Since: begin.Add(time.Minute), Err: errors.New("temporal is hung")}
	_, report = p.get(t, "/readyz")
	require.Equal(t, health.Degraded, report.Status)
	require.Equal(t, []health.DependencyState{{
		Name: "temporal", State: health.Down, Condition: "down", Kind: "hung", Since: begin.Add(time.Minute),
		LastError: "temporal is hung", LastErrorAt: &now,
	}}, report.Dependencies, "reported at once")
	code, _ = p.get(t, "/readyz?role=worker")
	require.Equal(t, http.StatusServiceUnavailable, code)

	condition = health.Condition{
		State: "degraded", Kind: "slow", Since: now, Err: errors.New("temporal is slow"), Usable: true}
	code, report = p.get(t, "/readyz?role=worker")
	require.Equal(t, http.StatusOK, code, "it can be used, also by roles that require it")
	require.Equal(t, health.Degraded, report.Status)
	require.Equal(t, []string{"temporal"}, report.Roles[0].Because)
	require.Equal(t, "temporal is slow", report.Roles[0].LastError)
	require.Equal(t, health.Impaired, report.Dependencies[0].State)

	condition = health.Condition{State: "connected", Since: now, Usable: true}
	_, report = p.get(t, "/readyz")
	require.Equal(t, health.Ready, report.Status)
	require.Equal(t, "temporal is slow", report.Dependencies[0].LastError, "the last error is kept")
}

func TestHungDependencyIsDownAfterTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var checks atomic.Int32
		h := health.New(time.Now,
			[]health.Dependency{{Name: "store", Required: []string{"api"},
				Checker: health.CheckFunc(func(ctx context.Context) error {
					checks.Add(1)
					<-ctx.Done()
					return ctx.Err()
				})}}, "api")
		begin := time.Now()
		var probes sync.WaitGroup
		for range 20 {
			probes.Go(func() { h.Report(t.Context()) })
		}
		probes.Wait()
		require.Equal(t, 2*time.Second, time.Since(begin))
		require.EqualValues(t, 1, checks.Load(), "a burst of probes makes one check")

		// The first prober's cancellation does not mark the dependency as down; the second prober does not wait for it.
		<-time.After(time.Minute)
		impatient, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		probes.Go(func() { h.Report(t.Context()) })
		synctest.Wait()
		report := h.Report(impatient)
		require.Contains(t, report.Dependencies[0].LastError, "request was canceled")
		probes.Wait()
	})
}

func TestDrainingIsUnavailableButAlive(t *testing.T) {
	t.Parallel()
	p := newPlatform("api")
	p.health.Drain()
	code, report := p.get(t, "/readyz")
	require.Equal(t, http.StatusServiceUnavailable, code)
	require.True(t, report.Stopping)

	response := httptest.NewRecorder()
	p.health.Livez(response, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/livez", nil))
	require.Equal(t, http.StatusOK, response.Code)
	require.JSONEq(t, `{"status":"alive"}`, response.Body.String())
}

// Until the first attempt to use a dependency has ended, no role that uses it is ready: it is not known yet what it
// can do.
func TestNoRoleIsReadyBeforeTheFirstAttemptEnded(t *testing.T) {
	t.Parallel()
	condition := health.Condition{
		State: "connecting", Pending: true, Err: errors.New("connecting to Temporal, first attempt")}
	p := &platform{health: health.New(time.Now, []health.Dependency{{
		Name: "temporal", Condition: func() health.Condition {
			return condition
		}, Required: []string{"worker"}, Used: []string{"api"},
	}}, "api", "worker", "other")}
	for target, want := range map[string]int{
		"/readyz": 503, "/readyz?role=api": 503, "/readyz?role=worker": 503, "/readyz?role=other": 200} {
		code, report := p.get(t, target)
		require.Equal(t, want, code, target)
		if want != http.StatusOK {
			require.Equal(t, health.Unavailable, report.Status, target)
			require.Contains(t, report.Roles[0].LastError, "first attempt")
		}
	}
	condition = health.Condition{State: "down", Err: errors.New("temporal is unreachable")}
	code, report := p.get(t, "/readyz")
	require.Equal(t, http.StatusOK, code)
	require.Equal(t, health.Degraded, report.Status)
	code, _ = p.get(t, "/readyz?role=worker")
	require.Equal(t, http.StatusServiceUnavailable, code)
}
