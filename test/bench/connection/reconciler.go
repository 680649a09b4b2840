package connection

import (
	"context"
	"fmt"
	"math"
	"time"

	"connectrpc.com/connect"
	"go.temporal.io/api/workflowservice/v1"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/conn/conntest"
	"github.com/signalbox-dev/signalbox/test/bench/figure"
	"github.com/signalbox-dev/signalbox/test/platform"
	"github.com/signalbox-dev/signalbox/test/promise"
)

const (
	startCallers = 32
	// warmStarts are not counted, comparedStarts are timed before each pass; during it as many as fit.
	warmStarts, comparedStarts = 20, 100
	// sampleEvery is how often the server's memory is sampled during a pass, and the interval of the starts.
	sampleEvery = 50 * time.Millisecond
)

// passes has the durations and costs of the reconciler's passes, one value per round.
type passes struct {
	store    string
	open     int
	checked  []float64
	asked    map[string][]float64 // requests to Temporal by method
	took     promise.Times
	cpu      promise.Times // of the server, in the pass
	idle     []float64     // its memory before, in MB
	most     []float64     // its memory in the pass
	starts   promise.Times // of runs, idle
	starting promise.Times // of runs, in the pass
}

// askedMethods returns the methods by which a pass reads executions.
func askedMethods() []string {
	return []string{"ListWorkflowExecutions", "DescribeWorkflowExecution", "GetWorkflowExecutionHistoryReverse"}
}

// reconciliations makes dry passes over many open runs without a difference, which is the usual case.
func reconciliations(t platform.T, temporal *platform.Temporal, store platform.Store, open, rounds int) *passes {
	frontend := conntest.Run(t, conntest.Options{Upstream: temporal.Address})
	server := platform.StartServer(t, platform.ServerOptions{Temporal: frontend.Addr(), Store: store})
	waiting := server.Publish(t, platform.Document("waiting", "  - rest:\n      wait: {hours: 1}\n"))
	start := func() error { _, err := server.TryStart(t.Context(), waiting, `{}`); return err }
	if err := platform.Concurrently(open, startCallers, start); err != nil {
		t.Fatalf("start %d runs: %v", open, err)
	}
	listed(t, temporal, open)
	out := &passes{store: store.Driver, open: open, asked: map[string][]float64{}}
	if _, err := starts(t.Context(), start, warmStarts, nil); err != nil {
		t.Fatalf("start a run: %v", err)
	}
	for range rounds {
		out.round(t, frontend, server, start)
	}
	return out
}

// listed waits until Temporal lists all open runs, which is a moment after their start.
func listed(t platform.T, temporal *platform.Temporal, open int) {
	c := platform.DialTemporal(t, temporal.Address)
	platform.Eventually(t, patience, func() string {
		count, err := c.CountWorkflow(t.Context(),
			&workflowservice.CountWorkflowExecutionsRequest{Query: "ExecutionStatus = 'Running'"})
		switch {
		case err != nil:
			return err.Error()
		case count.GetCount() < int64(open):
			return fmt.Sprintf("Temporal lists %d of %d open runs", count.GetCount(), open)
		}
		return ""
	})
}

func (p *passes) round(t platform.T, frontend *conntest.Frontend, server *platform.Server, start func() error) {
	idle, err := starts(t.Context(), start, comparedStarts, nil)
	if err != nil {
		t.Fatalf("start a run: %v", err)
	}
	p.starts = append(p.starts, idle...)
	before := map[string]int{}
	for _, method := range askedMethods() {
		before[method] = frontend.Calls(method)
	}
	memory, cpu := server.Memory(t), server.CPU(t)
	p.idle = append(p.idle, memory)
	over := make(chan struct{})
	var pass *connect.Response[signalboxv1.ReconcileResponse]
	var failed error
	go func() {
		defer close(over)
		pass, failed = server.System.Reconcile(t.Context(), connect.NewRequest(&signalboxv1.ReconcileRequest{DryRun: true}))
	}()
	most := memory
	busy, err := starts(t.Context(), func() error {
		most = max(most, server.Memory(t))
		return start()
	}, math.MaxInt, over)
	if err != nil {
		t.Fatalf("start a run during a pass: %v", err)
	}
	<-over
	if failed != nil {
		t.Fatalf("reconcile: %v", failed)
	}
	p.starting, p.most = append(p.starting, busy...), append(p.most, max(most, server.Memory(t)))
	p.took, p.cpu = append(p.took, pass.Msg.GetTook().AsDuration()), append(p.cpu, server.CPU(t)-cpu)
	p.checked = append(p.checked, float64(pass.Msg.GetChecked()))
	for _, method := range askedMethods() {
		p.asked[method] = append(p.asked[method], float64(frontend.Calls(method)-before[method]))
	}
}

// starts times n starts at an even pace, or fewer if over is closed before.
func starts(ctx context.Context, start func() error, n int, over <-chan struct{}) (promise.Times, error) {
	var out promise.Times
	ticker := time.NewTicker(sampleEvery)
	defer ticker.Stop()
	for range n {
		select {
		case <-over:
			return out, nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-ticker.C:
		}
		began := time.Now()
		if err := start(); err != nil {
			return nil, err
		}
		out = append(out, time.Since(began))
	}
	return out, nil
}

func (p *passes) markdown(out printer) {
	out("A requested pass lists all open runs and describes single ones in Temporal for ten seconds, the measured " +
		"duration; a background pass describes")
	out("1,000 of them, 50 a second.")
	out("")
	out("| one requested pass over %d open runs, store %s | figure |", p.open, p.store)
	out("|---|---|")
	out("| duration | %s |", promise.Round(p.took.At(.5)))
	out("| runs that were described individually | %.0f |", figure.Median(p.checked))
	for _, method := range askedMethods() {
		out("| requests `%s` | %.0f |", method, figure.Median(p.asked[method]))
	}
	out("| processor time of the server, for the pass and the concurrent starts | %s |", promise.Round(p.cpu.At(.5)))
	out("| memory of the server before, and its maximum during the pass | %.0f MB, %.0f MB |", figure.Median(p.idle),
		figure.Median(p.most))
	out("| start of a run, idle: p50, p95 | %s, %s |", promise.Round(p.starts.At(.5)), promise.Round(p.starts.At(.95)))
	out("| start of a run during a pass: p50, p95 | %s, %s (%.2f ×, %.2f ×) |", promise.Round(p.starting.At(.5)),
		promise.Round(p.starting.At(.95)),
		ratio(p.starting.At(.5), p.starts.At(.5)), ratio(p.starting.At(.95), p.starts.At(.95)))
}
