import { describe, expect, it } from 'vitest'
import { durationMilliseconds, milliseconds, timestamp } from './time'
import { hasEnded } from './run'

describe('times of the API', () => {
  it('are milliseconds since the epoch here', () => {
    expect(milliseconds({ seconds: 1_700_000_000n, nanos: 250_000_000 } as never)).toBe(1_700_000_000_250)
    expect(milliseconds({ seconds: 0n, nanos: 0 } as never)).toBe(0)
    expect(milliseconds(undefined)).toBeUndefined()
  })

  it('survive the way there and back', () => {
    for (const time of [0, 1, 999, 1_700_000_000_250, 1_700_000_000_999])
      expect(milliseconds(timestamp(time) as never)).toBe(time)
    expect(timestamp(1500)).toEqual({ seconds: 1n, nanos: 500_000_000 })
  })

  it('have lengths in milliseconds', () => {
    expect(durationMilliseconds({ seconds: 90n, nanos: 1_500_000 } as never)).toBe(90_001.5)
    expect(durationMilliseconds(undefined)).toBeUndefined()
  })
})

describe('the status of a run', () => {
  it.each(['completed', 'failed', 'canceled', 'terminated', 'timed_out'])('%s is final', (status) => {
    expect(hasEnded(status)).toBe(true)
  })

  it.each(['queued', 'running', 'waiting', '', 'paused'])('%j is not', (status) => {
    expect(hasEnded(status)).toBe(false)
  })
})
