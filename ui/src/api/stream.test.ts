import { describe, expect, it } from 'vitest'
import { retryDelay } from './stream'

describe('a broken stream', () => {
  it('is opened again after 1, 2, 4, 8, 15 seconds, a quarter more or less', () => {
    expect([1, 2, 3, 4, 5, 9].map((n) => retryDelay(n, 0.5))).toEqual([1000, 2000, 4000, 8000, 15000, 15000])
    expect(retryDelay(1, 0)).toBe(750)
    expect(retryDelay(1, 1)).toBe(1250)
  })
})
