import { useSyncExternalStore } from 'react'

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
  if (Math.abs(now() - shown) > 1500) tick()
}

/** now returns the server's time in milliseconds since the epoch. */
export const now = (): number =>
  serverMilliseconds === 0 ? Date.now() : serverMilliseconds + (performance.now() - measuredAt)

/** The time that ticking components show; one timer renews it for all of them. */
let shown = now()
let timer: number | undefined
const listeners = new Set<() => void>()

function tick(): void {
  shown = now()
  for (const listener of listeners) listener()
}

function subscribe(listener: () => void): () => void {
  if (timer === undefined) {
    timer = window.setInterval(tick, 1000)
    shown = now()
  }
  listeners.add(listener)
  return () => {
    listeners.delete(listener)
    if (listeners.size > 0) return
    window.clearInterval(timer)
    timer = undefined
  }
}

const neverChanges = () => () => undefined

/** useNow returns the server's time, within a second, and renders again each second; while it is not `ticking`, it does not. */
export const useNow = (ticking = true): number => useSyncExternalStore(ticking ? subscribe : neverChanges, () => shown)
