import { useEffect, useState } from 'react'

/**
 * The server's clock: the time in its last answer plus the time that has passed since, measured by a clock of the browser that nobody
 * can set. The browser's own date is never used.
 */
let serverMilliseconds = 0
let measuredAt = 0
let exact = false

/** observeServerTime notes the server's time in an answer to a request that was sent at `sent` (of performance.now). */
export function observeServerTime(milliseconds: number, sent: number, precision: 'seconds' | 'exact'): void {
  if (!Number.isFinite(milliseconds) || (exact && precision === 'seconds')) return
  const received = performance.now()
  const estimate = precision === 'seconds' ? milliseconds + 500 : milliseconds + (received - sent) / 2
  if (precision === 'seconds' && serverMilliseconds !== 0) {
    // A header has whole seconds: keep the clock unless it is off by more than that.
    if (Math.abs(now() - estimate) < 1000) return
  }
  exact = precision === 'exact'
  serverMilliseconds = estimate
  measuredAt = received
}

/** now returns the server's time in milliseconds since the epoch. */
export const now = (): number =>
  serverMilliseconds === 0 ? Date.now() : serverMilliseconds + (performance.now() - measuredAt)

/** useNow returns the server's time and renders again each interval; 0 renders once. */
export function useNow(interval = 1000): number {
  const [time, setTime] = useState(now)
  useEffect(() => {
    if (interval === 0) return undefined
    setTime(now())
    const timer = window.setInterval(() => {
      setTime(now())
    }, interval)
    return () => {
      window.clearInterval(timer)
    }
  }, [interval])
  return time
}
