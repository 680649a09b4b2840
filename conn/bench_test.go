package conn_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"github.com/signalbox-dev/signalbox/conn"
	"github.com/signalbox-dev/signalbox/conn/conntest"
)

// situations are the states of a manager during a benchmark.
func situations() []situation {
	return []situation{
		{"connected", func(*conntest.Frontend) {}, conn.Connected},
		{"stopped", (*conntest.Frontend).Stop, conn.Down},
		{"frozen", (*conntest.Frontend).Freeze, conn.Down},
	}
}

type situation struct {
	name  string
	begin func(*conntest.Frontend)
	state conn.State
}

// attemptsEvery is how often a manager that is down is made to start an attempt, far more often than by itself.
const attemptsEvery = 50 * time.Millisecond

// manage returns a manager in the situation. While it is down, an attempt to reconnect is under way nearly all the
// time.
func (s situation) manage(b *testing.B) *conn.Manager {
	b.Helper()
	frontend := conntest.Run(b, conntest.Options{})
	options := quick(frontend.Addr())
	options.Logger = slog.New(slog.DiscardHandler)
	m, err := conn.New(options)
	require.NoError(b, err)
	require.NoError(b, m.Register("orders", idle("orders")))
	require.NoError(b, m.Start(b.Context()))
	ended := make(chan struct{})
	var attempts sync.WaitGroup
	b.Cleanup(func() {
		close(ended)
		attempts.Wait()
		frontend.Thaw()
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		require.NoError(b, m.Stop(ctx))
	})
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	require.NoError(b, m.Await(ctx))
	s.begin(frontend)
	require.Eventually(b, func() bool { return m.Status().State == s.state }, patience, 5*time.Millisecond)
	if s.state != conn.Connected {
		attempts.Go(func() {
			ticker := time.NewTicker(attemptsEvery)
			defer ticker.Stop()
			for {
				select {
				case <-ticker.C:
					m.ResetBreaker()
				case <-ended:
					return
				}
			}
		})
	}
	return m
}

// aloneAndContended measures a call from one goroutine, and from twice as many goroutines as there are processors.
func aloneAndContended(b *testing.B, call func()) {
	b.Helper()
	b.Run("alone", func(b *testing.B) {
		for b.Loop() {
			call()
		}
	})
	b.Run("contended", func(b *testing.B) {
		b.SetParallelism(2)
		b.RunParallel(func(p *testing.PB) {
			for p.Next() {
				call()
			}
		})
	})
}

// BenchmarkClient measures Manager.Client, which programs call for each request.
func BenchmarkClient(b *testing.B) {
	for _, s := range situations() {
		b.Run(s.name, func(b *testing.B) {
			m := s.manage(b)
			aloneAndContended(b, func() { _, _ = m.Client() })
		})
	}
}

// BenchmarkClientBehindMutex measures the same with a mutex instead of the atomic pointer, for comparison.
func BenchmarkClientBehindMutex(b *testing.B) {
	var held struct {
		sync.Mutex

		client client.Client
		down   error
	}
	aloneAndContended(b, func() {
		held.Lock()
		_, _ = held.client, held.down
		held.Unlock()
	})
}

// BenchmarkStatus measures Manager.Status, which health endpoints and scrapes call.
func BenchmarkStatus(b *testing.B) {
	for _, s := range situations() {
		b.Run(s.name, func(b *testing.B) {
			m := s.manage(b)
			aloneAndContended(b, func() { _ = m.Status() })
		})
	}
}

// BenchmarkClientLongest times each call separately and reports the longest. The figure for an empty call is the
// scheduler's, and is contained in every other figure.
func BenchmarkClientLongest(b *testing.B) {
	b.Run("nothing", func(b *testing.B) { longest(b, func() {}) })
	for _, s := range situations() {
		b.Run(s.name, func(b *testing.B) {
			m := s.manage(b)
			b.ResetTimer()
			longest(b, func() { _, _ = m.Client() })
		})
	}
}

func longest(b *testing.B, call func()) {
	b.Helper()
	var worst time.Duration
	for b.Loop() {
		began := time.Now()
		call()
		worst = max(worst, time.Since(began))
	}
	b.ReportMetric(float64(worst), "longest-ns")
}
