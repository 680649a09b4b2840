//go:build unix

package javascript

import (
	"context"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/sandbox/output"
	"github.com/tetratelabs/wazero"
)

// BenchmarkChecks compares the ways to end programs: none, by wazero in every loop, and by fuel. cpu-ms/op is the time
// of the processor, which a busy machine changes less.
//
//	go test ./internal/sandbox/javascript -run xxx -bench Checks
func BenchmarkChecks(b *testing.B) {
	metered, err := meter(quickjs, interruptName)
	require.NoError(b, err)
	for _, way := range []struct {
		name   string
		module []byte
		config wazero.RuntimeConfig
	}{
		{"none", quickjs, wazero.NewRuntimeConfig()},
		{"loops", quickjs, wazero.NewRuntimeConfig().WithCloseOnContextDone(true)},
		{"fuel", metered, wazero.NewRuntimeConfig()},
	} {
		e, err := compile(b.Context(), Options{Memory: 32 << 20}, way.module, way.config)
		require.NoError(b, err)
		for name, code := range map[string]string{
			"nothing": ``,
			"fib":     `const fib = (n) => n < 2 ? n : fib(n - 1) + fib(n - 2); fib(24)`,
			"objects": `const m = new Map(); for (let i = 0; i < 50000; i++) m.set("k" + i, {i}); [...m.values()].map((x) => x.i).sort()`,
			"json":    `const a = []; for (let i = 0; i < 5000; i++) a.push({i, text: "x".repeat(20)}); JSON.parse(JSON.stringify(a))`,
		} {
			b.Run(fmt.Sprintf("%s/%s", name, way.name), func(b *testing.B) {
				before := processorTime(b)
				for b.Loop() {
					printed := output.New(1<<10, func(error) {})
					status, err := e.Run(b.Context(), Program{Code: code, Time: time.Minute, Output: printed})
					if err != nil || status != 0 {
						b.Fatal(err, status)
					}
				}
				b.ReportMetric((processorTime(b)-before).Seconds()*1000/float64(b.N), "cpu-ms/op")
			})
		}
		require.NoError(b, e.Close(context.WithoutCancel(b.Context())))
	}
}

// processorTime returns the time that the process has used of processors.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
