import { describe, expect, it } from 'vitest'
import { spanOptions, spanStart } from './span'

const now = Date.UTC(2026, 10, 30, 12)

describe('a period up to now', () => {
  it.each([
    ['1h', '2026-11-30T11:00:00.000Z'],
    ['24h', '2026-11-29T12:00:00.000Z'],
    ['7d', '2026-11-23T12:00:00.000Z'],
    ['30d', '2026-10-31T12:00:00.000Z'],
  ])('%s began at %s', (name, start) => {
    expect(new Date(spanStart(name, now) ?? 0).toISOString()).toBe(start)
  })

  it.each(['', '2h', 'constructor', '1H'])('%j is none', (name) => {
    expect(spanStart(name, now)).toBeUndefined()
  })

  it('is offered by a list in the order that it wants', () => {
    expect(spanOptions('24h', '1h')).toEqual([
      { value: '24h', label: 'Last 24 hours' },
      { value: '1h', label: 'Last hour' },
    ])
  })
})
