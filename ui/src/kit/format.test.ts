import { describe, expect, it } from 'vitest'
import {
  formatAgo,
  formatBytes,
  formatCount,
  formatCountdown,
  formatDuration,
  formatTime,
  plural,
  shortId,
} from './format'

describe('formats', () => {
  it.each([
    [0, '0 ms'],
    [0.03, '< 1 ms'],
    [1.2, '1 ms'],
    [420, '420 ms'],
    [12_449, '12.4 s'],
    [59_999, '59.9 s'],
    [187_000, '3m 07s'],
    [7_500_000, '2h 05m'],
    [273_600_000, '3d 4h'],
    [-5, '0 ms'],
  ])('prints a duration of %d ms as %s', (ms, text) => {
    expect(formatDuration(ms)).toBe(text)
  })

  it('prints countdowns rounded up, so that 0:00 means now', () => {
    expect(formatCountdown(16_200)).toBe('0:17')
    expect(formatCountdown(7_500_000)).toBe('2:05:00')
    expect(formatCountdown(-1)).toBe('0:00')
  })

  it('prints ages', () => {
    expect(formatAgo(3_900)).toBe('3 s ago')
    expect(formatAgo(3_600_000)).toBe('1h ago')
  })

  it('prints times of today with seconds, older ones with the date, those of other years with the year', () => {
    const now = Date.UTC(2026, 10, 23, 18, 0, 0)
    expect(formatTime(Date.UTC(2026, 10, 23, 4, 2, 11), now, 'utc')).toBe('04:02:11')
    expect(formatTime(Date.UTC(2026, 10, 20, 14, 2, 11), now, 'utc')).toBe('20 Nov 14:02')
    expect(formatTime(Date.UTC(2025, 10, 20, 14, 2, 11), now, 'utc')).toBe('20 Nov 2025')
  })

  it('prints counts, bytes and IDs', () => {
    expect(formatCount(12480)).toBe('12,480')
    expect(formatCount(10000n, true)).toBe('10,000+')
    expect(formatBytes(312)).toBe('312 B')
    expect(formatBytes(64_000)).toBe('64.0 kB')
    expect(shortId('01a1ffc2-7d1e-7000-8000-00000000488b')).toBe('01a1ffc2…488b')
    expect(plural(1, 'run')).toBe('1 run')
    expect(plural(2, 'run')).toBe('2 runs')
  })
})
