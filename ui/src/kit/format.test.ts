import { create } from '@bufbuild/protobuf'
import { DurationSchema } from '@bufbuild/protobuf/wkt'
import { describe, expect, it } from 'vitest'
import {
  byteLength,
  durationText,
  formatAgo,
  formatBytes,
  formatCount,
  formatCountdown,
  formatDistance,
  formatDuration,
  formatFullTime,
  formatPercent,
  formatTime,
  orDash,
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

describe('a duration', () => {
  it.each([
    [999.4, '999 ms'],
    [1000, '1.0 s'],
    [60_000, '1m 00s'],
    [3_599_999, '59m 59s'],
    [3_600_000, '1h 00m'],
    [86_399_999, '23h 59m'],
    [86_400_000, '1d 0h'],
    [400 * 86_400_000, '400d 0h'],
  ])('of %d ms at the edge of a unit is %s', (ms, text) => {
    expect(formatDuration(ms)).toBe(text)
  })

  it('that the API did not give is unknown, and one of zero is zero', () => {
    expect(durationText(undefined)).toBe('unknown')
    expect(durationText(create(DurationSchema, {}))).toBe('0 ms')
    expect(durationText(create(DurationSchema, { seconds: 61n, nanos: 500_000_000 }))).toBe('1m 01s')
  })
})

describe('the time until something happens', () => {
  it.each([
    [1, '0:01'],
    [59_001, '1:00'],
    [60_000, '1:00'],
    [3_599_000, '59:59'],
    [3_600_000, '1:00:00'],
    [86_399_000, '23:59:59'],
    [86_400_000, '1d 0h'],
  ])('in %d ms is %s', (ms, text) => {
    expect(formatCountdown(ms)).toBe(text)
  })
})

describe('an age', () => {
  it.each([
    [-5, '0 s ago'],
    [59_999, '59 s ago'],
    [60_000, '1m ago'],
    [3_599_999, '59m ago'],
    [86_399_999, '23h ago'],
    [86_400_000, '1d ago'],
  ])('of %d ms is %s', (ms, text) => {
    expect(formatAgo(ms)).toBe(text)
  })

  it('is a distance for a time that is still to come', () => {
    expect(formatDistance(1000, 4000)).toBe('3 s ago')
    expect(formatDistance(4000, 4000)).toBe('0 s ago')
    expect(formatDistance(129_000, 4000)).toBe('in 2m 05s')
  })
})

describe('a time', () => {
  const now = Date.UTC(2026, 0, 1, 3, 0, 0)

  it('of the last 12 hours has no date, also over midnight and the turn of the year', () => {
    expect(formatTime(Date.UTC(2025, 11, 31, 15, 0, 1), now, 'utc')).toBe('15:00:01')
    expect(formatTime(Date.UTC(2025, 11, 31, 14, 59, 59), now, 'utc')).toBe('31 Dec 2025')
  })

  it('that is to come follows the same rules', () => {
    expect(formatTime(Date.UTC(2026, 0, 1, 23, 59, 59), now, 'utc')).toBe('23:59:59')
    expect(formatTime(Date.UTC(2026, 0, 2, 14, 0, 0), now, 'utc')).toBe('2 Jan 14:00')
    expect(formatTime(Date.UTC(2027, 0, 2), now, 'utc')).toBe('2 Jan 2027')
  })

  it('is whole with its zone', () => {
    expect(formatFullTime(Date.UTC(2026, 8, 5, 4, 3, 2), 'utc')).toBe('2026-09-05 04:03:02 UTC')
    const local = new Date(2026, 8, 5, 4, 3, 2).getTime()
    expect(formatFullTime(local, 'local')).toBe('2026-09-05 04:03:02 local time')
  })
})

describe('a number', () => {
  it.each([
    [0, '0'],
    [999, '999'],
    [1000, '1,000'],
    [1234567, '1,234,567'],
    [12345678901234567890n, '12,345,678,901,234,567,890'],
  ])('%d has its digits in groups: %s', (count, text) => {
    expect(formatCount(count)).toBe(text)
  })

  it.each([
    [0, '0 B'],
    [999, '999 B'],
    [1000, '1.0 kB'],
    [999_949, '999.9 kB'],
    [1_000_000, '1.0 MB'],
    [2_345_678_901, '2345.7 MB'],
  ])('of %d bytes is %s', (bytes, text) => {
    expect(formatBytes(bytes)).toBe(text)
  })

  it('of a share has one decimal', () => {
    expect([0, 0.5, 0.98249, 1].map(formatPercent)).toEqual(['0.0 %', '50.0 %', '98.2 %', '100.0 %'])
  })

  it('has the plural of its noun, which may be irregular', () => {
    expect(plural(0, 'run')).toBe('0 runs')
    expect(plural(1n, 'delivery', 'deliveries')).toBe('1 delivery')
    expect(plural(12_000n, 'delivery', 'deliveries')).toBe('12,000 deliveries')
  })
})

describe('a text', () => {
  it('is as long as its bytes, not its characters', () => {
    expect(['', 'abc', 'é', '€', '👍'].map(byteLength)).toEqual([0, 3, 2, 3, 4])
  })

  it('is a dash where there is none', () => {
    expect([orDash(''), orDash(' '), orDash('0')]).toEqual(['–', ' ', '0'])
  })

  it('of an ID is shortened where that saves room', () => {
    expect(shortId('12345678901234')).toBe('12345678901234')
    expect(shortId('123456789012345')).toBe('12345678…2345')
  })
})
