package operations_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/conn/conntest"
	"github.com/signalbox-dev/signalbox/test/counter"
	"github.com/signalbox-dev/signalbox/test/platform"
)

// serverIncidents are those of processes: stopped, frozen, without memory, with a certificate that ends.
func serverIncidents() map[string]incident {
	return map[string]incident{
		"all servers killed": {
			breaks: func(_ *testing.T, w *watched) {
				w.Kill()
				for _, each := range w.workers {
					each.Kill()
				}
			},
			alerts: []expected{
				{name: "ServersMissing", severity: "page", sees: []string{"connection refused"}, verifies: []string{connected}},
			},
			silent: []string{"ServerUnreachable"},
			repairs: func(t *testing.T, w *watched) {
				w.restartAPI(t)
				for n := range w.workers {
					w.restart(t, n)
				}
			},
		},
		"the owner of the dispatcher frozen": {
			breaks: func(t *testing.T, w *watched) {
				n := w.waitForOwner(t)
				w.names["SERVER:8080"] = w.workers[n].Address
				w.faulted = time.Now()
				w.workers[n].Freeze()
				t.Cleanup(w.workers[n].Thaw)
			},
			alerts: []expected{{
				name: "ServerUnreachable", severity: "ticket", sees: []string{"deadline|no answer|timeout"},
				verifies: []string{`(?s)alive.*alive`},
			}},
			repairs: func(_ *testing.T, w *watched) {
				for _, each := range w.workers {
					each.Thaw()
				}
			},
		},
		"a server near its memory limit": {
			breaks:  func(t *testing.T, w *watched) { w.limitMemory(t, 0.95) },
			repairs: func(t *testing.T, w *watched) { w.moreMemory(t) },
			alerts: []expected{{
				name: "MemoryNearLimit", severity: "page", sees: []string{"signalbox_memory_used_bytes", "memory"},
				verifies: []string{"signalbox_memory_limit_bytes 2.147483648e\\+09"},
			}},
		},
		"a server at four fifths of its memory limit": {
			breaks:  func(t *testing.T, w *watched) { w.limitMemory(t, 0.78) },
			repairs: func(t *testing.T, w *watched) { w.moreMemory(t) },
			alerts: []expected{{
				name: "MemoryNearLimit", severity: "ticket", sees: []string{"signalbox_memory_used_bytes"},
				verifies: []string{"signalbox_memory_limit_bytes 2.147483648e\\+09"},
			}},
		},
		"a server that computes with a fifth of a processor": {
			parts:   parts{workers: 1},
			breaks:  func(t *testing.T, w *watched) { w.limitProcessor(t, 0.2) },
			repairs: func(_ *testing.T, w *watched) { w.undo() },
			alerts: []expected{{
				name: "ProcessorThrottled", severity: "ticket",
				sees:     []string{"too little", "signalbox_processor_throttled_periods_total"},
				verifies: []string{`signalbox_processor_limit(\{[^}]*\})? 2\b`},
			}},
			// a fifth is less than a server requires: runs whose tasks take too long are reported
			also: []string{"ServerUnreachable", "RunsStuck", "ProblemsUnacknowledged"},
		},
		"a client certificate with ten minutes left": {
			short: true,
			parts: parts{frontend: true, workers: 1, prepare: func(t *testing.T, w *watched) { w.certify(t, 30*24*time.Hour) }},
			breaks: func(t *testing.T, w *watched) {
				w.issue(t, w.certificates, 10*time.Minute)
			},
			repairs: func(t *testing.T, w *watched) { w.issue(t, w.certificates, 30*24*time.Hour) },
			alerts: []expected{{
				name: "CertificateExpiring", severity: "page", sees: []string{`"certificate"[^}]*impaired`, "certificate"},
				verifies: []string{`"certificate"[^}]*"up"`},
			}},
		},
		"a client certificate with 3 days left": {
			parts: parts{frontend: true, workers: 1, prepare: func(t *testing.T, w *watched) { w.certify(t, 30*24*time.Hour) }},
			breaks: func(t *testing.T, w *watched) {
				w.issue(t, w.certificates, 3*24*time.Hour)
			},
			repairs: func(t *testing.T, w *watched) { w.issue(t, w.certificates, 30*24*time.Hour) },
			alerts: []expected{{
				name: "CertificateExpiring", severity: "ticket", sees: []string{`"certificate"[^}]*impaired`},
				verifies: []string{`"certificate"[^}]*"up"`},
			}},
		},
	}
}

// restartAPI starts the API again on its port after it has ended.
func (w *watched) restartAPI(t *testing.T) {
	t.Helper()
	o := w.options
	o.Roles, o.Port = []string{platform.API}, portOf(t, w.Address)
	w.Server = platform.StartServer(t, o)
}

// limitMemory starts a worker again with a limit of which it uses this share. The variable of the Go runtime accepts
// limits that are as low.
func (w *watched) limitMemory(t *testing.T, share float64) {
	t.Helper()
	w.stop(t, 0)
	w.restart(t, 0, "--memory-limit", "1GiB")
	w.names["SERVER:8080"] = w.workers[0].Address
	var used float64
	platform.Eventually(t, soon, func() string {
		value, series, err := counter.Metric(t.Context(), w.workers[0].Server, "signalbox_memory_used_bytes")
		if err != nil || series != 1 {
			return fmt.Sprintf("%d series: %v", series, err)
		}
		used = value
		return ""
	})
	w.stop(t, 0)
	w.faulted = time.Now()
	w.restartIn(t, 0, fmt.Sprintf("GOMEMLIMIT=%d", int64(used/share)))
}

// moreMemory raises the limit, as the runbook does.
func (w *watched) moreMemory(t *testing.T) {
	t.Helper()
	w.stop(t, 0)
	w.restart(t, 0, "--memory-limit", "2GiB")
}

// limitProcessor starts a worker again in a control group that gets so many processors, and runs that compute for
// longer than the alert takes.
func (w *watched) limitProcessor(t *testing.T, processors float64) {
	t.Helper()
	program, change, reason := platform.InProcessorGroup(t, platform.ServerBinary(t), 1)
	if reason != "" {
		t.Skipf("no control group limits the server: %s", reason)
	}
	w.stop(t, 0)
	o := w.options
	o.Port, o.Binary = portOf(t, w.workers[0].Address), program
	s := platform.LaunchServer(t, o)
	s.AwaitAPI(t)
	w.workers[0], w.undo = &member{Server: s, id: s.ID(t)}, func() { change(2) }
	w.names["SERVER:8080"] = s.Address
	w.faulted = time.Now()
	change(processors)
	computes := w.Publish(t, platform.Document("computes",
		"  - each:\n      for:\n        each: n\n        in: ${ [range(10000)] }\n      do:\n"+
			"        - add:\n            set: {sum: '${ [range(20000)] | add }'}\n"))
	for range 40 { // each uses some 20 s of a processor
		w.Start(t, computes, "")
	}
}

// certify makes the frontend require client certificates, and gives one to the servers.
func (w *watched) certify(t *testing.T, lasts time.Duration) {
	t.Helper()
	a, err := conntest.NewAuthority()
	require.NoError(t, err)
	w.authority, w.certificates = a, t.TempDir()
	ca, err := a.Write(w.certificates, "ca")
	require.NoError(t, err)
	server, err := a.Server()
	require.NoError(t, err)
	w.frontend.SetTLS(a.ServerConfig(server, true))
	cert, key := w.issue(t, w.certificates, lasts)
	w.options.Env = append(w.options.Env, "SIGNALBOX_TEMPORAL_TLS_CA_FILE="+ca, "SIGNALBOX_TEMPORAL_TLS_CERT_FILE="+cert,
		"SIGNALBOX_TEMPORAL_TLS_KEY_FILE="+key)
}

// issue writes a client certificate into the files of a folder, which servers read.
func (w *watched) issue(t *testing.T, folder string, lasts time.Duration) (certFile, keyFile string) {
	t.Helper()
	return writeClient(t, w.authority, folder, lasts)
}

// writeClient issues a certificate that began 30 days ago: the end of a short lifetime is not reported days before.
func writeClient(t *testing.T, a *conntest.Authority, folder string, lasts time.Duration) (certFile, keyFile string) {
	t.Helper()
	now := time.Now()
	client, err := a.ClientBetween("signalbox", now.AddDate(0, 0, -30), now.Add(lasts))
	require.NoError(t, err)
	certFile, keyFile, err = client.Write(folder, "client")
	require.NoError(t, err)
	return certFile, keyFile
}

// restartUntrusted starts a worker again with a certificate of another authority, which Temporal refuses.
func (w *watched) restartUntrusted(t *testing.T, n int) {
	t.Helper()
	a, err := conntest.NewAuthority()
	require.NoError(t, err)
	w.untrusted = t.TempDir()
	cert, key := writeClient(t, a, w.untrusted, 30*24*time.Hour)
	w.restartIn(t, n, "SIGNALBOX_TEMPORAL_TLS_CERT_FILE="+cert, "SIGNALBOX_TEMPORAL_TLS_KEY_FILE="+key)
}

// restartIn starts a worker again on its port, with further variables, and waits until its API is ready.
func (w *watched) restartIn(t *testing.T, n int, env ...string) {
	t.Helper()
	o := w.options
	o.Port, o.Env = portOf(t, w.workers[n].Address), slices.Concat(o.Env, env)
	s := platform.LaunchServer(t, o)
	s.AwaitAPI(t)
	w.workers[n] = &member{Server: s, id: s.ID(t)}
}
